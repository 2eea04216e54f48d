"""The offerings of a class as one NodePool sees them, with the cluster's NodeOverlays applied (PLC-138, AWS-76,
AWS-88).

Planners, launches and the status of what was launched apply the same function: a claim whose status lacked what its
plan counted on would not hold its own pod, and each pass would launch another instance. The result is kept until
offerings, pool or overlays change; without this, each of a hundred launches would apply the overlays to 1,400 types.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dovetail.adapters.aws.catalogue.offerings import OfferedType
from dovetail.model.objects.overlays import NodeOverlay
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.values.resources import Resources
from dovetail.placement.overlays import overlay


def _no_pools() -> Mapping[str, NodePool]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Applied:
    """The result for one pool, and the inputs it was computed from."""

    to: tuple[OfferedType, ...]
    key: object  # the pool and the overlays
    types: tuple[OfferedType, ...]
    capacities: Mapping[str, Resources]  # of the types whose capacity an overlay changes, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOverlays:
    """The overlays and pools of the cluster, as its cache has them."""

    overlays: Callable[[], Iterable[NodeOverlay]] = tuple
    pools: Callable[[], Mapping[str, NodePool]] = _no_pools
    _kept: dict[str, _Applied] = field(default_factory=dict)

    def applied(self, types: tuple[OfferedType, ...], pool: str) -> tuple[OfferedType, ...]:
        """The types for a pool; the same object if no overlay changes anything, or the pool does not exist."""
        found = self._applied(types, pool)
        return types if found is None else found.types

    def capacities(self, types: tuple[OfferedType, ...], pool: str) -> Mapping[str, Resources]:
        """The capacity, overlays included, of the types whose capacity an overlay changes in this pool."""
        found = self._applied(types, pool)
        return {} if found is None else found.capacities

    def change_capacities(self) -> bool:
        return any(each.capacity and _counts(each) for each in self.overlays())

    def _applied(self, types: tuple[OfferedType, ...], pool_name: str) -> _Applied | None:
        overlays = [each for each in self.overlays() if _counts(each)]
        pool = self.pools().get(pool_name) if overlays else None
        if pool is None:
            return None
        key = (pool, *overlays)  # not their versions: a restored server gives them out a second time
        before = self._kept.get(pool.name)
        if before is not None and before.to is types and before.key == key:
            return before
        catalogue = Catalogue(types=tuple(each.type for each in types))
        overlaid = overlay(overlays, {pool.name: pool}, {pool.name: catalogue}).catalogues[pool.name].types
        found = tuple(
            each if each.type is changed else replace(each, type=changed)
            for each, changed in zip(types, overlaid, strict=True)
        )
        capacities = {each.name: each.capacity for each in overlaid if each.capacity_overlay}
        self._kept[pool.name] = _Applied(to=types, key=key, types=found, capacities=capacities)
        return self._kept[pool.name]


def _counts(each: NodeOverlay) -> bool:
    """An overlay that upkeep found to contradict another, in any pool, is applied nowhere (NPL-53)."""
    return not any(c.type == "ValidationSucceeded" and c.status == "False" for c in each.conditions)
