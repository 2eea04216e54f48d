"""What is on the shelf as a NodePool sees it, once the cluster's NodeOverlays have had their say (S-138, W-76, W-88)?

The same function decides in both places. The trap avoided: laying overlays over fourteen hundred types for each of a
hundred launches; what comes of it is kept until shelf, pool or overlays change.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dovetail.adapters.aws.catalogue.offerings import Shelved
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.overlays import NodeOverlay
from dovetail.model.pools import Catalogue, NodePool
from dovetail.placement.overlays import overlay

Shelf = tuple[Shelved, ...]


def _no_pools() -> Mapping[str, NodePool]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaying:
    """The overlays and pools of the cluster, as its cache has them."""

    overlays: Callable[[], Iterable[NodeOverlay]] = tuple
    pools: Callable[[], Mapping[str, NodePool]] = _no_pools
    _kept: dict[str, tuple[Shelf, object, Shelf]] = field(default_factory=dict)

    def laid_over(self, shelf: Shelf, claim: NodeClaim) -> Shelf:
        """The shelf for a claim; itself where no overlay changes anything, or the claim has no pool."""
        overlays = [each for each in self.overlays() if _counts(each)]
        pool = self.pools().get(claim.labels.get(core.NODE_POOL, "")) if overlays else None
        if pool is None:
            return shelf
        key = (pool.resource_version, tuple((each.name, each.uid, each.resource_version) for each in overlays))
        before = self._kept.get(pool.name)
        if before is not None and before[0] is shelf and before[1] == key:
            return before[2]
        catalogue = Catalogue(types=tuple(each.type for each in shelf))
        types = overlay(overlays, {pool.name: pool}, {pool.name: catalogue}).catalogues[pool.name].types
        found = tuple(
            each if each.type is changed else replace(each, type=changed)
            for each, changed in zip(shelf, types, strict=True)
        )
        self._kept[pool.name] = (shelf, key, found)
        return found


def _counts(each: NodeOverlay) -> bool:
    """One that upkeep has found to contradict another, in whichever pool, is applied nowhere (N-53)."""
    return not any(c.type == "ValidationSucceeded" and c.status == "False" for c in each.conditions)
