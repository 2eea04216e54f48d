"""The simulated world as it is opened: the product's own adapter of the API server over the one in a file.

One per process; any number of processes per file.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dovetail.adapters.kube.failures import Answer
from dovetail.adapters.kube.objects.buffers import KubeCapacityBuffers
from dovetail.adapters.kube.objects.claims import KubeNodeClaims
from dovetail.adapters.kube.objects.deployments import KubeDeployments
from dovetail.adapters.kube.objects.namespaces import KubeNamespaces
from dovetail.adapters.kube.objects.nodes import KubeNodes
from dovetail.adapters.kube.objects.notices import KubeNotices
from dovetail.adapters.kube.objects.pods import KubePods
from dovetail.adapters.kube.objects.pools import KubeNodePools
from dovetail.adapters.kube.objects.time_objects import KubeTimeObjects
from dovetail.adapters.kube.requests import Request
from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.adapters.kubernetes_json.view import CachedView
from dovetail.adapters.simulator.api_server.feed import Feed
from dovetail.adapters.simulator.api_server.store import Store
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.cloud.node_classes import WATCHED_CLASSES
from dovetail.adapters.simulator.cloud.simulated_catalogues import SimulatedCatalogues
from dovetail.adapters.simulator.cloud.simulated_cloud import SimulatedCloud
from dovetail.adapters.simulator.inspection import SimulatedInspection
from dovetail.adapters.simulator.opening import open_file
from dovetail.adapters.simulator.requests import ApiServer, Asked
from dovetail.ports.failures import Misconfigured


@dataclass(frozen=True, slots=True)
class SimulatedCaller:
    """Sends the requests of the adapter to the API server in the file."""

    server: ApiServer

    async def call(self, request: Request) -> Answer:
        asked = Asked(
            method=request.method,
            path=request.path,
            query=request.query,
            body=request.body,
            content_type=request.content_type,
        )
        status, body = await self.server.answer(asked)
        return request.checked(Answer(status=status, body=body))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedAdapter:
    """Every port that the simulated world answers. `view` and `lookups` are one object."""

    view: CachedView
    lookups: CachedView
    claims: KubeNodeClaims
    nodes: KubeNodes
    pods: KubePods
    pools: KubeNodePools
    namespaces: KubeNamespaces
    buffers: KubeCapacityBuffers
    deployments: KubeDeployments
    times: KubeTimeObjects
    notices: KubeNotices
    cloud: SimulatedCloud
    catalogues: SimulatedCatalogues
    inspection: SimulatedInspection
    feed: Feed
    store: Store
    cluster_uid: str  # of the namespace kube-system

    @classmethod
    def open(
        cls,
        file: Path,
        actor: str = "dovetail",
        clock: Callable[[], float] = time.time,
        gated: Iterable[Kind] = (),
    ) -> "SimulatedAdapter":
        """Open a world that exists and read it once. `actor` is the user agent in the ledger; `gated`: kinds that are
        watched because a feature gate is open."""
        world, gated = open_file(file), tuple(gated)
        store, node_classes = world.store, world.catalogue.node_classes
        classes = [WATCHED_CLASSES[kind] for kind in node_classes]
        cache = Cache((*CLUSTER_KINDS, *gated, *classes))
        feed = Feed(store, cache)
        feed.start()
        if feed.problem():
            store.close()
            raise Misconfigured("embedded world", f"{file}: {feed.problem()}")
        view, calls = CachedView(cache, clock, lambda _: feed.problem()), Calls(store, actor, clock)
        client = SimulatedCaller(ApiServer(calls))
        return cls(
            view=view,
            lookups=view,
            claims=KubeNodeClaims(client),
            nodes=KubeNodes(client, view),
            pods=KubePods(client, clock),
            pools=KubeNodePools(client),
            namespaces=KubeNamespaces(client),
            buffers=KubeCapacityBuffers(client),
            deployments=KubeDeployments(client),
            times=KubeTimeObjects(client, lambda _: True),
            notices=KubeNotices(client, clock, WATCHED_CLASSES.values()),
            cloud=SimulatedCloud(calls),
            catalogues=SimulatedCatalogues(calls, node_classes),
            inspection=SimulatedInspection(calls, gated),
            feed=feed,
            store=store,
            cluster_uid=world.cluster_uid,
        )

    def close(self) -> None:
        """Stop watching and close the file."""
        self.feed.stop()
        self.store.close()
