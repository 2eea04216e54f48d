"""A drifted node that nothing lets go for a week is told with the rule that keeps it; nobody is asked or forced."""

from dataclasses import replace
from typing import Any, cast

import pytest

from dovetail.activities.upkeep.waiting_drift import MOST, WaitingDriftUpkeep
from dovetail.disruption.upkeep.waiting_drift import OVERDUE, next_overdue, overdue_drift
from dovetail.model import names
from dovetail.model.snapshot import Snapshot
from dovetail.notices.notice import Notice
from dovetail.telemetry.metrics.exposition import measured
from dovetail.telemetry.metrics.ours.holds import HELP, hold_samples
from tests.disruption.test_rollouts import POOL, a_rollout, a_status
from worlds.disruption import NOW, Pair, a_pair, a_pool, a_world, condition
from worlds.time_rules import with_rules

DAY = 86_400.0


def drifted(name: str, ago: float, *more: Any, **claim: Any) -> Pair:
    return a_pair(name, also=(replace(condition(names.DRIFTED), changed=NOW - ago), *more), claim=claim)


def overdue(world: Snapshot) -> list[str]:
    return [claim.name for claims in overdue_drift(world).values() for claim in claims]


class Said:
    """What has been published."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    async def publish(self, *notices: Notice) -> None:
        self.notices += notices


async def told(upkeep: WaitingDriftUpkeep, said: Said, world: Snapshot) -> list[tuple[str, str]]:
    said.notices.clear()
    for write in (await upkeep.look(world)).due:
        await write()
    return [(notice.name, notice.message) for notice in said.notices]


def test_a_week_after_the_drift_and_not_while_it_leaves() -> None:
    """DIQ-44."""
    mark = condition(names.DISRUPTION_REASON)
    pairs = [
        drifted("young", 7 * DAY - 1),
        drifted("old", 7 * DAY),
        drifted("older", 9 * DAY),
        drifted("marked", 9 * DAY, mark),
        drifted("leaving", 9 * DAY, deleting_since=NOW - 5, finalizers=(names.TERMINATION_FINALIZER,)),
        a_pair("fine"),
    ]
    world = a_world(pairs, pools=[a_pool("a")])

    assert overdue(world) == ["claim-older", "claim-old"], "who has waited the longest first"
    assert next_overdue(world) == NOW + 1
    assert overdue(replace(world, disrupting=frozenset({"claim-old"}))) == ["claim-older"]
    assert next_overdue(a_world([a_pair("fine")], pools=[a_pool("a")])) is None


async def test_it_is_told_once_when_it_comes_to_be_so_with_the_rule_that_keeps_it() -> None:
    """DIQ-44."""
    said = Said()
    upkeep = WaitingDriftUpkeep(cast(Any, said))
    world = with_rules(a_world([drifted("n", 7 * DAY - 60)], pools=[POOL]), a_rollout(a_status(step="gone")))

    assert await told(upkeep, said, world) == []
    assert (await upkeep.look(world)).again == NOW + 60
    later = replace(world, now=NOW + 60)
    [(node, message)] = await told(upkeep, said, later)
    assert node == "n" and message.startswith("It has drifted and has stayed for 7 days: no more for Drifted may begin")
    assert "by NodeRollout r: Replacing at step gone" in message
    assert await told(upkeep, said, replace(world, now=NOW + 2 * DAY)) == []
    anew = with_rules(a_world([drifted("n", 0)], pools=[POOL]))
    assert await told(upkeep, said, anew) == []
    again = replace(anew, now=NOW + OVERDUE)
    assert await told(upkeep, said, again) == [
        ("n", "It has drifted and has stayed for 7 days: `dovetail explain node n` says why")
    ], "another drift is another wait"


@pytest.mark.parametrize("count", [MOST, MOST + 30])
async def test_of_many_the_first_twenty_are_told_and_all_are_counted(count: int) -> None:
    said = Said()
    world = a_world([drifted(f"n{number}", 8 * DAY) for number in range(count)], pools=[a_pool("a"), a_pool("b")])

    assert len(await told(WaitingDriftUpkeep(cast(Any, said)), said, world)) == MOST
    lines = [line for line in measured(hold_samples(world), HELP, "dovetail_") if "overdue" in line and line[0] != "#"]
    assert lines == [
        f'dovetail_drift_overdue_nodes{{nodepool="a"}} {count}',
        'dovetail_drift_overdue_nodes{nodepool="b"} 0',
    ]
