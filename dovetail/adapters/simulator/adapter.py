"""The embedded world as the composition root opens it: every port over one file.

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
from dovetail.adapters.simulator.answers.buffers import EmbeddedCapacityBuffers
from dovetail.adapters.simulator.answers.catalogues import EmbeddedCatalogues
from dovetail.adapters.simulator.answers.claims import EmbeddedClaims
from dovetail.adapters.simulator.answers.cloud import EmbeddedCloud
from dovetail.adapters.simulator.answers.nodes import EmbeddedNodes, EmbeddedPods
from dovetail.adapters.simulator.answers.notices import EmbeddedNotices
from dovetail.adapters.simulator.answers.pools import EmbeddedPools
from dovetail.adapters.simulator.api_server.feed import Feed
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.cloud.node_classes import WATCHED_CLASSES
from dovetail.adapters.simulator.cloud.offers import read_shelf
from dovetail.adapters.simulator.store import Store
from dovetail.ports.failures import Misconfigured


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedAdapter:
    """Everything that answers a port. `view` and `lookups` are one cache."""

    view: CachedView
    lookups: CachedView
    claims: EmbeddedClaims
    nodes: EmbeddedNodes
    pods: EmbeddedPods
    pools: EmbeddedPools
    buffers: EmbeddedCapacityBuffers
    notices: EmbeddedNotices
    cloud: EmbeddedCloud
    catalogues: EmbeddedCatalogues
    feed: Feed
    store: Store

    @classmethod
    def open(
        cls,
        file: Path,
        actor: str = "dovetail",
        clock: Callable[[], float] = time.time,
        gated: Iterable[Kind] = (),
    ) -> "EmbeddedAdapter":
        """Open a world that exists and read it once. `actor` is the user agent in the ledger; `gated`: kinds that are
        watched because a feature gate is open."""
        if not file.exists():
            raise Misconfigured("embedded world", f"there is no file {file}")
        store = Store(file)
        try:
            with store.reading() as connection:
                shelf = read_shelf(connection)
        except sqlite3.Error as error:
            store.close()
            raise Misconfigured("embedded world", f"{file}: {error}") from None
        cache = Cache((*CLUSTER_KINDS, *gated, *(WATCHED_CLASSES[kind] for kind in shelf.node_classes)))
        feed = Feed(store, cache)
        feed.start()
        if feed.problem():
            store.close()
            raise Misconfigured("embedded world", f"{file}: {feed.problem()}")
        view = CachedView(cache, feed.problem, clock)
        calls = Calls(store, actor, clock)
        return cls(
            view=view,
            lookups=view,
            claims=EmbeddedClaims(calls),
            nodes=EmbeddedNodes(calls),
            pods=EmbeddedPods(calls),
            pools=EmbeddedPools(calls),
            buffers=EmbeddedCapacityBuffers(calls),
            notices=EmbeddedNotices(calls),
            cloud=EmbeddedCloud(calls),
            catalogues=EmbeddedCatalogues(calls, shelf.node_classes),
            feed=feed,
            store=store,
        )

    def close(self) -> None:
        """Stop watching and close the file."""
        self.feed.stop()
        self.store.close()
