"""A snapshot with everything that a decision needs: the view's objects, the cloud's catalogues, what only we know.

The catalogues are listed pool by pool; one that cannot be listed becomes an error in the snapshot, and the other pools
go on (DIS-26, PLC-14). NodeOverlays change what the cloud listed (PLC-138), here and nowhere else, so that no decision
is made without them.
"""

import asyncio
from dataclasses import dataclass, replace

from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.placement.overlays import overlay
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.ports.view import ClusterView


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Where a decision gets its snapshot: the view of the cluster, and the catalogues."""

    view: ClusterView
    catalogues: Catalogues

    async def whole(self) -> Snapshot:
        """Everything that a decision needs, as it is now."""
        return await whole_snapshot(self.view, self.catalogues)


async def whole_snapshot(view: ClusterView, catalogues: Catalogues) -> Snapshot:
    """The cluster now, with the catalogue of each pool."""
    supported = catalogues.supported_classes()
    pools = view.snapshot().pools
    ours = [p for p in pools.values() if (p.template.node_class.group, p.template.node_class.kind) in supported]
    listed = await asyncio.gather(*[_list(catalogues, pool) for pool in ours])
    by_pool = {pool.name: catalogue for pool, catalogue in zip(ours, listed, strict=True)}
    snapshot = view.snapshot()
    if snapshot.overlays:
        by_pool = dict(overlay(snapshot.overlays.values(), snapshot.pools, by_pool).catalogues)
    return replace(snapshot, catalogues=by_pool, supported_node_classes=supported)


async def _list(catalogues: Catalogues, pool: NodePool) -> Catalogue:
    try:
        return await catalogues.catalogue(pool)
    except Failure as error:
        return Catalogue(error=str(error))
