"""What upkeep writes about DisruptionPolicies, Freezes and NodeRollouts; a mark asks the API server for them."""

from dataclasses import replace

import pytest

from dovetail.activities.shared.live_pauses import LivePauses
from dovetail.activities.upkeep.time_rules import TimeRuleUpkeep
from dovetail.model.beginnings import Cause
from dovetail.model.nodes import Condition
from dovetail.model.openings import Window
from dovetail.model.policies import Freeze, Policy, PolicyStatus, TimeRules
from dovetail.model.rollouts import GateResult, Intent, NodesGate, Rollout, RolloutState, RolloutStatus, RolloutStep
from dovetail.model.snapshot import Snapshot
from dovetail.model.time import parse_time
from dovetail.ports.failures import Forbidden
from testing.disruption_worlds import a_pair, a_pool
from testing.time_rules import with_rules
from tests.activities.test_pauses import a_joined_world, marked, pauses

NOON = parse_time("2026-06-01T12:00:00Z")
NIGHT = Window(start=22 * 3600, end=5 * 3600, reasons=frozenset({"Drifted"}))


class Written:
    """The port, which keeps what is written, and answers with what it was told."""

    def __init__(self, rules: TimeRules | None = None) -> None:
        self.rules = rules
        self.statuses: dict[str, PolicyStatus] = {}
        self.conditions: dict[str, tuple[Condition, ...]] = {}
        self.rollouts: dict[str, RolloutStatus] = {}

    async def read(self, _: str) -> TimeRules:
        if self.rules is None:
            raise Forbidden("Freeze", "forbidden")
        return self.rules

    async def patch_policy(self, policy: Policy, status: PolicyStatus) -> Policy:
        self.statuses[policy.name] = status
        return replace(policy, status=status)

    async def patch_freeze(self, freeze: Freeze, conditions: tuple[Condition, ...]) -> Freeze:
        self.conditions[freeze.name] = conditions
        return replace(freeze, conditions=conditions)

    async def patch_rollout(self, rollout: Rollout, status: RolloutStatus) -> Rollout:
        self.rollouts[rollout.name] = status
        return replace(rollout, status=status)

    async def patch_intent(self, rollout: Rollout, intent: Intent) -> Rollout:
        return replace(rollout, intent=intent)


def a_cluster(*rules: Policy | Freeze | Rollout, now: float = NOON) -> Snapshot:
    return with_rules(Snapshot(now=now, pools={"default": a_pool("default")}), *rules)


async def looked(*rules: Policy | Freeze | Rollout, now: float = NOON) -> tuple[Written, float | None]:
    written = Written()
    look = await TimeRuleUpkeep(written, lambda: now).look(a_cluster(*rules, now=now))
    for write in look.due:
        await write()
    return written, look.again


async def test_a_policy_says_what_it_selects_what_is_open_and_until_when() -> None:
    policy = Policy(name="p", generation=3, allow=(NIGHT,))
    written, again = await looked(policy)
    status = written.statuses["p"]

    [opening] = status.openings
    assert (status.pools, opening.reason, opening.open, opening.why) == (
        ("default",),
        "Drifted",
        False,
        "outside allow[0]",
    )
    assert opening.until == again == parse_time("2026-06-01T22:00:00Z")
    assert [(c.type, c.status, c.generation) for c in status.conditions] == [("Ready", "True", 3)]

    same, _ = await looked(replace(policy, status=status), now=NOON + 60)
    assert same.statuses == {}  # nothing has changed
    later, _ = await looked(replace(policy, status=status), now=parse_time("2026-06-01T22:00:00Z"))
    assert later.statuses["p"].openings[0].open
    assert later.statuses["p"].conditions == status.conditions


async def test_a_policy_that_is_not_understood_is_stalled_and_says_why() -> None:
    written, _ = await looked(Policy(name="p", fault="spec.timeZone: 'X' is no time zone"))

    conditions = {c.type: c for c in written.statuses["p"].conditions}
    assert (conditions["Ready"].status, conditions["Stalled"].status) == ("False", "True")
    assert "spec.timeZone: 'X' is no time zone" in conditions["Ready"].message
    assert not any(opening.open for opening in written.statuses["p"].openings)


async def test_a_freeze_says_whether_it_holds_and_is_looked_at_when_that_changes() -> None:
    freeze = Freeze(name="f", begins=NOON + 60, until=NOON + 120, what=frozenset({"disruption"}))
    states = []
    for now in (NOON, NOON + 60, NOON + 120):
        written, again = await looked(freeze, now=now)
        [active] = [c for c in written.conditions["f"] if c.type == "Active"]
        states.append((active.status, active.reason, again))
        freeze = replace(freeze, conditions=written.conditions["f"])

    assert states == [("False", "NotBegun", NOON + 60), ("True", "Begun", NOON + 120), ("False", "Ended", None)]
    assert (await looked(freeze, now=NOON + 180))[0].conditions == {}


def live(rules: TimeRules | None) -> LivePauses:
    return replace(pauses(a_joined_world()), rules=Written(rules))


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (TimeRules(freezes={"f": Freeze(name="f", what=frozenset({"disruption"}))}), "by Freeze f"),
        (TimeRules(policies={"p": Policy(name="p", deny=(Window(),))}), "by DisruptionPolicy p: in deny[0]"),
    ],
)
async def test_a_node_is_not_marked_where_a_freeze_or_a_closed_window_has_come_since(
    rules: TimeRules, words: str
) -> None:
    world = a_joined_world()

    outcome = await marked(world, replace(pauses(world), rules=Written(rules)))

    [(_, why)] = outcome.refused
    assert words in why and outcome.marked == ()
    assert not world.nodes["node-1"].taints


async def test_a_node_is_not_marked_where_it_cannot_be_told_whether_there_is_a_freeze() -> None:
    world = a_joined_world()

    with pytest.raises(Forbidden):
        await marked(world, replace(pauses(world), rules=Written()))

    assert not world.nodes["node-1"].taints


async def test_launches_go_on_where_it_cannot_be_told_whether_there_is_a_freeze() -> None:
    assert await live(None).of_all() == ()
    freeze = Freeze(name="f", what=frozenset({"launches"}))
    assert [pause.freeze for pause in await live(TimeRules(freezes={"f": freeze})).of_all()] == ["f"]


STEPS = (RolloutStep(name="canary", to="1", soak=600), RolloutStep(name="rest", to="100%"))


async def test_a_step_of_a_roll_out_is_permitted_by_what_upkeep_writes() -> None:
    rollout = Rollout(name="r", generation=2, created=NOON - 60, pool="default", steps=STEPS)
    drifted = a_pair("n1", pool="default", also=("Drifted",))
    world = replace(a_cluster(rollout), claims={drifted.claim.name: drifted.claim})
    written = Written()
    look = await TimeRuleUpkeep(written, lambda: NOON).look(world)
    for write in look.due:
        await write()
    status = written.rollouts["r"]

    assert (status.step, status.state, status.begun) == ("canary", RolloutState.REPLACING, NOON)
    assert {condition.generation for condition in status.conditions} == {2}
    assert (status.total, status.at_target, status.leaving, look.again) == (1, 0, 0, NOON + 60)
    assert {c.type: (c.status, c.reason) for c in status.conditions} == {
        "Ready": ("False", "Replacing"),
        "Reconciling": ("True", "Replacing"),
        "Stalled": ("False", "Advancing"),
        "Healthy": ("Unknown", "GatesUnknown"),
    }
    for due in (1, 0):  # its gate is asked from now on
        world = with_rules(world, replace(rollout, status=written.rollouts["r"]))
        again = await TimeRuleUpkeep(written, lambda: NOON + 1).look(world)
        assert len(again.due) == due
        for write in again.due:
            await write()
    assert {c.type: c.reason for c in written.rollouts["r"].conditions}["Healthy"] == "GatesPass"


@pytest.mark.parametrize(
    ("rollout", "stalled", "ready"),
    [
        (Rollout(name="r", pool="gone", steps=STEPS), ("True", "NodePoolNotFound"), "False"),
        (Rollout(name="r", pool="default", steps=STEPS, intent=Intent.ABORT), ("True", "Aborted"), "False"),
        (Rollout(name="r", pool="default", steps=STEPS, intent=Intent.PAUSE), ("False", "Advancing"), "False"),
        (Rollout(name="r", pool="default", fault="spec.steps: none"), ("True", "NotUnderstood"), "False"),
        (
            Rollout(
                name="r", pool="default", steps=STEPS, status=RolloutStatus(gate=NodesGate(result=GateResult.FAILING))
            ),
            ("True", "GateFails"),
            "False",
        ),
        (
            Rollout(name="r", pool="default", steps=STEPS, status=RolloutStatus(state=RolloutState.COMPLETE)),
            ("False", "Advancing"),
            "True",
        ),
    ],
)
async def test_a_roll_out_says_what_keeps_it(rollout: Rollout, stalled: tuple[str, str], ready: str) -> None:
    written, _ = await looked(rollout)
    said = {c.type: (c.status, c.reason) for c in written.rollouts["r"].conditions}

    assert (said["Stalled"], said["Ready"][0]) == (stalled, ready)


async def test_at_the_mark_a_roll_out_is_asked_for_as_the_api_server_has_it() -> None:
    begun = RolloutStatus(step="canary", state=RolloutState.REPLACING)
    running = Rollout(name="r", pool="default", steps=STEPS, status=begun)
    for rollout, holds in ((running, False), (replace(running, intent=Intent.PAUSE), True)):
        live = replace(pauses(a_joined_world()), rules=Written(TimeRules(rollouts={"r": rollout})))
        assert (await live.hold("default", Cause.DRIFTED) is not None) is holds
