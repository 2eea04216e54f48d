"""The composition root: which adapter answers which port.

The only file that imports adapters. The world is either simulated (cluster and cloud in one SQLite file) or a real
cluster with its cloud; nothing beyond this file knows which.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from dovetail.adapters.aws import names as aws_names
from dovetail.adapters.aws.adapter import AwsAdapter, Surroundings, UpkeepCluster
from dovetail.adapters.aws.catalogue.pool_overlays import PoolOverlays
from dovetail.adapters.aws.catalogue.shortage_store import ConfigMapStore
from dovetail.adapters.aws.cluster_facts import DNS_NAMESPACE, facts_of
from dovetail.adapters.aws.settings import AwsSettings, ClusterFacts
from dovetail.adapters.aws.upkeep.node_classes import ClusterNow
from dovetail.adapters.kube.adapter import KubeAdapter
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.inspection import KubeInspection
from dovetail.adapters.kube.raw import KubeRawObjects, server_version
from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.conditions_view import CachedConditions
from dovetail.adapters.kubernetes_json.kinds import (
    BUFFER_KINDS,
    CLUSTER_KINDS,
    EC2_NODE_CLASS,
    NODE_OVERLAY,
)
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.adapters.kubernetes_json.view import CachedView
from dovetail.adapters.simulator.adapter import SimulatedAdapter
from dovetail.adapters.simulator.answers.inspection import SimulatedInspection
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.world import SimulatedWorld
from dovetail.metrics.cloud_calls import MeasuredCloud
from dovetail.model.nodes import Node, NodeClaim
from dovetail.ports.cloud import Catalogues, Cloud, NodeClassUpkeep
from dovetail.ports.inspection import Inspection, RawObjects
from dovetail.ports.interruptions import Interruptions
from dovetail.ports.objects import (
    CapacityBuffers,
    NodeClaims,
    NodeOverlays,
    NodePools,
    Nodes,
    Notices,
    Pods,
)
from dovetail.ports.view import ConditionsView
from dovetail.worker.settings import Settings, SettingsError
from dovetail.worker.telemetry import user_agent


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A cluster and its cloud, port by port."""

    view: CachedView
    conditions: ConditionsView
    claims: NodeClaims
    nodes: Nodes
    pods: Pods
    pools: NodePools
    overlays: NodeOverlays | None  # None: the feature gate is closed
    buffers: CapacityBuffers | None  # likewise
    notices: Notices
    cloud: Cloud
    catalogues: Catalogues
    inspection: Inspection
    classes: NodeClassUpkeep | None  # None: this cloud's classes need none
    interruptions: Interruptions | None  # None: no queue of warnings is named
    ready: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]]


# Labels that the cloud puts on its instance types and offerings.
CLOUD_LABELS = aws_names.WELL_KNOWN

_SERVICES = "/api/v1/services"
_CONFIG_MAPS = "/api/v1/configmaps"

# The process that moves a simulated world: python -m, with the file.
SIMULATED_PLAYER = "dovetail.adapters.simulator.play"


def create_simulated_world(file: Path) -> SimulatedWorld:
    """A new simulated world in a new file, for the demo."""
    return SimulatedWorld.create(file)


async def open_world(settings: Settings) -> World:
    """The simulated world where a file is named, else the cluster of the kubeconfig and its cloud."""
    if not settings.cluster:
        raise SettingsError("CLUSTER_NAME: not set; it names the cluster in workflow ids and in the cloud's tags")
    if settings.world is not None:
        return _simulated(settings)
    return await _real(settings)


def _simulated(settings: Settings) -> World:
    assert settings.world is not None
    gated = BUFFER_KINDS if settings.gates["CapacityBuffer"] else ()
    adapter = SimulatedAdapter.open(settings.world, user_agent(), gated=gated)

    async def ready() -> None:
        return None

    async def close() -> None:
        adapter.close()

    return World(
        view=adapter.view,
        conditions=CachedConditions(adapter.view.cache),
        claims=adapter.claims,
        nodes=adapter.nodes,
        pods=adapter.pods,
        pools=adapter.pools,
        overlays=None,
        buffers=adapter.buffers if gated else None,
        notices=adapter.notices,
        cloud=MeasuredCloud(adapter.cloud, "embedded"),
        catalogues=adapter.catalogues,
        inspection=SimulatedInspection(Calls(adapter.store, user_agent()), gated),
        classes=None,
        interruptions=None,
        ready=ready,
        close=close,
    )


async def _real(settings: Settings) -> World:
    """The cluster of the kubeconfig, or of the pod that we run in, and AWS."""
    address = ClusterAddress(kubeconfig=settings.kubeconfig, agent=user_agent())
    kube = await KubeAdapter.connect(address, node_classes=(EC2_NODE_CLASS,), gated=_gated(settings))
    try:
        aws = await _open_aws(settings, kube)
    except BaseException:
        await kube.close()
        raise
    return _world_of(settings, kube, aws)


def _gated(settings: Settings) -> tuple[Kind, ...]:
    """The kinds that are watched because a feature gate is open."""
    overlays = (NODE_OVERLAY,) if settings.gates["NodeOverlay"] else ()
    return (*overlays, *BUFFER_KINDS) if settings.gates["CapacityBuffer"] else overlays


async def _open_aws(settings: Settings, kube: KubeAdapter) -> AwsAdapter:
    """Checked and refreshing in the background."""
    given = ClusterFacts(
        endpoint=settings.cluster_endpoint,
        ca_bundle=settings.cluster_ca_bundle or kube.client.authority,  # AWS-157: else our own
    )
    version_now = None if settings.eks_control_plane else lambda: server_version(kube.client)
    services = KubeRawObjects(kube.client, "Service", _SERVICES, DNS_NAMESPACE)
    surroundings = Surroundings(
        node_classes=lambda: kube.raw_objects("EC2NodeClass"),
        cluster=await facts_of(services, version_now, given),
        store=ConfigMapStore(KubeRawObjects(kube.client, "ConfigMap", _CONFIG_MAPS, settings.namespace)),
        claims_with_nodes=lambda: _claims_with_nodes(kube),
        overlays=PoolOverlays(
            overlays=lambda: kube.view.snapshot().overlays.values(), pools=lambda: kube.view.snapshot().pools
        ),
        version_now=version_now,
        agent=user_agent(),
    )
    aws = AwsAdapter.open(_aws_settings(settings), surroundings)
    try:
        await aws.check()
    except BaseException:
        await aws.close()
        raise
    aws.start()
    return aws


def _aws_settings(settings: Settings) -> AwsSettings:
    return AwsSettings(
        cluster=settings.cluster,
        region=settings.region,
        endpoint_url=settings.endpoint_url,
        isolated_vpc=settings.isolated_vpc,
        memory_overhead=settings.memory_overhead,
        interruption_queue=settings.interruption_queue,
        reserved_enis=settings.reserved_enis,
        disable_dry_run=settings.disable_dry_run,
        enable_zonal_shift=settings.enable_zonal_shift,
        image_refresh=settings.image_refresh,
        subnet_refresh=settings.subnet_refresh,
        reserved_capacity=settings.gates["ReservedCapacity"],
        best_effort_min_values=settings.min_values == "BestEffort",
        expressions=settings.aws_gates["NodeClassCEL"],
    )


def _claims_with_nodes(kube: KubeAdapter) -> list[tuple[NodeClaim, Node]]:
    """Claims with their nodes, as the cache has them."""
    snapshot = kube.view.snapshot()
    nodes = snapshot.nodes
    return [(claim, nodes[claim.node_name]) for claim in snapshot.claims.values() if claim.node_name in nodes]


def _world_of(settings: Settings, kube: KubeAdapter, aws: AwsAdapter) -> World:
    now = ClusterNow(
        claims=lambda: kube.view.snapshot().claims.values(), pools=lambda: kube.view.snapshot().pools.values()
    )
    objects = KubeRawObjects(kube.client, EC2_NODE_CLASS.name, EC2_NODE_CLASS.path)
    kept = UpkeepCluster(objects=objects, claims=kube.claims, notices=kube.notices, nodes=kube.nodes, now=now)

    async def close() -> None:
        await aws.close()
        await kube.close()

    return World(
        view=kube.view,
        conditions=CachedConditions(kube.cache),
        claims=kube.claims,
        nodes=kube.nodes,
        pods=kube.pods,
        pools=kube.pools,
        overlays=kube.overlays if settings.gates["NodeOverlay"] else None,
        buffers=kube.buffers if settings.gates["CapacityBuffer"] else None,
        notices=kube.notices,
        cloud=MeasuredCloud(aws.cloud, "aws"),
        catalogues=aws.catalogues,
        inspection=KubeInspection(kube.client, (EC2_NODE_CLASS, *_gated(settings))),
        classes=aws.node_class_upkeep(kept),
        interruptions=aws.interruptions,
        ready=kube.ready,
        close=close,
    )


def recorded_view(objects: RawObjects, taken_at: float) -> CachedView:
    """A cluster as it was recorded: the same reading of the same JSON, at a moment that has passed."""
    cache = Cache((*CLUSTER_KINDS, *BUFFER_KINDS))  # a recording holds buffers only where the gate was open
    for kind in cache.kinds():
        cache.replace(kind.name, objects.get(kind.name, []), 0)
    return CachedView(cache, clock=lambda: taken_at)
