"""The offerings of a class as one NodePool sees them, with the cluster's NodeOverlays applied (PLC-138, AWS-76,
AWS-88).

Planners and launches apply the same function. What comes of it is kept until offerings, pool or overlays change;
without this, each of a hundred launches would apply the overlays to 1,400 types.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dovetail.adapters.aws.catalogue.offerings import OfferedType
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.overlays import NodeOverlay
from dovetail.model.pools import Catalogue, NodePool
from dovetail.placement.overlays import overlay


def _no_pools() -> Mapping[str, NodePool]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Applied:
    """What was found for one pool, and for what."""

    to: tuple[OfferedType, ...]
    key: object  # versions of the pool and of the overlays
    types: tuple[OfferedType, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOverlays:
    """The overlays and pools of the cluster, as its cache has them."""

    overlays: Callable[[], Iterable[NodeOverlay]] = tuple
    pools: Callable[[], Mapping[str, NodePool]] = _no_pools
    _kept: dict[str, _Applied] = field(default_factory=dict)

    def applied(self, types: tuple[OfferedType, ...], claim: NodeClaim) -> tuple[OfferedType, ...]:
        """The types for a claim; the same object where no overlay changes anything, or the claim has no pool."""
        overlays = [each for each in self.overlays() if _counts(each)]
        pool = self.pools().get(claim.labels.get(core.NODE_POOL, "")) if overlays else None
        if pool is None:
            return types
        key = (pool.resource_version, tuple((each.name, each.uid, each.resource_version) for each in overlays))
        before = self._kept.get(pool.name)
        if before is not None and before.to is types and before.key == key:
            return before.types
        catalogue = Catalogue(types=tuple(each.type for each in types))
        overlaid = overlay(overlays, {pool.name: pool}, {pool.name: catalogue}).catalogues[pool.name].types
        found = tuple(
            each if each.type is changed else replace(each, type=changed)
            for each, changed in zip(types, overlaid, strict=True)
        )
        self._kept[pool.name] = _Applied(to=types, key=key, types=found)
        return found


def _counts(each: NodeOverlay) -> bool:
    """One that upkeep has found to contradict another, in whichever pool, is applied nowhere (NPL-53)."""
    return not any(c.type == "ValidationSucceeded" and c.status == "False" for c in each.conditions)
