"""What a step of a roll-out costs the API server: writes of one small object, by how often somebody looked and not by
how many nodes there are, and an Event for each approval alone."""

import json
from collections import Counter
from dataclasses import replace
from typing import Final

import pytest

from acceptance.bench.worker.rollouts import STEPS as PLAYED
from acceptance.bench.worker.rollouts import played
from dovetail.activities.upkeep.rollouts import RolloutUpkeep
from dovetail.activities.upkeep.time_rules import TimeRuleUpkeep
from dovetail.adapters.kubernetes_json.rendering.policies import render_rollout
from dovetail.model import names
from dovetail.model.own.rollout_approvals import Approval
from dovetail.model.own.rollouts import Rollout, RolloutState, RolloutStatus, RolloutStep
from dovetail.model.snapshot import Snapshot
from dovetail.rules.rollout.nodes import nodes_of
from tests.activities.test_time_rules import Written
from worlds.disruption import HOUR, NOW, a_pair, a_pool, a_world, condition
from worlds.fakes import FakeCatalogues, FakeNotices, World, unasked
from worlds.kept_rollouts import kept
from worlds.time_rules import with_rules

STEPS: Final = (
    RolloutStep(name="canary", to="1", soak=300, approve=HOUR),
    RolloutStep(name="tenth", to="10%", soak=300),
    RolloutStep(name="rest", to="100%"),
)
POOL: Final = replace(a_pool(consolidate_after=None), hash="2")
LOOK: Final = 60.4  # seconds of the play between two looks
MOST: Final = 200  # writes and Events of a step
LARGEST: Final = 20_000  # bytes of the object's status


class Kept(Written):
    """The API server's side: each write, by the step that the object was at."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: Counter[str] = Counter()
        self.sizes: list[int] = []

    async def patch_rollout(self, rollout: Rollout, status: RolloutStatus) -> Rollout:
        self.writes[rollout.status.step or status.step] += 1
        self.sizes.append(len(json.dumps(render_rollout(rollout, status)).encode()))
        return await super().patch_rollout(rollout, status)


class Change:
    """A change that goes through a pool, a fifth of its nodes at most between two looks."""

    def __init__(self, nodes: int) -> None:
        drifted = condition(names.DRIFTED, NOW - 60, reason="AMIDrift")
        self.pairs = {f"n{n}": a_pair(f"n{n}", also=(drifted,)) for n in range(nodes)}
        self.rollout = Rollout(name="r", uid="u", created=NOW - 60, pool="a", steps=STEPS)
        self.wave, self.now, self.looks = nodes // 5, NOW, Counter[str]()
        self.kept, self.notices = Kept(), FakeNotices(World())
        self.places = TimeRuleUpkeep(
            self.kept, lambda: self.now, notices=self.notices, catalogues=FakeCatalogues(), questions=unasked()
        )
        self.objects = RolloutUpkeep(self.kept, self.notices)

    def world(self) -> Snapshot:
        known = replace(a_world(self.pairs.values(), [], [POOL]), now=self.now)
        return with_rules(known, self.rollout)

    async def look(self) -> int:
        """How much was written."""
        world, before = self.world(), sum(self.kept.writes.values())
        for upkeep in (self.places, self.objects):
            for write in (await upkeep.look(world)).due:
                await write()
        status = self.kept.rollouts.get("r", self.rollout.status)
        self.looks[self.rollout.status.step or status.step] += 1
        self.rollout = kept(replace(self.rollout, status=status))
        return sum(self.kept.writes.values()) - before

    def go(self) -> None:
        """The nodes that may leave have left, and their replacements are ready when somebody looks again."""
        left = self.rollout.left(POOL, nodes_of(self.world(), POOL))
        for name in [each for each in self.pairs if each.startswith("n")][: min(left, self.wave)]:
            self.pairs[f"to-{name}"] = a_pair(f"to-{name}", claim={"created": self.now})
            del self.pairs[name]
        self.now += LOOK

    def approve(self) -> None:
        status = self.rollout.status
        if status.awaits is not None and self.rollout.approval is None:
            given = Approval(step=status.step, digest=status.awaits.digest, by="alice", at=self.now)
            self.rollout = replace(self.rollout, approval=given)


@pytest.mark.parametrize("nodes", [40, 400])
async def test_a_step_is_a_few_writes_of_a_small_object_and_no_event_but_of_its_approval(nodes: int) -> None:
    change = Change(nodes)
    for _ in range(MOST):
        await change.look()
        change.approve()
        if change.rollout.status.state == RolloutState.COMPLETE:
            break
        change.go()
    assert change.rollout.status.state == RolloutState.COMPLETE
    assert all(name.startswith("to-") for name in change.pairs)

    events = [each for each in change.notices.world.notices if each.kind == "NodeRollout"]
    assert [each.reason for each in events] == ["ApprovalAccepted"]
    writes = change.kept.writes
    assert set(writes) == {step.name for step in STEPS}
    assert all(writes[step] <= change.looks[step] for step in writes), "once a look at most"
    assert all(0 < number + len(events) <= MOST for number in writes.values())
    assert max(writes.values()) < 20, "as many with ten times the nodes"
    assert max(change.kept.sizes) < LARGEST


def test_a_step_costs_two_looks_more_than_a_plain_drift_at_most() -> None:
    """One for what its number of nodes cuts off, one that finds it reached; one more finds the change."""
    plain, steps = played(120, None), played(120, Rollout(name="r", created=NOW, pool="a", steps=PLAYED))

    assert len(plain.waiting) == 0 and len(steps.waiting) <= len(PLAYED) + 1
    assert len(steps.taking) <= len(plain.taking) + len(PLAYED)


async def test_while_nothing_changes_nothing_is_written() -> None:
    change = Change(40)
    await change.look()
    await change.look()  # its gate is asked from now on
    for _ in range(MOST):
        change.now += 0.7
        assert await change.look() == 0
