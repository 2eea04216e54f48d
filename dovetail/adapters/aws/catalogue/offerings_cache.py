"""The current offerings of each class, remembered until something changes.

Without this, a single pool running short would cause 1,400 types to be sized again.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from dovetail.adapters.aws.catalogue.offerings import Circumstances, OfferedType, offered_types
from dovetail.adapters.aws.catalogue.prices import Prices
from dovetail.adapters.aws.catalogue.shortages import Shortages
from dovetail.adapters.aws.instance_types.observed_memory import ObservedMemory
from dovetail.adapters.aws.instance_types.region_types import Region, RegionTypes
from dovetail.adapters.aws.instance_types.sized_types import SizedType, sized_type, sized_types
from dovetail.adapters.aws.node_class.node_class import NodeClass, NodeClasses
from dovetail.adapters.aws.resources.available_images import AvailableImages
from dovetail.adapters.aws.resources.placement_groups import PlacementGroups
from dovetail.adapters.aws.resources.reservations import Reservation, Reservations
from dovetail.adapters.aws.resources.subnets import Subnets
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model import names as core

_KEPT: Final = 32  # classes; beyond that the oldest is worked out anew


class NoTypes(ValueError):
    """Nothing can be listed for a class, with the reason (AWS-49)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    settings: AwsSettings
    region_types: RegionTypes
    prices: Prices
    shortages: Shortages
    subnets: Subnets
    reservations: Reservations
    groups: PlacementGroups
    memory: ObservedMemory
    images: AvailableImages


Key = tuple[object, ...]
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sized:
    """The types under a class, and the inputs they were worked out from."""

    key: Key
    memory: Mapping[str, int]  # that nodes have shown
    types: Mapping[str, SizedType]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offered:
    """The types with their offerings, and the inputs they were worked out from."""

    key: Key
    types: tuple[OfferedType, ...]


class OfferingsCache:
    def __init__(self, sources: Sources, classes: NodeClasses, clock: Callable[[], float] = time.time) -> None:
        self.sources, self._classes, self._clock = sources, classes, clock
        self.shifted_ids: Mapping[str, float] = {}  # zones that traffic is shifted away from, until when (AWS-155)
        self._sized: dict[str, _Sized] = {}
        self._offered: dict[str, _Offered] = {}

    @property
    def shifted(self) -> frozenset[str]:
        """The shifted zones by name. Shifts have ids, everything else here has names; the classes' subnets have
        both."""
        now = self._clock()
        shifted = {key for key, until in self.shifted_ids.items() if until > now}
        if not shifted:
            return frozenset()
        known = (c.zone_ids for c in self._classes.every() if isinstance(c, NodeClass))
        return frozenset(zone for ids in known for zone, key in ids.items() if key in shifted)

    async def offered_types(self, node_class: NodeClass) -> tuple[OfferedType, ...]:
        """The types with their offerings as of now. Raises NoTypes."""
        region = await self._region(node_class)
        sources = self.sources
        await sources.shortages.reread()
        await sources.subnets.of_class(node_class)
        reservations = await self._reservations(node_class)
        group = await sources.groups.of_class(node_class)
        sized = self._sized_now(region, node_class)
        shifted = self.shifted
        full = self._full_zones(node_class)
        key = (
            sized.key,
            sized.memory,
            sources.prices.revision,
            sources.shortages.revision,
            tuple(reservations),
            group,
            shifted,
            full,
        )
        before = self._offered.get(node_class.uid)
        if before is not None and before.key == key:
            return before.types
        now = Circumstances(
            node_class=node_class.uid,
            prices=sources.prices,
            shortages=sources.shortages,
            reservations=reservations,
            group=group,
            shifted=shifted,
            full_zones=full,
            before=() if before is None else before.types,
        )
        found = offered_types(sized.types.values(), region, node_class, now)
        _remember(self._offered, node_class.uid, _Offered(key=key, types=found))
        return found

    async def sized_types(self, node_class: NodeClass) -> Mapping[str, SizedType]:
        """The types under a class, by name; no prices. Raises NoTypes."""
        region = await self._region(node_class)
        return self._sized_now(region, node_class).types

    async def _region(self, node_class: NodeClass) -> Region:
        region = await self.sources.region_types.region()
        if not region.types or not region.offered:
            raise NoTypes("the region offers no instance types that we know")
        if not node_class.status.subnets:
            raise NoTypes(f"EC2NodeClass {node_class.name} has no subnets in its status")
        return region

    def _sized_now(self, region: Region, node_class: NodeClass) -> _Sized:
        memory = self.sources.memory.of_class(node_class)
        status = node_class.status
        key: Key = (
            region.revision,
            node_class.uid,
            node_class.generation,
            tuple(status.subnets or ()),
            tuple(r.instance_type for r in status.capacity_reservations or ()),
            node_class.images,
        )
        before = self._sized.get(node_class.uid)
        if before is not None and before.key == key and before.memory == memory:
            return before
        settings = self.sources.settings
        if before is not None and before.key == key:
            # Only the memory of some types is known better than before.
            names = memory.keys() | before.memory.keys()
            changed = {name for name in names if memory.get(name) != before.memory.get(name)}
            types = {
                name: sized_type(region, sized.facts, node_class, settings, memory.get(name, 0))
                if name in changed
                else sized
                for name, sized in before.types.items()
            }
        else:
            types = {sized.facts.name: sized for sized in sized_types(region, node_class, settings, memory)}
        found = _Sized(key=key, memory=memory, types=types)
        _remember(self._sized, node_class.uid, found)
        return found

    async def _reservations(self, node_class: NodeClass) -> list[Reservation]:
        if not self.sources.settings.reserved_capacity or not node_class.status.capacity_reservations:
            return []
        return await self.sources.reservations.of_class(node_class)

    def is_full(self, capacity_type: str, subnet: str) -> bool:
        """Whether a launch of this capacity type finds no address there. Planning and launching both ask this: what
        only the launch left out would be planned again without end."""
        return self.sources.subnets.is_full(subnet) or self.sources.shortages.subnet_is_short(capacity_type, subnet)

    def _full_zones(self, node_class: NodeClass) -> frozenset[tuple[str, str]]:
        """Per capacity type, the zones in which no subnet of the class has room for a launch (AWS-73)."""
        by_zone: dict[str, list[str]] = {}
        for subnet in node_class.status.subnets or ():
            by_zone.setdefault(subnet.zone, []).append(subnet.id)
        return frozenset(
            (capacity_type, zone)
            for capacity_type in (core.CAPACITY_ON_DEMAND, core.CAPACITY_SPOT, core.CAPACITY_RESERVED)
            for zone, subnets in by_zone.items()
            if all(self.is_full(capacity_type, subnet) for subnet in subnets)
        )


def _remember(kept: dict[str, Entry], uid: str, value: Entry) -> None:
    """Newest last; the oldest is dropped."""
    kept.pop(uid, None)
    kept[uid] = value
    if len(kept) > _KEPT:
        del kept[next(iter(kept))]
