"""The simulated world as the composition root opens it: every port over one file.

One adapter per process; any number of processes per file.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.adapters.kubernetes_json.view import CachedView
from dovetail.adapters.simulator.answers.buffers import SimulatedCapacityBuffers
from dovetail.adapters.simulator.answers.catalogues import SimulatedCatalogues
from dovetail.adapters.simulator.answers.claims import SimulatedNodeClaims
from dovetail.adapters.simulator.answers.cloud import SimulatedCloud
from dovetail.adapters.simulator.answers.deployments import SimulatedDeployments
from dovetail.adapters.simulator.answers.namespaces import SimulatedNamespaces
from dovetail.adapters.simulator.answers.nodes import SimulatedNodes, SimulatedPods
from dovetail.adapters.simulator.answers.notices import SimulatedNotices
from dovetail.adapters.simulator.answers.pools import SimulatedNodePools
from dovetail.adapters.simulator.answers.time_objects import SimulatedTimeObjects
from dovetail.adapters.simulator.api_server import objects as table
from dovetail.adapters.simulator.api_server.feed import Feed
from dovetail.adapters.simulator.api_server.store import Store
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.cloud.catalogue import read_catalogue
from dovetail.adapters.simulator.cloud.node_classes import WATCHED_CLASSES
from dovetail.ports.failures import Misconfigured


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedAdapter:
    """Every port that the simulated world answers. `view` and `lookups` are one object."""

    view: CachedView
    lookups: CachedView
    claims: SimulatedNodeClaims
    nodes: SimulatedNodes
    pods: SimulatedPods
    pools: SimulatedNodePools
    namespaces: SimulatedNamespaces
    buffers: SimulatedCapacityBuffers
    deployments: SimulatedDeployments
    times: SimulatedTimeObjects
    notices: SimulatedNotices
    cloud: SimulatedCloud
    catalogues: SimulatedCatalogues
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
        if not file.exists():
            raise Misconfigured("embedded world", f"there is no file {file}")
        store = Store(file)
        try:
            with store.reading() as connection:
                catalogue = read_catalogue(connection)
                system = table.read(connection, "Namespace", "kube-system")
        except sqlite3.Error as error:
            store.close()
            raise Misconfigured("embedded world", f"{file}: {error}") from None
        cache = Cache((*CLUSTER_KINDS, *gated, *(WATCHED_CLASSES[kind] for kind in catalogue.node_classes)))
        feed = Feed(store, cache)
        feed.start()
        if feed.problem():
            store.close()
            raise Misconfigured("embedded world", f"{file}: {feed.problem()}")
        view = CachedView(cache, clock, lambda _: feed.problem())
        calls = Calls(store, actor, clock)
        return cls(
            view=view,
            lookups=view,
            claims=SimulatedNodeClaims(calls),
            nodes=SimulatedNodes(calls),
            pods=SimulatedPods(calls),
            pools=SimulatedNodePools(calls),
            namespaces=SimulatedNamespaces(calls),
            buffers=SimulatedCapacityBuffers(calls),
            deployments=SimulatedDeployments(calls),
            times=SimulatedTimeObjects(calls),
            notices=SimulatedNotices(calls),
            cloud=SimulatedCloud(calls),
            catalogues=SimulatedCatalogues(calls, catalogue.node_classes),
            feed=feed,
            store=store,
            cluster_uid=str(system["metadata"]["uid"]) if system else "",
        )

    def close(self) -> None:
        """Stop watching and close the file."""
        self.feed.stop()
        self.store.close()
