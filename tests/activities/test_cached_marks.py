"""A mark begins with what the watch has shown, and is turned down where that has changed since."""

from dataclasses import replace
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.messages.outcomes import MarkOutcome
from dovetail.messages.plans import DisruptionCommand, Seen
from dovetail.messages.requests import MarkRequest
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.scheduling.taints import Taint
from tests.lifecycle.objects import a_joined_claim, a_joined_node, target_of
from worlds.fakes import FakeLookups, World, mark_ports

OWNER = "c/disrupt/0199"
DISRUPTED = Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule")


class Late(FakeLookups):
    """A cache that shows claim and node as they were when it was made."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.claims, self.nodes = dict(world.claims), dict(world.nodes)

    def claim(self, name: str) -> NodeClaim | None:
        return self.claims.get(name)

    def node(self, name: str) -> Node | None:
        return self.nodes.get(name)


def a_world(**claim: Any) -> World:
    world = World()
    world.put(a_joined_claim(**claim), a_joined_node())
    return world


async def mark(world: World, cache: FakeLookups) -> MarkOutcome:
    claim, node = a_joined_claim(), a_joined_node()
    target = target_of(claim, node)
    command = DisruptionCommand(reason=DisruptionReason.DRIFTED, method="drift", targets=(target,))
    seen = Seen(taken_at=world.now(), versions=()).ready(world.now())
    step = MarkAndUnmarkNodes(mark_ports(world, lookups=cache), world.now)
    request = MarkRequest(owner=OWNER, command=command, seen=seen)
    return cast(MarkOutcome, await ActivityEnvironment().run(step.mark_nodes, request))


def is_marked(world: World) -> bool:
    return names.OWNER in world.claims["pool-1"].annotations or DISRUPTED in world.nodes["node-1"].taints


def reads(world: World) -> list[str]:
    return [line for line in world.ledger if line.startswith("get ")]


async def test_a_mark_reads_neither_claim_nor_node_that_the_watch_has_shown() -> None:
    world = a_world()

    assert (await mark(world, FakeLookups(world))).marked == ("pool-1",)

    assert is_marked(world) and reads(world) == []
    assert "list pods node-1" in world.ledger  # pods are always read live


@pytest.mark.parametrize("annotations", [{names.CANCEL: "not now"}, {names.REST: "5000/1/Empty"}])
async def test_a_disruption_that_was_called_off_after_the_cache_saw_the_claim_is_not_begun(
    annotations: dict[str, str],
) -> None:
    world = a_world()
    cache = Late(world)
    world.put(replace(world.claims["pool-1"], annotations=annotations))

    outcome = await mark(world, cache)

    assert outcome.marked == () and not is_marked(world)
    assert dict(world.claims["pool-1"].annotations) == annotations


async def test_another_owners_mark_that_the_cache_has_not_seen_stands() -> None:
    world = a_world()
    cache = Late(world)
    world.put(replace(world.claims["pool-1"], annotations={names.OWNER: "c/disrupt/other"}))

    [(_, why)] = (await mark(world, cache)).refused

    assert why == "already marked by c/disrupt/other"
    assert world.claims["pool-1"].annotations == {names.OWNER: "c/disrupt/other"}
    assert DISRUPTED not in world.nodes["node-1"].taints


async def test_a_node_that_was_protected_after_the_cache_saw_it_is_left_alone() -> None:
    world = a_world()
    cache = Late(world)
    world.put(replace(world.nodes["node-1"], annotations={names.DO_NOT_DISRUPT: "true"}))

    assert (await mark(world, cache)).marked == () and not is_marked(world)


async def test_a_mark_that_was_begun_before_is_judged_by_what_the_server_has() -> None:
    """The second try: the cache shows the owner, so nothing would be written that its version could guard."""
    world = a_world(annotations={names.OWNER: OWNER})
    cache = Late(world)
    world.put(replace(world.claims["pool-1"], annotations={names.OWNER: OWNER, names.CANCEL: "not now"}))

    assert (await mark(world, cache)).marked == () and not is_marked(world)
    assert "get claim pool-1" in world.ledger


async def test_another_node_that_has_taken_the_name_is_not_tainted() -> None:
    world = a_world()
    cache = Late(world)
    world.put(replace(world.nodes["node-1"], uid="another", provider_id="aws:///zone/i-2"))

    assert (await mark(world, cache)).marked == () and not is_marked(world)


async def test_a_mark_takes_off_the_deadline_of_a_delete_that_never_came() -> None:
    """DIS-12: a Karpenter wrote it, and the pods would be forced as soon as the node leaves for whatever reason."""
    world = a_world(annotations={names.TERMINATION_DEADLINE: "2026-01-01T00:00:00Z"})

    outcome = await mark(world, Late(world))

    assert outcome.marked == ("pool-1",)
    assert names.TERMINATION_DEADLINE not in world.claims["pool-1"].annotations
