"""The composition root: which adapter answers which port.

The only file that imports adapters. The world is either simulated (cluster and cloud in one SQLite file) or a real
cluster with its cloud; nothing beyond this file knows which. The clouds are in dovetail/settings/providers.py. The
simulator is imported where a world is simulated, and takes no memory of a worker that serves a cluster.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dovetail.adapters.folder.kept_objects import FolderObjects
from dovetail.adapters.kube.adapter import KubeAdapter
from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.cluster_identity import ClusterIdentity
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.inspection import KubeInspection, Need
from dovetail.adapters.kube.raw import KubeRawObjects, server_version
from dovetail.adapters.kube.requests import Request
from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.conditions_view import CachedConditions
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS, NODE_OVERLAY, gated_kinds, raw_kind
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.adapters.kubernetes_json.view import CachedView
from dovetail.adapters.prometheus.client import Prometheus
from dovetail.model.places.move_changes import GUARD_KINDS
from dovetail.ports.clock import Clock, SameClock, unfit_clock
from dovetail.ports.cloud import Catalogues, Cloud, NodeClassUpkeep, Rehearsal, SupposedClasses
from dovetail.ports.failures import Throttled, Unreachable
from dovetail.ports.inspection import Inspection, RawObjects
from dovetail.ports.interruptions import Interruptions
from dovetail.ports.kept_objects import KeptObjects
from dovetail.ports.metrics import Metrics
from dovetail.ports.objects import (
    CapacityBuffers,
    Deployments,
    Namespaces,
    NodeClaims,
    NodeOverlays,
    NodePools,
    Nodes,
    Notices,
    Pods,
    TimeObjects,
)
from dovetail.ports.provider import OpenCloud, Provider, ProviderCluster, SharedSettings, known_at_once
from dovetail.ports.view import ConditionsView
from dovetail.settings.settings import Settings, SettingsError
from dovetail.telemetry.log.start import user_agent
from dovetail.telemetry.metrics.karpenters.api_calls import called
from dovetail.telemetry.metrics.karpenters.cloud_calls import MeasuredCloud
from dovetail.wiring.orders import ClusterObjects
from dovetail.wiring.patient_catalogues import PatientCatalogues

if TYPE_CHECKING:
    from dovetail.adapters.simulator.world import SimulatedWorld


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A cluster and its cloud, port by port."""

    cluster_uid: str  # of its namespace kube-system: a name repeats, and this does not
    view: CachedView
    conditions: ConditionsView
    claims: NodeClaims
    nodes: Nodes
    pods: Pods
    pools: NodePools
    namespaces: Namespaces
    times: TimeObjects
    overlays: NodeOverlays | None  # None: the feature gate is closed
    buffers: CapacityBuffers | None  # likewise
    deployments: Deployments | None  # None: no pod is moved by a roll-out
    notices: Notices
    cloud: Cloud
    catalogues: Catalogues
    inspection: Inspection
    clock: Clock
    why_unfit: Callable[[], str]  # why this worker may take no step now; empty where it may
    classes: NodeClassUpkeep | None  # None: this cloud's classes need none
    interruptions: Interruptions | None  # None: the cloud announces nothing
    ready: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]]
    supposed: SupposedClasses | None  # None: the cloud cannot say what a changed class would mean
    rehearsal: Rehearsal | None = None  # None: the cloud can only be asked by doing
    metrics: Metrics | None  # None: the settings name no Prometheus
    priced: Callable[[], Awaitable[None]] = known_at_once  # until the cloud's own prices are known, or will not be
    prove_moves: Callable[[], Awaitable[None]] | None = None  # for as long as a worker runs; None: nobody is moved
    lease_elsewhere: Callable[[], str] = str  # a Karpenter's Lease in a namespace that does not count; empty: none


# The process that moves a simulated world: python -m, with the file.
SIMULATED_PLAYER = "dovetail.adapters.simulator.play"


def create_simulated_world(file: Path) -> "SimulatedWorld":
    """A new simulated world in a new file, for the demo."""
    from dovetail.adapters.simulator.world import SimulatedWorld

    return SimulatedWorld.create(file)


@asynccontextmanager
async def simulated_objects(settings: Settings) -> AsyncIterator[ClusterObjects]:
    """What orders are written on, of a simulated world."""
    world = _simulated(settings)
    try:
        yield ClusterObjects(
            claims=world.claims,
            nodes=world.nodes,
            pools=world.pools,
            namespaces=world.namespaces,
            times=lambda: world.times,
            user=_no_user,
        )
    finally:
        await world.close()


async def _no_user() -> str:
    return ""


async def open_world(settings: Settings) -> World:
    """The simulated world where a file is named, else the cluster of the kubeconfig and its cloud."""
    if not settings.cluster:
        raise SettingsError("CLUSTER_NAME: not set; it names the cluster in workflow ids and in the cloud's tags")
    if settings.world is not None:
        return _simulated(settings)
    return await _real(settings)


def _simulated(settings: Settings) -> World:
    try:
        from dovetail.wiring.simulated import SimulatedAdapter
    except ModuleNotFoundError:  # the image has no simulator
        raise SettingsError("DOVETAIL_WORLD: an embedded world is not part of the image; use the package") from None

    assert settings.world is not None
    buffers = settings.gates["CapacityBuffer"]
    gated = gated_kinds(buffers=buffers, moves=settings.moves)
    adapter = SimulatedAdapter.open(settings.world, user_agent(), gated=gated)

    async def ready() -> None:
        return None

    async def close() -> None:
        adapter.close()

    return World(
        cluster_uid=adapter.cluster_uid,
        view=adapter.view,
        conditions=CachedConditions(adapter.view.cache),
        claims=adapter.claims,
        nodes=adapter.nodes,
        pods=adapter.pods,
        pools=adapter.pools,
        namespaces=adapter.namespaces,
        times=adapter.times,
        overlays=None,
        buffers=adapter.buffers if buffers else None,
        deployments=adapter.deployments if settings.moves else None,
        notices=adapter.notices,
        cloud=MeasuredCloud(adapter.cloud, "embedded"),
        catalogues=adapter.catalogues,
        clock=SameClock(),
        why_unfit=str,
        inspection=adapter.inspection,
        classes=None,
        interruptions=None,
        ready=ready,
        close=close,
        supposed=adapter.catalogues,
        metrics=metrics_of(settings),
    )


def metrics_of(settings: Settings) -> Metrics | None:
    if not settings.prometheus:
        return None
    return Prometheus(
        url=settings.prometheus,
        agent=user_agent(),
        token=settings.prometheus_token,
        authority=settings.prometheus_ca,
    )


async def _real(settings: Settings) -> World:
    """The cluster of the kubeconfig, or of the pod that we run in, and the cloud that was chosen."""
    provider = settings.provider
    kube = await KubeAdapter.connect(
        _address(settings), node_classes=_node_classes(provider), gated=_gated(settings), observe=_count_call
    )
    try:
        await kube.identity.read()
        opened = await provider.open(_provider_cluster(settings, kube), settings.of_cloud)
    except BaseException:
        await kube.close()
        raise
    return _world_of(settings, kube, opened)


def _address(settings: Settings) -> ClusterAddress:
    return ClusterAddress(
        kubeconfig=settings.kubeconfig,
        context=settings.context or None,
        agent=user_agent(),
        read_only=settings.beside_karpenter,
        lease_namespaces=(settings.namespace, settings.lease_namespace),
    )


async def silence_of_cluster(settings: Settings) -> str:
    """Why the API server, or what it keeps its objects in, does not answer now; empty where it does, and where the
    world is embedded. What a person must put right is raised."""
    if settings.world is not None or not settings.cluster:
        return ""  # opening the world says what is wrong with these
    client = Client(_address(settings))
    await client.open()
    try:
        await ClusterIdentity(client, f"cluster {client.host}").read()
    except (Unreachable, Throttled) as failure:
        return str(failure)
    finally:
        await client.close()
    return ""


def _count_call(request: Request, status: int, seconds: float) -> None:
    called(request.method, request.path, status, seconds)


def _node_classes(provider: Provider[Any]) -> tuple[Kind, ...]:
    return tuple(raw_kind(each.kind, each.path) for each in provider.node_classes)


def _gated(settings: Settings) -> tuple[Kind, ...]:
    """The kinds that are watched because a feature gate is open, or moves are on."""
    overlays = (NODE_OVERLAY,) if settings.gates["NodeOverlay"] else ()
    return (
        *overlays,
        *gated_kinds(
            buffers=settings.gates["CapacityBuffer"], moves=settings.moves, devices=not settings.ignore_devices
        ),
    )


def _provider_cluster(settings: Settings, kube: KubeAdapter) -> ProviderCluster:
    return ProviderCluster(
        settings=shared_settings(settings, kube.identity.uid),
        view=kube.view,
        claims=kube.claims,
        nodes=kube.nodes,
        notices=kube.notices,
        node_classes=lambda kind: kube.raw_objects(kind.kind),
        objects=lambda kind, path, namespace: KubeRawObjects(kube.client, kind, path, namespace),
        version=lambda: server_version(kube.client),
        authority=lambda: settings.cluster_ca_bundle or kube.client.authority,  # AWS-157
    )


def shared_settings(settings: Settings, cluster_uid: str = "") -> SharedSettings:
    """What a provider sees of the settings."""
    return SharedSettings(
        cluster=settings.cluster,
        namespace=settings.namespace,
        endpoint=settings.cluster_endpoint,
        agent=user_agent(),
        gates=settings.gates,
        best_effort_min_values=settings.min_values == "BestEffort",
        cluster_uid=cluster_uid,
        legacy_repair=not settings.repairs_by_disruption,
        read_only=settings.beside_karpenter,
    )


def _world_of(settings: Settings, kube: KubeAdapter, opened: OpenCloud) -> World:
    async def close() -> None:
        await opened.close()
        await kube.close()

    return World(
        cluster_uid=kube.identity.uid,
        view=kube.view,
        conditions=CachedConditions(kube.cache),
        claims=kube.claims,
        nodes=kube.nodes,
        pods=kube.pods,
        pools=kube.pools,
        namespaces=kube.namespaces,
        times=kube.times,
        overlays=kube.overlays if settings.gates["NodeOverlay"] else None,
        buffers=kube.buffers if settings.gates["CapacityBuffer"] else None,
        deployments=kube.deployments if settings.moves else None,
        notices=kube.notices,
        cloud=MeasuredCloud(opened.cloud, settings.provider.name),
        catalogues=PatientCatalogues(opened.catalogues),
        clock=kube.clock,
        why_unfit=lambda: kube.identity.trouble() or unfit_clock(kube.clock) or kube.karpenter.trouble(),
        inspection=KubeInspection(
            kube.client,
            _gated(settings),
            _node_classes(settings.provider),
            Need(
                namespace=settings.namespace,
                keeps_places=settings.placement_policy == "Cost" and settings.cost_keep_places,
                moves=settings.moves,
                deletion_costs=settings.gates["PodDeletionCostManagement"],
                of_cloud=settings.provider.rights,
                retired=tuple((old.kind, old.path) for old in settings.provider.retired),
            ),
        ),
        classes=opened.classes,
        interruptions=opened.interruptions,
        ready=kube.ready,
        close=close,
        supposed=opened.supposed,
        rehearsal=opened.rehearsal,
        priced=opened.priced,
        metrics=metrics_of(settings),
        prove_moves=kube.prove_moves if settings.moves else None,
        lease_elsewhere=kube.karpenter.elsewhere,
    )


def open_kept_objects(settings: Settings, place: str) -> KeptObjects | None:
    """The folder, or the bucket of the chosen cloud, that a setting names; None where it names none."""
    if not place:
        return None
    scheme, _, bucket = place.partition("://")
    if not bucket:
        return FolderObjects(Path(place))
    buckets = settings.provider.buckets
    if scheme not in buckets:
        raise SettingsError(f"{place}: {settings.cloud} has no such buckets; it has {', '.join(buckets) or 'none'}")
    name, _, prefix = bucket.partition("/")
    return buckets[scheme](name, prefix)


def recorded_view(objects: RawObjects, taken_at: float) -> CachedView:
    """A cluster as it was recorded: the same reading of the same JSON, at a moment that has passed."""
    # A recording holds buffers only where the gate was open, admission policies only where pods may be moved, and
    # devices only where they are not ignored.
    cache = Cache((*CLUSTER_KINDS, *gated_kinds(buffers=True, moves=GUARD_KINDS[0] in objects, devices=True)))
    for kind in cache.kinds():
        cache.replace(kind.name, objects.get(kind.name, []), 0)
    return CachedView(cache, clock=lambda: taken_at)
