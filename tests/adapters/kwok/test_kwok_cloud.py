"""What is the cloud kwok's own beside the contracts of its ports: booting, ending, announcing, and whose Node it is."""

import asyncio
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dovetail.adapters.kwok import names as own
from dovetail.adapters.kwok.annotated_nodes import AnnotatedNodes
from dovetail.adapters.kwok.interruptions import SPOT_SECONDS, KwokInterruptions
from dovetail.adapters.kwok.upkeep import KwokUpkeep
from dovetail.answers.doctor.cluster import warnings_check
from dovetail.messages.interruptions import Warned
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pods import Expression
from dovetail.model.scheduling.taints import Taint
from dovetail.ports.cloud import Instance, LaunchRefused, Prepared
from dovetail.ports.failures import NotSeenYet, Refused
from dovetail.ports.view import ClusterView
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World
from worlds.kwok import KwokParts, StoredNodes

CLAIM = NodeClaim(
    name="web-1",
    uid="u-1",
    labels={names.NODE_POOL: "web", "team": "a"},
    node_class=NodeClassRef(group=own.GROUP, kind=own.KIND, name="default"),
    requirements=(Expression(key=names.CAPACITY_TYPE, operator="In", values=("spot",)),),
    requests={"cpu": 10**9},
    taints=(Taint(key="mine", effect="NoSchedule"),),
    capacity={},
    allocatable={},
)


@dataclass
class View:
    """What the watch has."""

    of: StoredNodes
    reads: list[Any] = field(default_factory=list)

    def snapshot(self, reads: Any) -> Any:
        self.reads.append(reads)
        return SimpleNamespace(nodes=self.of.nodes())

    def stale(self) -> dict[str, str]:
        return {}

    def revision(self) -> int:
        return self.of.version

    def revision_of(self, kinds: Any) -> int:
        return self.of.version


def a_view(parts: KwokParts) -> ClusterView:
    return cast(ClusterView, View(parts.nodes))


async def launched(parts: KwokParts, claim: NodeClaim = CLAIM, token: str = "t") -> Instance:
    prepared = await parts.cloud.prepare(claim)
    assert isinstance(prepared, Prepared)
    instance = await parts.cloud.launch(claim, prepared.request, token)
    assert isinstance(instance, Instance)
    return instance


def a_cloud(**spec: Any) -> KwokParts:
    parts = KwokParts()
    parts.apply("default", **spec)
    return parts


async def test_a_node_joins_with_the_claims_labels_and_taints_and_is_played() -> None:
    parts = a_cloud()
    instance = await launched(parts)

    [node] = parts.nodes.nodes().values()
    assert (node.provider_id, instance.provider_id) == (f"kwok://{node.name}", f"kwok://{node.name}")
    assert node.annotations[own.PLAYED] == own.FAKE
    assert {(taint.key, taint.effect) for taint in node.taints} == {
        (names.UNREGISTERED_TAINT, "NoExecute"),
        ("mine", "NoSchedule"),
    }
    expected = {names.NODE_POOL: "web", "team": "a", names.CAPACITY_TYPE: "spot", names.HOSTNAME: node.name}
    assert expected.items() <= node.labels.items()
    assert node.capacity["cpu"] - node.allocatable["cpu"] == 10**8


async def test_a_class_sizes_its_nodes() -> None:
    parts = a_cloud(maxPods=7, reservedResources={"cpu": "1"})
    instance = await launched(parts)

    assert instance.capacity["pods"] == 7
    assert instance.capacity["cpu"] - instance.allocatable["cpu"] == 10**9
    assert instance.capacity["memory"] == instance.allocatable["memory"]


async def test_a_claim_that_no_type_has_room_for_is_refused() -> None:
    """As where a NodeOverlay gives a capacity on which its plan counted."""
    answer = await a_cloud().cloud.prepare(replace(CLAIM, requests={"enclaves.example/any": 1}))

    assert isinstance(answer, LaunchRefused)


async def test_an_instance_that_boots_joins_when_its_time_has_come() -> None:
    parts = a_cloud(nodeRegistrationDelay="30s")
    instance = await launched(parts)
    upkeep = KwokUpkeep(a_view(parts), parts.nodes, parts.port, parts.clock)
    [node] = parts.nodes.nodes().values()
    assert (instance.state, node.provider_id) == ("pending", "")
    assert node.annotations[own.PLAYED] == own.FAKE, "kwok takes the lease of a Node that is made so, and of no other"
    assert [each.provider_id for each in await parts.cloud.list_instances()] == [instance.provider_id]

    assert await upkeep.keep() == parts.nodes.now + 30
    assert parts.nodes.nodes()[node.name].provider_id == ""
    parts.nodes.now += 30
    await upkeep.keep()

    [node] = parts.nodes.nodes().values()
    assert node.provider_id == instance.provider_id
    [found] = await parts.cloud.list_instances()
    assert found.state == "running"


async def test_a_node_that_waits_for_its_finalizers_is_an_instance_until_it_is_terminated() -> None:
    """A Node is deleted long before its instance: draining is what lies in between."""
    parts = a_cloud()
    instance = await launched(parts)
    [node] = parts.nodes.nodes().values()
    parts.nodes.stored[node.name]["metadata"]["finalizers"] = [names.TERMINATION_FINALIZER]
    await parts.port.delete(node.name, node.uid)

    found = await parts.cloud.find(provider_id=instance.provider_id)
    assert found is not None and found.state == "running"
    assert await parts.cloud.terminate(instance.provider_id, "web-1") == "terminating"
    assert await parts.cloud.terminate(instance.provider_id, "web-1") == "gone"
    assert await parts.cloud.find(claim_uid=CLAIM.uid) is None
    assert node.name in parts.nodes.stored


async def test_what_is_not_the_claims_or_not_an_instance_is_not_terminated() -> None:
    parts = a_cloud()
    instance = await launched(parts)
    with pytest.raises(Refused, match="of NodeClaim web-1"):
        await parts.cloud.terminate(instance.provider_id, "other")
    await parts.nodes.create("real", {"metadata": {"labels": {}}, "spec": {"providerID": "kind://docker/kind/real"}})
    with pytest.raises(Refused, match="no instance of this cloud"):
        await parts.cloud.terminate("kwok://real", "")


async def test_an_announcement_stands_until_it_is_acknowledged_and_spot_is_taken_two_minutes_later() -> None:
    parts = a_cloud()
    instance = await launched(parts)
    view = a_view(parts)
    name = instance.provider_id.rpartition("/")[2]
    interruptions = KwokInterruptions(view, parts.nodes, parts.shortages, parts.clock)
    parts.nodes.annotate(name, **{own.INTERRUPT: "spot"})

    [message] = await interruptions.receive()
    assert message.interruption is not None
    assert (message.interruption.reason, message.interruption.instances) == ("spot_interrupted", (name,))
    parts.nodes.now += 21  # not acknowledged: it comes again, and is the same
    [again] = await interruptions.receive()
    assert again.interruption is not None and again.interruption.id == message.interruption.id

    await interruptions.learn_from(message.interruption, replace(CLAIM, labels=instance.labels))
    await interruptions.acknowledge([message.receipt])
    assert own.INTERRUPT not in parts.nodes.nodes()[name].annotations
    assert len(parts.shortages.known()) == 1

    upkeep = KwokUpkeep(view, parts.nodes, parts.port, parts.clock)
    assert await upkeep.keep() == parts.nodes.now // 1 + 60
    parts.nodes.now += SPOT_SECONDS
    await upkeep.keep()
    assert await parts.cloud.find(provider_id=instance.provider_id) is None


async def test_an_announcement_is_borne_out_by_what_stands_on_the_node_before_and_after_it_is_acknowledged() -> None:
    """And one that stands there not is not, though its workflow is started with it."""
    parts = a_cloud()
    name = (await launched(parts)).provider_id.rpartition("/")[2]
    interruptions = KwokInterruptions(a_view(parts), parts.nodes, parts.shortages, parts.clock)
    true: Warned = (name, "instance_stopped")
    forged: Warned = (name, "scheduled_change")
    gone: Warned = ("gone", "spot_interrupted")

    async def borne_out() -> frozenset[Warned]:
        return await interruptions.borne_out([true, forged, gone])

    assert await borne_out() == {gone}
    parts.nodes.annotate(name, **{own.INTERRUPT: "stopped"})
    assert await borne_out() == {true, gone}
    [message] = await interruptions.receive()
    await interruptions.acknowledge([message.receipt])
    assert own.INTERRUPT not in parts.nodes.nodes()[name].annotations
    assert await borne_out() == {true, gone}


async def test_an_announcement_that_nobody_understands_says_what_is_understood() -> None:
    parts = a_cloud()
    instance = await launched(parts)
    parts.nodes.annotate(instance.provider_id.rpartition("/")[2], **{own.INTERRUPT: "soon"})

    [message] = await KwokInterruptions(a_view(parts), parts.nodes, parts.shortages, parts.clock).receive()

    assert message.interruption is None and "none of spot, rebalance, maintenance, stopped" in message.problem


async def test_a_changed_class_is_asked_about_before_it_is_applied() -> None:
    parts = a_cloud()
    instance = await launched(parts)
    claim = replace(CLAIM, annotations=instance.annotations)

    supposed = await parts.catalogues.with_classes([{"metadata": {"name": "default"}, "spec": {"maxPods": 9}}])

    assert await supposed.drift(claim) == "NodeClassDrift"
    assert (await supposed.node_class(CLAIM.node_class)).ready == "True"
    assert await parts.catalogues.drift(claim) == ""


async def test_a_class_that_cannot_be_read_is_not_ready_and_says_why() -> None:
    parts = a_cloud(nodeRegistrationDelay="soon")

    state = await parts.catalogues.node_class(CLAIM.node_class)

    assert state.ready == "False" and "soon" in state.message


async def test_all_machines_are_gone_through_only_where_a_node_says_something_new() -> None:
    parts = a_cloud()
    view = a_view(parts)
    machines = AnnotatedNodes(view, own.INTERRUPT)
    await launched(parts)

    assert machines.now() == machines.now() == ()
    assert len(cast(View, view).reads) == 1
    [name] = parts.nodes.nodes()
    parts.nodes.annotate(name, **{own.INTERRUPT: "spot"})
    assert [node.name for node in machines.now()] == [name]


async def test_a_doctor_who_comes_before_the_nodes_are_listed_waits_for_them_and_finds_the_warnings_readable() -> None:
    parts = KwokParts()
    listed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    class Filling(View):
        def snapshot(self, reads: Any) -> Any:
            if not listed.done():
                raise NotSeenYet("cluster view", "Node: not listed yet")
            return super().snapshot(reads)

    view = cast(ClusterView, Filling(parts.nodes))
    interruptions = KwokInterruptions(view, parts.nodes, parts.shortages, parts.clock)
    world = cast(World, SimpleNamespace(interruptions=interruptions))
    asyncio.get_running_loop().call_soon(listed.set_result, None)

    [check] = await warnings_check(world, Settings(cluster="c"), listed)

    assert (check.verdict, check.found) == ("holds", "the cloud's queue can be read")
