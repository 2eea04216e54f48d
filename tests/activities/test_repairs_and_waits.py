"""The bound of a repair is its pods': hooks and volumes of its node go by what the claim gives it itself (GCR-20)."""

import asyncio
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
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.objects.workloads import VolumeAttachment
from tests.activities.test_departing import an_instance
from tests.activities.test_gated_orders import UNHEALTHY, carry_out, silent
from tests.activities.test_rebooting import Scene
from tests.activities.test_repairing import OWNER, SICK, Policies, a_world, deleted, mark
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod, target_of
from worlds.fakes import FakeCloud, World, departure_ports, drain_ports, unlimited
from worlds.fakes.pods import PodsMadeAnew
from worlds.fakes.ports import detach_ports
from worlds.holds import forced_by, held

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
    world.put(held := a_web_pod("held", node_name="node-0", do_not_disrupt="true"))
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


@pytest.mark.parametrize("hook_off", [None, 3500.0])
@pytest.mark.parametrize("bounded", [True, False])
async def test_a_node_that_is_repaired_goes_by_its_own_deadline_whatever_hooks_hold_its_pods(
    bounded: bool, hook_off: float | None
) -> None:
    """TRM-47: as one that leaves for another reason does; the bound of its repair begins anew, and ends no later."""
    world, ref = await left_by(a_repair, **{PRE_DRAIN: "mesh-team"})
    claim = world.claims[ref.name]
    began, own = claim.deleting_since or 0.0, 3600.0
    kept = dict(claim.annotations)
    if not bounded:
        del kept[names.TERMINATION_DEADLINE]
    world.put(replace(claim, termination_grace=own, annotations=kept))
    world.put(a_web_pod("held", node_name="node-0", do_not_disrupt="true"))
    if hook_off is not None:
        world.at(began + hook_off, lambda: without(world, ref.name, PRE_DRAIN))
    begin = BeginAndEndDeparture(departure_ports(world, cloud=FakeCloud(world)), world.now)
    departure = await begin.begin_departure(ref)
    ports = drain_ports(world, repairs=LiveRepairs(Policies(False), world.now, True))  # type: ignore[arg-type]
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id=OWNER)

    drain = DrainNode(ports, unlimited(EvictionPace(world.now, world.pause)), world.now, world.pause).drain_node
    async with asyncio.timeout(60.0):
        await environment.run(drain, departure)

    assert began + own - 60.0 < world.clock <= began + own + 5.0


async def test_an_instance_ends_though_its_pod_was_made_anew_after_its_drain_was_forced() -> None:
    """TRM-14: nobody waits for it, neither the drain before the delete nor the end of the instance after it."""
    world, claim = World(), a_joined_claim()
    node = replace(a_joined_node(conditions=READY), created=500.0)
    marks = [(names.REGISTERED_CONDITION, ""), (names.DISRUPTION_REASON, "Drifted")]
    said = [Condition(type=kind, status="True", reason=why, message=why, changed=1000.0) for kind, why in marks]
    forced = held(1001.0, forced=forced_by(1100.0))
    claim = replace(
        claim,
        finalizers=(names.TERMINATION_FINALIZER,),
        conditions=(*claim.conditions, *said),
        annotations={**claim.annotations, names.OWNER: OWNER, **forced},
    )
    world.put(claim, node, replace(a_web_pod("app", node_name=node.name), created=600.0))
    world.instances = {claim.provider_id: an_instance(claim.provider_id, claim.uid)}
    pods, cloud = PodsMadeAnew(world, until=1e9), FakeCloud(world)
    ref = ClaimRef(name=claim.name, uid=claim.uid, pool="pool")
    begin = BeginAndEndDeparture(departure_ports(world, cloud=cloud), world.now)
    begin.holds.pods = pods
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id=OWNER)
    pace = unlimited(EvictionPace(world.now, world.pause))
    drain = DrainNode(drain_ports(world, pods=pods), pace, world.now, world.pause).drain_node
    before = Departure(
        claim=ref, provider_id=claim.provider_id, nodes=(node.name,), node_uids=(node.uid,), reason="Drifted"
    )
    await environment.run(drain, before)
    world.put(replace(world.claims[claim.name], deleting_since=world.clock + 1.0))
    world.clock += 2.0

    departure = await begin.begin_departure(ref)
    await environment.run(drain, departure)
    ended = await TerminateInstance(begin.known, cloud, world.now, begin, world.pause).terminate_instance(departure)

    assert "is gone" in ended.message
