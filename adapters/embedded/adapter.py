"""The embedded world as the composition root opens it: every port over one file.

Asked by worker/wiring.py, by tests and by what-if runs. One adapter per process; any number of processes per file.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from adapters.embedded.buffers import EmbeddedCapacityBuffers
from adapters.embedded.calls import Calls
from adapters.embedded.catalogues import EmbeddedCatalogues
from adapters.embedded.claims import EmbeddedClaims
from adapters.embedded.cloud import EmbeddedCloud
from adapters.embedded.feed import Feed
from adapters.embedded.node_classes import WATCHED_CLASSES
from adapters.embedded.nodes import EmbeddedNodes, EmbeddedPods
from adapters.embedded.notices import EmbeddedNotices
from adapters.embedded.pools import EmbeddedPools
from adapters.embedded.shelf import read_shelf
from adapters.embedded.store import Store
from adapters.kube.cache import Cache
from adapters.kube.kinds import CLUSTER_KINDS
from adapters.kube.store import Kind
from adapters.kube.view import CachedView
from ports.failures import Misconfigured


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
