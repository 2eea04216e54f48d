"""A Node says how far its leaving has come, and nothing waits or fails for that."""

import asyncio
from dataclasses import replace
from typing import cast

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.shared.writes import announcements
from dovetail.messages.outcomes import DrainOutcome, MarkOutcome
from dovetail.messages.plans import DisruptionCommand, Seen
from dovetail.messages.requests import MarkRequest, UnmarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Condition, Node
from dovetail.model.own.drain_rules import Blocker, Level
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.ports.failures import Forbidden
from dovetail.termination.leaving import EXCLUDE_LABEL, leaving_labels, leaving_taints
from tests.activities.test_draining import Stage, new_stage
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod, target_of
from worlds.fakes import FakeNodes, World, mark_ports
from worlds.holds import held

OWNER = "c/disrupt/0199"
TARGET = target_of(a_joined_claim(), a_joined_node())


def says(world: World) -> dict[str, str]:
    ours = ("MaintenancePlanned", "DrainInProgress", "Drained")
    return {each.type: each.status for each in world.nodes["node-1"].conditions if each.type in ours}


def writes(world: World) -> list[str]:
    return [line for line in world.ledger if line.startswith("node node-1 says")]


async def mark(world: World, nodes: FakeNodes, *, drain_first: bool = True) -> MarkOutcome:
    command = DisruptionCommand(
        reason=DisruptionReason.DRIFTED, method="drift", targets=(TARGET,), drain_first=drain_first
    )
    seen = Seen(taken_at=world.now(), versions=()).ready(world.now())
    request = MarkRequest(owner=OWNER, command=command, seen=seen)
    step = MarkAndUnmarkNodes(mark_ports(world, nodes=nodes), world.now)
    return cast(MarkOutcome, await ActivityEnvironment().run(step.mark_nodes, request))


async def unmark(world: World, nodes: FakeNodes) -> None:
    request = UnmarkRequest(owner=OWNER, claims=(ClaimRef(name="pool-1", uid="uid-pool-1"),))
    step = MarkAndUnmarkNodes(mark_ports(world, nodes=nodes), world.now)
    await ActivityEnvironment().run(step.unmark_nodes, request)


async def drain(stage: Stage, nodes: FakeNodes) -> DrainOutcome:
    stage.drain.nodes = nodes
    return await stage.run()


async def test_a_marked_node_says_that_its_leaving_is_planned_and_an_undo_takes_that_back() -> None:
    world = World()
    world.put(a_joined_claim(), a_joined_node())

    await mark(world, FakeNodes(world))
    planned = says(world)
    await unmark(world, FakeNodes(world))

    assert (planned, says(world)) == ({"MaintenancePlanned": "True"}, {"MaintenancePlanned": "False"})
    assert len(writes(world)) == 2
    [ready] = [each for each in world.nodes["node-1"].conditions if each.type == "Ready"]
    assert ready.status == "True"  # others' conditions stay


async def test_a_node_that_is_deleted_at_once_has_all_that_a_leaving_one_carries_in_one_write() -> None:
    """TRM-7. It says nothing of a plan; an undo takes all of it back."""
    world = World()
    world.put(a_joined_claim(), a_joined_node())
    before = world.nodes["node-1"].labels

    await mark(world, FakeNodes(world), drain_first=False)
    marked = world.nodes["node-1"]
    await unmark(world, FakeNodes(world))
    unmarked = world.nodes["node-1"]

    assert (leaving_labels(marked), leaving_taints(marked), writes(world)) == ({}, None, [])
    assert world.ledger.count("patch node node-1") == 2
    assert (unmarked.labels, unmarked.taints) == (before, ())


async def test_a_node_that_waits_for_something_serves_load_balancers_until_it_is_deleted() -> None:
    world = World()
    world.put(a_joined_claim(), a_joined_node())

    await mark(world, FakeNodes(world))

    assert EXCLUDE_LABEL not in world.nodes["node-1"].labels


async def test_a_node_that_a_mark_passes_by_says_nothing() -> None:
    world = World()
    world.put(a_joined_claim(), a_joined_node(), a_web_pod(annotations={names.DO_NOT_DISRUPT: "true"}))

    assert (await mark(world, FakeNodes(world))).refused != ()
    assert writes(world) == []


async def test_a_drain_says_that_it_goes_on_and_then_that_it_is_done_with_a_write_for_each() -> None:
    stage = new_stage()
    stage.holds(a_web_pod("web-1"))
    during: list[dict[str, str]] = []
    stage.world.at(1000.5, lambda: during.append(says(stage.world)))

    await drain(stage, FakeNodes(stage.world))
    await drain(stage, FakeNodes(stage.world))  # another worker's second try

    going, done = {"DrainInProgress": "True", "Drained": "False"}, {"DrainInProgress": "False", "Drained": "True"}
    assert during == [going]
    assert says(stage.world) == done
    assert len(writes(stage.world)) == 2  # and nothing is left of which the second could say more


async def test_a_drain_that_is_taken_up_in_its_middle_says_nothing_twice() -> None:
    stage = new_stage()
    node = a_joined_node(deleting_since=1000.0)
    going = (Condition(type="DrainInProgress", status="True"), Condition(type="Drained", status="False"))
    stage.world.put(replace(node, conditions=(*node.conditions, *going)))

    await drain(stage, FakeNodes(stage.world))

    assert writes(stage.world) == ["node node-1 says Drained=True DrainInProgress=False"]


class Forbidding(FakeNodes):
    """A worker without the right."""

    async def set_conditions(self, node: Node, conditions: tuple[Condition, ...]) -> None:
        raise Forbidden(f"Node/{node.name}", "cannot patch resource nodes/status")


class Silent(FakeNodes):
    """An API server that does not answer."""

    async def set_conditions(self, node: Node, conditions: tuple[Condition, ...]) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize("unable", [Forbidding, Silent])
async def test_what_cannot_be_said_holds_up_neither_a_mark_nor_an_undo_nor_a_drain(
    unable: type[FakeNodes], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(announcements, "LONGEST", 0.01)
    world, stage = World(), new_stage()
    world.put(a_joined_claim(), a_joined_node())
    stage.holds(a_web_pod("web-1"))

    assert (await mark(world, unable(world))).marked == ("pool-1",)
    said = Condition(type="MaintenancePlanned", status="True")
    world.put(replace(world.nodes["node-1"], conditions=(*world.nodes["node-1"].conditions, said)))
    await unmark(world, unable(world))
    assert (await drain(stage, unable(stage.world))) == DrainOutcome(message="drained")

    assert names.OWNER not in world.claims["pool-1"].annotations
    assert "Node node-1 does not say MaintenancePlanned=True" in caplog.text


async def test_what_was_said_of_a_held_drain_goes_with_the_mark_and_so_does_a_deadline_without_a_delete() -> None:
    """TRM-49, DIS-12. The pods of the node's next disruption would else be deleted at once."""
    world, deadline = World(), {names.TERMINATION_DEADLINE: "2030-01-01T00:00:00Z"}
    for levels in (tuple(Level), (Level.NOTIFY,)):
        world.put(a_joined_claim(), a_joined_node())
        await mark(world, FakeNodes(world))
        claim = world.claims["pool-1"]
        said = {**held(1.9e9, Blocker.PDB_BLOCKS, *levels), **deadline, names.DECISION: "force"}
        world.put(replace(claim, annotations={**claim.annotations, **said}))
        await unmark(world, FakeNodes(world))

        assert dict(world.claims["pool-1"].annotations) == {}
