"""A reboot in the simulated world, by the step that a worker takes: the node falls silent, boots and is well again."""

from dovetail.activities.orders.reboot_nodes import RebootNodes, RebootPorts
from dovetail.activities.shared.looks.live_repairs import LiveRepairs
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.evictor import Evictor
from dovetail.activities.termination.owner_turns import OwnerTurns
from dovetail.adapters.aws.catalogues import REBOOTING_POLICIES
from dovetail.messages.orders import RebootNode
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Node, RepairPolicy
from dovetail.model.values.time import format_time
from dovetail.notices.notice import Notice
from dovetail.wiring.simulated import SimulatedAdapter
from tests.adapters.simulator.conftest import Stage
from tests.adapters.simulator.test_player import a_launch, the_node
from worlds.fakes import FakeLookups, World, holds


class Policies:
    """AWS's, with the gate open."""

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return REBOOTING_POLICIES


class Said:
    """The reasons of the notices."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    async def publish(self, *notices: Notice) -> None:
        self.reasons += [notice.reason for notice in notices]


async def test_a_node_with_a_broken_gpu_is_rebooted_and_stays(stage: Stage, adapter: SimulatedAdapter) -> None:
    """GCR-19."""
    instance = await a_launch(adapter)
    stage.pass_time(3)

    async def node() -> Node:
        return await the_node(stage, adapter, instance)

    def condition(kind: str, status: str, reason: str, seconds: float) -> dict[str, str]:
        since = format_time(stage.clock.now - seconds)
        return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": since}

    async def pause(seconds: float) -> None:
        stage.pass_time(seconds)

    stage.pass_time(700)  # no condition is older than its node
    before = await node()
    initialized = [condition(names.INITIALIZED_CONDITION, "True", "Initialized", 0)]
    status = {"providerID": instance.provider_id, "nodeName": before.name, "conditions": initialized}
    stage.world.patch("NodeClaim", "default-1", {"status": status}, "status")
    conditions = [
        condition(names.READY, "True", "KubeletReady", 0),
        condition("AcceleratedHardwareReady", "False", "NvidiaXID48Error", 660),
    ]
    stage.world.patch("Node", before.name, {"status": {"conditions": conditions}}, "status")
    stage.world.patch("Node", before.name, {"spec": {"taints": None}})
    await node()
    claim = await adapter.claims.read("default-1")
    assert claim is not None
    said, clock = Said(), stage.clock
    ports = RebootPorts(
        claims=adapter.claims,
        nodes=adapter.nodes,
        pods=adapter.pods,
        notices=said,
        cloud=adapter.cloud,
        repairs=LiveRepairs(Policies(), clock, True),  # type: ignore[arg-type]
        pauses=FakeLookups(World()),  # nobody pauses
        holds=holds(World()),
        turns=OwnerTurns(0.25, tuple, clock),
    )
    evictor = Evictor(adapter.pods, said, EvictionPace(clock, pause), clock)
    steps = RebootNodes(ports, evictor, clock, pause=pause)
    order = RebootNode(claim=ClaimRef(name=claim.name, uid=claim.uid), node=before.name)

    assert await steps.begin(claim) == ""
    messages = [(await steps.reboot_node(order)).message]
    silent = await node()
    for _ in range(20):
        stage.pass_time(15)
        messages.append((await steps.reboot_node(order)).message)
        if messages[-1] == "rebooted":
            break

    after, kept = await node(), await adapter.claims.read("default-1")
    assert (messages[0], messages[-1]) == ("the cloud reboots it", "rebooted")
    assert [taint.key for taint in silent.taints] == [names.REBOOTING_TAINT]
    assert (after.uid, after.boot_id != before.boot_id, after.taints) == (before.uid, True, ())
    assert [(kind.type, kind.status) for kind in after.conditions] == [("Ready", "True")]
    assert kept is not None
    rebooting = kept.condition(names.REBOOTING)
    assert rebooting is not None
    assert (rebooting.status, rebooting.reason, kept.is_rebooting) == ("False", "RebootSucceeded", False)
    assert len([entry for entry in stage.world.ledger() if entry.operation == "cloud:reboot"]) == 1
    assert [one.state for one in stage.world.live_instances()] == ["running"]
    assert said.reasons == ["RebootObserved"]
