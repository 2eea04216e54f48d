"""The bound of a repair is its pods': hooks and volumes of its node go by what the claim gives it itself (GCR-20)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.shared.looks.live_repairs import LiveRepairs
from dovetail.activities.termination.await_detached import AwaitDetached
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.messages.requests import DeleteRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.objects.workloads import VolumeAttachment
from tests.activities.test_departing import an_instance
from tests.activities.test_gated_orders import UNHEALTHY, carry_out, silent
from tests.activities.test_rebooting import Scene
from tests.activities.test_repairing import OWNER, SICK, Policies, a_world, deleted, mark
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_pod, target_of
from worlds.fakes import FakeCloud, World, departure_ports, drain_ports, unlimited
from worlds.fakes.ports import detach_ports

READY: Final = (Condition(type=names.READY, status="True"),)
PRE_DRAIN: Final = names.PRE_DRAIN_HOOK + "mesh"
PRE_TERMINATE: Final = names.PRE_TERMINATE_HOOK + "backup"


async def a_repair() -> World:
    world = a_world({"conditions": (SICK,)})
    assert await mark(world) == ""
    claim = world.claims["pool-0"]
    world.put(replace(claim, finalizers=(names.TERMINATION_FINALIZER,)))
    target = replace(target_of(claim, world.nodes["node-0"]), grace=300.0)
    await deleted(world, DeleteRequest(name=claim.name, uid=claim.uid, target=target, reason="Unhealthy"))
    return world


async def a_repair_of_before() -> World:
    world = World()
    world.put(a_joined_claim(), a_joined_node(conditions=(silent(0.0),)))
    await carry_out(world, UNHEALTHY)
    return world


async def a_reboot_in_vain() -> World:
    scene = Scene()
    scene.world.put(replace(scene.claim, finalizers=(names.TERMINATION_FINALIZER,)))
    await scene.until("the node did not come back within twenty minutes")
    return scene.world


REPAIRS: Final = (a_repair, a_repair_of_before, a_reboot_in_vain)


async def left_by(repair: Callable[[], Awaitable[World]], **annotations: str) -> tuple[World, ClaimRef]:
    """What a repair has deleted; its kubelet answers, and its instance runs."""
    world = await repair()
    (claim,) = [claim for claim in world.claims.values() if claim.deleting_since is not None]
    assert names.TERMINATION_DEADLINE in claim.annotations
    registered = Condition(type=names.REGISTERED_CONDITION, status="True")
    kept = tuple(each for each in claim.conditions if each.type != names.REGISTERED_CONDITION)
    world.put(replace(claim, annotations={**claim.annotations, **annotations}, conditions=(*kept, registered)))
    for node in world.nodes.values():
        if node.provider_id == claim.provider_id:
            world.put(replace(node, conditions=READY))
    world.instances = {claim.provider_id: an_instance(claim.provider_id, claim.uid)}
    return world, ClaimRef(name=claim.name, uid=claim.uid, pool="pool")


def without(world: World, name: str, hook: str) -> None:
    claim = world.claims[name]
    world.put(replace(claim, annotations={key: text for key, text in claim.annotations.items() if key != hook}))


@pytest.mark.parametrize("repair", REPAIRS)
@pytest.mark.parametrize("own", [None, 1200.0])
async def test_a_hook_holds_the_end_of_an_instance_that_is_repaired(
    repair: Callable[[], Awaitable[World]], own: float | None
) -> None:
    """TRM-47: until it is taken off, or the claim's own terminationGracePeriod is over."""
    world, ref = await left_by(repair, **{PRE_TERMINATE: "backup-team"})
    world.put(replace(world.claims[ref.name], termination_grace=own))
    began, cloud = world.claims[ref.name].deleting_since or 0.0, FakeCloud(world)
    world.at(began + 1800.0, lambda: without(world, ref.name, PRE_TERMINATE))
    begin = BeginAndEndDeparture(departure_ports(world, cloud=cloud), world.now)
    departure = await begin.begin_departure(ref)

    ended = await TerminateInstance(begin.known, cloud, world.now, begin, world.pause).terminate_instance(departure)

    assert ended.gone is not None and 0.0 <= ended.gone - began - (own or 1800.0) < 30.0


@pytest.mark.parametrize("repair", REPAIRS)
async def test_volumes_of_a_node_that_is_repaired_are_waited_for(repair: Callable[[], Awaitable[World]]) -> None:
    world, ref = await left_by(repair)
    departure = await BeginAndEndDeparture(departure_ports(world, cloud=FakeCloud(world)), world.now).begin_departure(
        ref
    )
    world.attachments["a"] = VolumeAttachment(name="a", node_name=departure.nodes[0], volume_name="v")
    world.at(world.clock + 900.0, world.attachments.clear)

    outcome = await AwaitDetached(detach_ports(world), world.now, world.pause).await_detached(departure)

    assert outcome.message == "volumes are off"


async def test_a_hook_holds_the_first_eviction_of_a_repair_whose_bound_begins_anew_when_it_is_off() -> None:
    """TRM-47. Else its pods would have no second of their grace."""
    world, ref = await left_by(a_repair, **{PRE_DRAIN: "mesh-team"})
    began = world.clock
    world.put(held := a_pod("held", node_name="node-0", do_not_disrupt="true"))
    world.at(began + 1800.0, lambda: without(world, ref.name, PRE_DRAIN))
    world.at(began + 9000.0, lambda: world.kill(held))
    departure = await BeginAndEndDeparture(departure_ports(world, cloud=FakeCloud(world)), world.now).begin_departure(
        ref
    )
    ports = drain_ports(world, repairs=LiveRepairs(Policies(False), world.now, True))  # type: ignore[arg-type]
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id=OWNER)
    pace = unlimited(EvictionPace(world.now, world.pause))

    await environment.run(DrainNode(ports, pace, world.now, world.pause).drain_node, departure)

    (forced,) = [line.split() for line in world.ledger if line.startswith("force")]
    assert forced[1] == "held" and 1.0 < float(forced[2]) <= 30.0
    assert began + 2060.0 < float(forced[3]) < began + 2160.0
