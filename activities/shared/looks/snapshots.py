"""A snapshot with everything that a decision needs: the view's objects, the cloud's catalogues, and our own knowledge.

The catalogues are listed pool by pool; one that cannot be listed becomes an error in the snapshot, and the other pools
are decided on (DIS-26, PLC-14). NodeOverlays change what the cloud listed (PLC-138) only here, so that no decision is
made without them.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from dovetail.model.nodes import RepairPolicy
from dovetail.model.objects.watched_kinds import Kinds
from dovetail.model.places.moved_pods import passed_on
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.placement.overlays import overlay
from dovetail.placement.stale_kinds import without_stale
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.ports.view import ClusterView


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Where a decision gets its snapshot: the view of the cluster, and the catalogues. The room of a pod that is being
    moved counts as its successor's (TRM-43)."""

    view: ClusterView
    catalogues: Catalogues

    def objects(self, reads: Kinds) -> Snapshot:
        """The objects as they are now, without those that cannot be judged while a watch beyond `reads` is broken."""
        return passed_on(objects_now(self.view, reads))

    async def whole(self, reads: Kinds) -> Snapshot:
        """The snapshot with the catalogues: everything that a decision needs."""
        return passed_on(await whole_snapshot(self.view, self.catalogues, reads))


def objects_now(view: ClusterView, reads: Kinds | None) -> Snapshot:
    """The objects as they are now. `reads`: the kinds that must be up to date; None: all. What is stale is asked first:
    a kind that is listed meanwhile may be missing in the snapshot."""
    stale = view.stale()
    found = without_stale(view.snapshot(reads), stale)
    return replace(found, stale=frozenset(stale)) if stale else found


async def whole_snapshot(view: ClusterView, catalogues: Catalogues, reads: Kinds | None = None) -> Snapshot:
    """The cluster now, with the catalogue of each pool."""
    return await with_catalogues(lambda: objects_now(view, reads), catalogues)


async def with_catalogues(objects: Callable[[], Snapshot], catalogues: Catalogues) -> Snapshot:
    """The objects as they are once the catalogues of their pools have been listed, with those catalogues."""
    supported = catalogues.supported_classes()
    pools = objects().pools
    ours = [p for p in pools.values() if (p.template.node_class.group, p.template.node_class.kind) in supported]
    found = await asyncio.gather(*[listed(catalogues, pool) for pool in ours])
    by_pool = {pool.name: catalogue for pool, catalogue in zip(ours, found, strict=True)}
    policies = await _policies(catalogues)
    snapshot = objects()
    if snapshot.overlays:
        by_pool = dict(overlay(snapshot.overlays.values(), snapshot.pools, by_pool).catalogues)
    return replace(snapshot, catalogues=by_pool, supported_node_classes=supported, repair_policies=policies)


async def _policies(catalogues: Catalogues) -> tuple[RepairPolicy, ...]:
    """None where the cloud does not answer: what is unhealthy waits for the next look."""
    try:
        return await catalogues.repair_policies()
    except Failure:
        return ()


async def listed(catalogues: Catalogues, pool: NodePool) -> Catalogue:
    """The instance types of a pool, or why they cannot be listed."""
    try:
        return await catalogues.catalogue(pool)
    except Failure as error:
        return Catalogue(error=str(error))
