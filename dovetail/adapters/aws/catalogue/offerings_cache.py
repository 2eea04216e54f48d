"""The shelf of a class: everything that it could buy at this moment, remembered until something changes.

The trap avoided: computing the form of 1,400 types again because one pool ran short.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from dovetail.adapters.aws.catalogue.offerings import (
    Circumstances,
    Form,
    Region,
    Shelved,
    form_of,
    forms_of,
    items_of,
)
from dovetail.adapters.aws.catalogue.prices import Prices
from dovetail.adapters.aws.catalogue.shortages import Shortages
from dovetail.adapters.aws.instance_types.observed_memory import SeenMemory
from dovetail.adapters.aws.instance_types.region_types import Stock
from dovetail.adapters.aws.node_class.node_class import NodeClass, NodeClasses
from dovetail.adapters.aws.resources.placement_groups import PlacementGroups
from dovetail.adapters.aws.resources.reservations import Reservation, Reservations
from dovetail.adapters.aws.resources.subnets import Subnets
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model import names as core

_KEPT: Final = 32  # classes; beyond that the oldest is computed anew


class NoTypes(ValueError):
    """Nothing can be listed for a class, with the reason (W-49)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a shelf is made from."""

    settings: AwsSettings
    stock: Stock
    prices: Prices
    shortages: Shortages
    subnets: Subnets
    reservations: Reservations
    groups: PlacementGroups
    memory: SeenMemory


Key = tuple[object, ...]
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Formed:
    """The types in the eyes of a class, and what that was worked out from."""

    key: Key
    seen: Mapping[str, int]  # memory that nodes have shown
    forms: Mapping[str, Form]


class Shelves:
    """Shelves by class."""

    def __init__(self, sources: Sources, classes: NodeClasses) -> None:
        self.sources, self._classes = sources, classes
        self.shifted_ids: frozenset[str] = frozenset()  # zones that traffic is shifted away from (W-155)
        self._forms: dict[str, _Formed] = {}
        self._items: dict[str, tuple[Key, tuple[Shelved, ...]]] = {}

    @property
    def shifted(self) -> frozenset[str]:
        """By name: shifts tell ids, everything else here knows names, and the classes' subnets know both."""
        if not self.shifted_ids:
            return frozenset()
        known = (c.zone_ids for c in self._classes.every() if isinstance(c, NodeClass))
        return frozenset(zone for ids in known for zone, key in ids.items() if key in self.shifted_ids)

    async def items(self, node_class: NodeClass) -> tuple[Shelved, ...]:
        """The shelf as of now. Raises NoTypes."""
        region = await self._region(node_class)
        sources = self.sources
        await sources.shortages.reread()
        await sources.subnets.of_class(node_class)
        reservations = await self._reservations(node_class)
        group = await sources.groups.of_class(node_class)
        formed = self._formed(region, node_class)
        shifted = self.shifted
        full = self._full_zones(node_class)
        now_key = (
            formed.key,
            formed.seen,
            sources.prices.revision,
            sources.shortages.revision,
            tuple(reservations),
            group,
            shifted,
            full,
        )
        before = self._items.get(node_class.uid)
        if before is not None and before[0] == now_key:
            return before[1]
        now = Circumstances(
            prices=sources.prices,
            shortages=sources.shortages,
            reservations=reservations,
            group=group,
            shifted=shifted,
            full_zones=full,
            before=() if before is None else before[1],
        )
        items = items_of(formed.forms.values(), (region, node_class), now)
        _remember(self._items, node_class.uid, (now_key, items))
        return items

    async def forms(self, node_class: NodeClass) -> Mapping[str, Form]:
        """The types in the eyes of a class, by name; no prices."""
        region = await self._region(node_class)
        return self._formed(region, node_class).forms

    async def _region(self, node_class: NodeClass) -> Region:
        region = await self.sources.stock.region()
        if not region.types or not region.offered:
            raise NoTypes("the region offers no instance types that we know")
        if not node_class.status.subnets:
            raise NoTypes(f"EC2NodeClass {node_class.name} has no subnets in its status")
        return region

    def _formed(self, region: Region, node_class: NodeClass) -> _Formed:
        seen = self.sources.memory.of_class(node_class)
        status = node_class.status
        key: Key = (
            region.revision,
            node_class.uid,
            node_class.generation,
            tuple(status.subnets or ()),
            tuple(r.instance_type for r in status.capacity_reservations or ()),
        )
        before = self._forms.get(node_class.uid)
        if before is not None and before.key == key and before.seen == seen:
            return before
        settings = self.sources.settings
        if before is not None and before.key == key:
            # Only the memory of some types is known better than before.
            changed = {name for name in seen.keys() | before.seen.keys() if seen.get(name) != before.seen.get(name)}
            forms = {
                name: form_of(region, form.facts, (node_class, settings, seen.get(name, 0)))
                if name in changed
                else form
                for name, form in before.forms.items()
            }
        else:
            forms = {form.facts.name: form for form in forms_of(region, node_class, settings, seen)}
        formed = _Formed(key=key, seen=seen, forms=forms)
        _remember(self._forms, node_class.uid, formed)
        return formed

    async def _reservations(self, node_class: NodeClass) -> list[Reservation]:
        if not self.sources.settings.reserved_capacity or not node_class.status.capacity_reservations:
            return []
        return await self.sources.reservations.of_class(node_class)

    def _full_zones(self, node_class: NodeClass) -> frozenset[tuple[str, str]]:
        """W-73, per capacity type: a zone in which no subnet of the class has room for a launch."""
        by_zone: dict[str, list[str]] = {}
        for subnet in node_class.status.subnets or ():
            by_zone.setdefault(subnet.zone, []).append(subnet.id)
        return frozenset(
            (kind, zone)
            for kind in (core.CAPACITY_ON_DEMAND, core.CAPACITY_SPOT)
            for zone, subnets in by_zone.items()
            if all(self._is_full(kind, subnet) for subnet in subnets)
        )

    def _is_full(self, kind: str, subnet: str) -> bool:
        return self.sources.subnets.is_full(subnet) or self.sources.shortages.subnet_is_short(kind, subnet)


def _remember(kept: dict[str, Entry], uid: str, value: Entry) -> None:
    """The newest at the end; the oldest goes."""
    kept.pop(uid, None)
    kept[uid] = value
    if len(kept) > _KEPT:
        del kept[next(iter(kept))]
