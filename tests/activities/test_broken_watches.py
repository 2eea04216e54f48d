"""A broken watch stops the steps that read its kind, and no other."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dovetail.activities.disruption import await_disruption_plan
from dovetail.activities.interruptions import answer_interruptions, tell_interruptions
from dovetail.activities.orders import await_orders
from dovetail.activities.provisioning import await_provisioning_plan
from dovetail.activities.provisioning.await_provisioning_plan import AwaitProvisioningPlan, ProvisioningSettings
from dovetail.activities.provisioning.placement_publisher import PlacementPublisher
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.activities.upkeep import keep_up
from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import BUFFER_KINDS, CLUSTER_KINDS, DEVICE_KINDS, NODE_OVERLAY
from dovetail.adapters.kubernetes_json.view import CachedView
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import ProvisioningPlan
from dovetail.messages.requests import ProvisioningRequest
from dovetail.model.objects.watched_kinds import Kinds
from dovetail.model.pods import VolumeUse
from dovetail.model.snapshot import Snapshot
from dovetail.placement.settings import PlacementSettings
from dovetail.placement.stale_kinds import without_stale
from dovetail.ports.failures import NotSeenYet
from tests.activities.test_provisioning import Stage
from tests.activities.test_provisioning import stage as stage
from tests.adapters.kubernetes_json.kinds_for_tests import a_thing
from tests.lifecycle import objects
from worlds.fakes import FakeClaims, World, followers
from worlds.manifests import pod_manifest

KINDS = sorted({kind.name for kind in (*CLUSTER_KINDS, *BUFFER_KINDS, *DEVICE_KINDS, NODE_OVERLAY)})


def a_view(*broken: str) -> CachedView:
    """An empty cluster, of which the watches of some kinds are broken."""
    cache = Cache({kind.name: kind for kind in (*CLUSTER_KINDS, *BUFFER_KINDS, *DEVICE_KINDS, NODE_OVERLAY)}.values())
    cache.apply("Node", a_thing("n", 7), deleted=False)
    return CachedView(cache, time.time, problem=lambda kind: f"{kind}: the watch is broken" if kind in broken else "")


def stopped_by(ask: Callable[[CachedView], object]) -> set[str]:
    """The kinds whose broken watch, alone, makes this fail."""
    found = set()
    for kind in KINDS:
        try:
            ask(a_view(kind))
        except NotSeenYet as failure:
            assert str(failure) == f"cluster view: {kind}: the watch is broken"
            found.add(kind)
    return found


@pytest.mark.parametrize(
    ("ask", "kinds"),
    [
        (lambda view: view.claim("c"), {"NodeClaim"}),
        (lambda view: view.node("n"), {"Node"}),
        (lambda view: view.nodes_of("i"), {"Node"}),
        (lambda view: view.pods_on("n"), {"Pod"}),
        (lambda view: view.attachments_on("n"), {"VolumeAttachment"}),
        (lambda view: view.volume_claim("a/b"), {"PersistentVolumeClaim"}),
        (lambda view: view.volume("v"), {"PersistentVolume"}),
        (lambda view: view.snapshot(answer_interruptions.READS), {"NodeClaim"}),
        (lambda view: view.snapshot(tell_interruptions.READS), {"Node"}),
        (lambda view: view.snapshot(await_orders.READS), {"NodeClaim", "Node", "NodePool", "Pod"}),
        (lambda view: view.snapshot(keep_up.READS), {"NodeClaim", "Node", "NodePool", "Pod", "NodeOverlay"}),
        (lambda view: view.snapshot(), set(KINDS)),
    ],
)
def test_a_look_needs_the_watches_of_what_it_reads_alone(ask: Callable[[CachedView], object], kinds: set[str]) -> None:
    assert stopped_by(ask) == kinds


PLACED = {"NodeClaim", "Node", "NodePool", "Pod", "NodeOverlay", "DaemonSet", "PodDisruptionBudget", "Namespace"}
TIME = {"DisruptionPolicy", "Freeze", "NodeRollout"}


def test_a_pass_needs_no_watch_of_volumes_services_and_templates() -> None:
    assert stopped_by(lambda view: view.snapshot(await_provisioning_plan.READS)) == PLACED
    assert stopped_by(lambda view: view.snapshot(disruption_reads(view))) == PLACED | TIME | {"CapacityBuffer"}


def test_a_disruption_needs_what_buffers_refer_to_where_there_are_buffers() -> None:
    """Were they left out, the nodes that are kept for them would look empty."""

    def with_a_buffer(view: CachedView) -> Snapshot:
        raw = {"metadata": {"name": "b", "namespace": "default", "uid": "u", "resourceVersion": "9"}}
        spec = {"podTemplateRef": {"name": "t"}, "replicas": 2}
        view.cache.apply("CapacityBuffer", {**raw, "spec": spec}, deleted=False)
        return view.snapshot(disruption_reads(view))

    assert stopped_by(with_a_buffer) == PLACED | TIME | {"CapacityBuffer", "PodTemplate", "Deployment"}


def disruption_reads(view: CachedView) -> Kinds:
    nothing: Any = None
    snapshots, settings = Snapshots(view, nothing), DisruptionSettings()
    return await_disruption_plan.AwaitDisruptionPlan(snapshots, nothing, settings, time.time, followers())._reads()


def test_what_is_broken_is_named() -> None:
    assert a_view("CSINode", "Pod").stale() == {
        "Pod": "Pod: the watch is broken",
        "CSINode": "CSINode: the watch is broken",
    }


def test_pods_with_volumes_are_set_aside_while_a_watch_of_volumes_is_broken_and_their_nodes_rest() -> None:
    def with_volume(**fields: Any) -> Any:
        pod = objects.a_web_pod(**fields)
        return replace(pod, shape=replace(pod.shape, volumes=(VolumeUse(claim_name="data"),)))

    pods = {
        "running": with_volume(name="running", uid="running", node_name="node-1"),
        "ended": replace(with_volume(name="ended", uid="ended", node_name="node-2"), phase="Succeeded"),
        "pending": with_volume(name="pending", uid="pending", node_name=""),
        "plain": objects.a_web_pod(name="plain", uid="plain", node_name=""),
    }
    snapshot = Snapshot(now=1000.0, pods=pods)

    for kind in ("CSINode", "PersistentVolume", "PersistentVolumeClaim", "StorageClass"):
        found = without_stale(snapshot, {kind})
        assert set(found.pods) == {"running", "ended", "plain"}
        assert set(found.resting) == {"node-1"}
    assert without_stale(snapshot, {"VolumeAttachment", "Service", "PodTemplate"}) == snapshot


async def plan_of(stage: Stage, *broken: str) -> object:
    """What the provisioning step plans in the simulated world while watches are broken."""
    problem: Any = lambda kind: f"{kind}: the watch is broken" if kind in broken else ""  # noqa: E731
    view = CachedView(stage.adapter.view.cache, time.time, problem)
    publisher = PlacementPublisher(stage.adapter.notices, None, time.time)
    settings = ProvisioningSettings(
        placement=PlacementSettings(), idle=0.2, longest=10.0, claims=FakeClaims(World()), seconds=math.inf
    )
    step = AwaitProvisioningPlan(Snapshots(view, stage.adapter.catalogues), publisher, settings, time.time, followers())
    return await asyncio.wait_for(
        step.await_provisioning_plan(ProvisioningRequest(must_see=(), launching=(), launching_since=0.0)), 30
    )


async def test_pods_are_planned_for_while_what_they_do_not_depend_on_is_broken(stage: Stage) -> None:
    """All at once: everything that no pod here refers to."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    stage.world.apply(pod_manifest("stateful", volumes=[volume]))

    plan = await plan_of(stage, "CSINode", "StorageClass", "VolumeAttachment", "Service", "ReplicaSet", "StatefulSet")

    assert isinstance(plan, ProvisioningPlan)
    assert [pod.name.startswith("web-") for node in plan.proposed for pod in node.pods] == [True]


async def test_nothing_is_planned_while_what_every_pass_reads_is_broken(stage: Stage) -> None:
    with pytest.raises(NotSeenYet, match="DaemonSet: the watch is broken"):
        await plan_of(stage, "DaemonSet")
