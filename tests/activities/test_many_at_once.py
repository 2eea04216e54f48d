"""Hundreds of marks and deletes in one step: side by side, and a retry goes on where the first try was."""

import asyncio
from dataclasses import replace
from typing import Any

from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.delete_claim import AT_ONCE
from dovetail.activities.disruption.mark_and_unmark_nodes import AT_ONCE as MARKS_AT_ONCE
from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.messages.outcomes import MarkOutcome
from dovetail.messages.plans import DisruptionCommand, Seen, Target
from dovetail.messages.requests import DeletesRequest, MarkRequest, UnmarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from tests.lifecycle.objects import a_joined_claim, a_joined_node, target_of
from worlds.fakes import FakeClaims, FakeLookups, World, deleting, mark_ports

MANY = 120
ASKER = ActivityEnvironment().info.workflow_id or ""  # of the workflow that asks for a step here


class SlowClaims(FakeClaims):
    """An API server that answers after a moment, and how many requests it has at once."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.under_way = self.most = 0

    async def _slowly(self) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0.002)
        self.under_way -= 1

    async def read(self, name: str) -> NodeClaim | None:
        await self._slowly()
        return await super().read(name)

    async def delete(self, name: str, uid: str) -> int:
        await self._slowly()
        return await super().delete(name, uid)


def a_fleet(count: int = MANY, mark: str = "") -> tuple[World, tuple[Target, ...]]:
    """`mark`: of whose plan they are already."""
    world = World()
    targets = []
    for number in range(count):
        marked = a_joined_claim(f"claim-{number}", annotations={names.OWNER: mark} if mark else {})
        claim = replace(marked, uid=f"uid-{number}", provider_id=f"test://{number}")
        node = replace(a_joined_node(f"node-{number}"), provider_id=f"test://{number}")
        world.put(claim, node)
        targets.append(target_of(claim, node))
    return world, tuple(targets)


async def run(step: Any, request: Any, done: tuple[str, ...] = ()) -> Any:
    """The step, in its second try where an earlier one has told what it had done."""
    environment = ActivityEnvironment()
    if done:
        environment.info = replace(environment.info, attempt=2, heartbeat_details=["", list(done)])
    return await environment.run(step, request)


def a_mark(world: World, targets: tuple[Target, ...]) -> MarkRequest:
    command = DisruptionCommand(reason="Empty", method="emptiness", targets=targets)
    return MarkRequest(owner="c/disrupt/p", command=command, seen=Seen(taken_at=world.clock))


async def test_all_claims_of_a_command_are_deleted_twenty_at_a_time() -> None:
    world, targets = a_fleet(mark=ASKER)
    claims = SlowClaims(world)
    step = deleting(world, claims=claims)

    await run(step.delete_claims, DeletesRequest(targets=targets, reason="Empty"))

    assert all(claim.deleting_since is not None for claim in world.claims.values())
    assert claims.most == AT_ONCE


async def test_a_second_try_deletes_the_others_only() -> None:
    world, targets = a_fleet(5, mark=ASKER)
    step = deleting(world)

    await run(step.delete_claims, DeletesRequest(targets=targets, reason="Empty"), ("claim-0", "claim-3"))

    assert sorted(n for n, c in world.claims.items() if c.deleting_since is None) == ["claim-0", "claim-3"]


async def test_marks_are_made_ten_at_a_time_and_taken_off_likewise() -> None:
    """Five hundred one after another, six requests each, did not fit into the minute that the step has."""
    world, targets = a_fleet()
    claims = SlowClaims(world)
    marking = MarkAndUnmarkNodes(
        mark_ports(world, claims=claims, lookups=FakeLookups(World())), world.now
    )  # all is read live

    outcome: MarkOutcome = await run(marking.mark_nodes, a_mark(world, targets))
    most_marked, claims.most = claims.most, 0
    tainted = sum(any(t.key == names.DISRUPTED_TAINT for t in n.taints) for n in world.nodes.values())
    refs = tuple(ClaimRef(name=t.claim, uid=t.claim_uid) for t in targets)
    await run(marking.unmark_nodes, UnmarkRequest(owner="c/disrupt/p", claims=refs))

    assert outcome.marked == tuple(t.claim for t in targets)
    assert (tainted, most_marked, claims.most) == (MANY, MARKS_AT_ONCE, MARKS_AT_ONCE)
    assert not any(n.taints for n in world.nodes.values())
    assert {write.kind for write in outcome.writes} == {"Node", "NodeClaim"} and len(outcome.writes) == 2


async def test_a_second_try_of_a_mark_reports_what_the_first_has_marked() -> None:
    world, targets = a_fleet(3)
    marking = MarkAndUnmarkNodes(
        mark_ports(world),
        world.now,
    )

    outcome: MarkOutcome = await run(marking.mark_nodes, a_mark(world, targets), ("claim-1",))

    assert outcome.marked == ("claim-0", "claim-1", "claim-2")
    assert sorted(n.name for n in world.nodes.values() if n.taints) == ["node-0", "node-2"]
