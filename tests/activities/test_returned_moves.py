"""What consolidation took and what was launched again: remembered on the NodePool, and too much of it is held back."""

import json
from dataclasses import replace
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.delete_claim import DeleteClaims
from dovetail.activities.disruption.returned_moves import ReturnedMoves
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.answers.status.fleet_facts import FleetFacts
from dovetail.answers.status.pools import pools_of
from dovetail.disruption.budgets.allowances import allowances_for
from dovetail.disruption.due import next_due
from dovetail.disruption.explain import explain_node
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.requests import CreateRequest, DeletesRequest
from dovetail.model import names
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.ports.failures import Unreachable
from dovetail.ports.objects import MetadataChange
from dovetail.rules.brake.returned_moves import BRAKE, TAKEN, moves_brake, with_moved
from tests.activities.test_creating_claims import NODE, POOL
from tests.activities.test_gated_orders import OnePool
from tests.lifecycle.objects import a_joined_claim, a_joined_node, target_of
from worlds.disruption import HOUR, NOW, a_pair, a_pool, a_world
from worlds.fakes import FakeClaims, FakeNotices, FakeStarts, World, create_ties, delete_ports

SETTINGS = DisruptionSettings()


def remembering(*events: tuple[float, str, int], pool: NodePool | None = None) -> NodePool:
    """A pool after so many nodes were taken, or have returned, each so long before NOW."""
    found = pool or a_pool()
    for ago, what, nodes in events:
        found = with_moved(found, what, nodes, NOW - ago)
    return found


@pytest.mark.parametrize(
    ("events", "rest"),
    [
        ([], None),
        ([(HOUR, "taken", 4)], None),
        ([(HOUR, "taken", 4), (60, "returned", 2)], None),  # too few
        ([(HOUR, "taken", 9), (60, "returned", 4)], None),  # less than half
        ([(HOUR, "taken", 4), (60, "returned", 3)], BRAKE.rests.first),
        ([(HOUR, "taken", 4), (200, "returned", 2), (60, "returned", 1)], BRAKE.rests.first),  # together
        ([(HOUR, "taken", 6), (700, "returned", 3), (60, "returned", 3)], 2 * BRAKE.rests.first),
        ([(HOUR, "taken", 9), *[(3000 - 400 * n, "returned", 1) for n in range(8)]], BRAKE.rests.longest),
        ([(25 * HOUR, "taken", 9), (24 * HOUR, "returned", 9)], None),  # a day ago
    ],
)
def test_consolidation_rests_longer_each_time_half_of_what_it_took_comes_back(
    events: list[tuple[float, str, int]], rest: float | None
) -> None:
    brake = moves_brake(remembering(*events), NOW)

    if rest is None:
        assert brake is None
        return
    assert brake is not None
    assert 0 <= NOW + rest - brake.until <= 300 + 200
    assert moves_brake(remembering(*events), brake.until) is None


@pytest.mark.parametrize("text", ["", "x", ";", "1x1", "9x9;8x99999999", "1.2;3", "9" * 400 + "x1;", "1x1;2x5"])
def test_an_annotation_that_somebody_has_spoilt_counts_as_none(text: str) -> None:
    pool = replace(a_pool(), annotations={names.BREAKER: text})

    assert moves_brake(pool, NOW) is None
    assert moves_brake(remembering((60, "taken", 3), (30, "returned", 3), pool=pool), NOW) is not None


def test_it_holds_underutilized_alone_and_says_until_when_and_what_ends_it() -> None:
    pool = remembering((HOUR, "taken", 4), (0, "returned", 4))
    world = a_world([a_pair("n1"), a_pair("n2")], pools=[pool])
    fleet, until = Fleet(world, SETTINGS), NOW + BRAKE.rests.first

    found = {reason: allowances_for(fleet, reason)[pool.name] for reason in DisruptionReason}

    assert {reason for reason in found if found[reason].allowed == 0} == {DisruptionReason.UNDERUTILIZED}
    words = found[DisruptionReason.UNDERUTILIZED].held
    assert words.startswith("of 4 nodes that consolidation took within a day 4 were launched again: it rests until ")
    assert "`dovetail resume --pool a` ends that" in words
    assert next_due(fleet) == float(int(until))
    assert [each.held for each in explain_node(world, SETTINGS, "n1").allowances if each.held] == [words]
    [row] = pools_of(FleetFacts.of(world), SETTINGS, ())
    assert [(each.reason, each.why_not) for each in row.may_go if each.why_not] == [("Underutilized", words)]
    later = Fleet(replace(world, now=until), SETTINGS)
    assert allowances_for(later, DisruptionReason.UNDERUTILIZED)[pool.name].allowed > 0


class Kept(OnePool):
    """The pool, changed as it is written; `broken` refuses that."""

    def __init__(self, pool: NodePool, broken: bool = False) -> None:
        super().__init__(pool)
        self.pool, self.broken, self.writes = pool, broken, 0

    async def read(self, name: str) -> NodePool:
        return self.pool

    async def patch(self, pool: NodePool, change: MetadataChange) -> NodePool:
        if self.broken:
            raise Unreachable("NodePool/default", "no answer")
        assert change.annotations is not None
        kept = {key: value for key, value in change.annotations.items() if value is not None}
        self.pool, self.writes = replace(self.pool, annotations={**pool.annotations, **kept}), self.writes + 1
        return self.pool


async def taken(world: World, pools: Kept, reason: str = "Underutilized") -> None:
    claim, node = (
        a_joined_claim(annotations={names.OWNER: ActivityEnvironment.default_info().workflow_id}),
        a_joined_node(),
    )
    world.put(claim, node)
    returned = ReturnedMoves(pools, FakeNotices(world), world.now)
    step = DeleteClaims(delete_ports(world), FakeStarts(world), returned)
    target = replace(target_of(claim, node), pool=POOL.name)
    await ActivityEnvironment().run(step.delete_claims, DeletesRequest(targets=(target,), reason=reason))


async def launched(world: World, pools: Kept, nodes: int, **request: Any) -> None:
    returned = ReturnedMoves(pools, FakeNotices(world), world.now)
    step = CreateNodeClaims(
        FakeClaims(world), pools, FakeNotices(world), world.now, create_ties(world, returned=returned)
    )
    await ActivityEnvironment().run(
        step.create_node_claims,
        CreateRequest(plan_id=f"p{world.now()}", proposed=(NODE,) * nodes, type_lists=((),), **request),
    )


async def test_what_comes_back_is_written_on_the_pool_and_an_event_says_so() -> None:
    world, pools = World(), Kept(POOL)
    await launched(world, pools, 2)
    assert pools.writes == 0  # nothing was taken, and nothing is asked
    await taken(world, pools)
    pools.pool = with_moved(pools.pool, TAKEN, 2, world.now())

    await launched(world, pools, 1, reason="drifted")  # a replacement
    assert pools.writes == 1
    await launched(world, pools, 5)

    assert json.loads(pools.pool.annotations[names.BREAKER])["moves"] == [
        {"at": "1970-01-01T00:16:40Z", "what": what, "nodes": 3} for what in ("returned", "taken")
    ]
    [said] = [notice for notice in world.notices if notice.reason == "ConsolidationSlowed"]
    assert "of 3 nodes that consolidation took within a day 3 were launched again" in said.message
    await launched(world, pools, 1)
    assert pools.writes == 2  # no more can come back than was taken


async def test_an_empty_node_that_goes_counts_nothing_and_what_cannot_be_written_holds_nothing_up() -> None:
    world, pools = World(), Kept(POOL)
    await taken(world, pools, "Empty")
    assert pools.writes == 0

    world, pools = World(), Kept(POOL, broken=True)
    await taken(world, pools)
    assert world.claims["pool-1"].deleting_since is not None
