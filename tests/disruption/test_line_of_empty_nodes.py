"""Empty nodes under a small budget stand in line, so that one is due whenever a place becomes free (DIS-7)."""

from dataclasses import dataclass, field, replace
from typing import Final

import pytest

from dovetail.disruption.budgets.allowances import LINE, allowances
from dovetail.disruption.choose import choose
from dovetail.disruption.revalidate import Valid
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.pools import Budget
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from tests.disruption.second_look import revalidate
from worlds.disruption import NOW, a_pair, a_pod, a_pool, a_world, condition

SETTINGS: Final = DisruptionSettings()
LOOK: Final = 0.5


def claims_of(plan: DisruptionPlan) -> list[str]:
    return [t.claim for command in plan.commands for t in command.targets]


@dataclass
class Clockwork:
    """The disruption loop by a made-up clock: what waits, what is drained, what is gone and when."""

    world: Snapshot
    drain: float
    waiting: list[tuple[DisruptionPlan, float]] = field(default_factory=list)
    drained_since: dict[str, float] = field(default_factory=dict)
    ends: list[float] = field(default_factory=list)
    most_at_once: int = 0

    def run(self, seconds: float) -> None:
        """Look again and again."""
        for look in range(int(seconds / LOOK)):
            now = NOW + look * LOOK
            self._end_drains(now)
            self._begin_what_is_due(now)
            while isinstance(plan := choose(self._snapshot(now, len(self.waiting)), SETTINGS, never), DisruptionPlan):
                self.waiting.append((plan, now + plan.validate_after))
            self.most_at_once = max(self.most_at_once, len(self.drained_since))

    def _end_drains(self, now: float) -> None:
        for claim in [c for c, since in self.drained_since.items() if now - since >= self.drain]:
            del self.drained_since[claim]
            self.ends.append(now - NOW)
            left = {name: c for name, c in self.world.claims.items() if name != claim}
            nodes = {n.name: n for n in self.world.nodes.values() if n.name != self.world.claims[claim].node_name}
            self.world = replace(self.world, claims=left, nodes=nodes)

    def _begin_what_is_due(self, now: float) -> None:
        for index, (plan, due) in enumerate(self.waiting):
            if due <= now:
                found = revalidate(plan, self._snapshot(now, index), SETTINGS)
                if isinstance(found, Valid):
                    del self.waiting[index]
                    self.drained_since |= dict.fromkeys(claims_of(found.plan), now)
                    return self._begin_what_is_due(now)
        return None

    def _snapshot(self, now: float, before: int) -> Snapshot:
        claims = {
            name: replace(claim, deleting_since=self.drained_since.get(name))
            for name, claim in self.world.claims.items()
        }
        held = frozenset(claim for plan, _ in self.waiting[:before] for claim in claims_of(plan))
        return replace(self.world, now=now, claims=claims, disrupting=held)


@pytest.mark.parametrize(("budget", "nodes"), [("1", 8), ("2", 12), ("25%", 12)])
def test_the_next_node_s_wait_runs_while_those_before_it_are_drained(budget: str, nodes: int) -> None:
    """DIS-7: one node every 7 s and no more at once than the budget allows; with a single one in line it was 15 s."""
    allowed = {"25%": 3}.get(budget) or int(budget)
    pool = a_pool(budgets=(Budget(nodes=budget),))
    clockwork = Clockwork(a_world([a_pair(f"n{i:02}") for i in range(nodes)], pools=[pool]), drain=7.0)

    clockwork.run(15 + 8 * nodes)

    assert len(clockwork.ends) == nodes
    assert clockwork.most_at_once == allowed
    each = (clockwork.ends[-1] - clockwork.ends[allowed - 1]) / (nodes - allowed) * allowed
    assert each <= 8.0 if budget.isdigit() else each <= 16.0  # a percentage allows fewer of fewer nodes


def test_a_drain_that_takes_long_lets_nobody_join_the_line() -> None:
    """A plan that would only be dropped again is not made."""
    pool = a_pool(budgets=(Budget(nodes="1"),))
    long = a_pair("n0", claim={"deleting_since": NOW - 60})
    assert not isinstance(choose(a_world([long, a_pair("n1")], pools=[pool]), SETTINGS, never), DisruptionPlan)


@pytest.mark.parametrize("held", [0, 1, 2, 3, 4])
def test_the_line_is_three_times_what_the_budget_allows(held: int) -> None:
    """A plan never takes more than may leave at once."""
    pool = a_pool(budgets=(Budget(nodes="2"),))
    world = a_world([a_pair(f"n{i}") for i in range(20)], pools=[pool])
    taken = frozenset(f"claim-n{i}" for i in range(held * 2))
    plan = choose(replace(world, disrupting=taken), SETTINGS, never)
    assert (len(claims_of(plan)) if isinstance(plan, DisruptionPlan) else 0) == (2 if held < LINE else 0)


def test_nodes_that_stand_in_line_keep_no_other_reason_waiting() -> None:
    """A line of six for two places takes two of the three places that drift has."""
    budgets = (Budget(nodes="2", reasons=("Empty", "Underutilized")), Budget(nodes="3", reasons=("Drifted",)))
    pool = a_pool(budgets=budgets)
    old = a_pair("old", claim={"conditions": (*a_pair("x").claim.conditions, condition(names.DRIFTED))})
    world = a_world([*[a_pair(f"n{i}") for i in range(6)], old], [a_pod("old")], pools=[pool])
    world = replace(world, disrupting=frozenset(f"claim-n{i}" for i in range(6)))
    found = allowances(world, SETTINGS)
    assert found["a", DisruptionReason.DRIFTED].left == 1
    assert found["a", DisruptionReason.EMPTY].left == 0
