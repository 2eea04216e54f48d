"""Everything that a class could buy now: instance types with their offerings (W-48 to W-50, W-63 to W-66, W-146).

Asked by the port Catalogues (what planners see) and by launches (what is bought), so that both mean the same. A type's
form (labels, capacity) is computed once per class and kept; offerings are made anew when a price or a shortage changes.
The trap avoided: 11,000 offerings computed again for every plan.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from adapters.aws import names
from adapters.aws.capacity import Sizes, sizes_of
from adapters.aws.fitting import suits_class
from adapters.aws.node_class import NodeClass
from adapters.aws.placement import PlacementGroup
from adapters.aws.prices import Prices
from adapters.aws.reservations import Reservation
from adapters.aws.settings import AwsSettings
from adapters.aws.shortages import Shortage, Shortages
from adapters.aws.type_facts import TypeFacts
from adapters.aws.type_labels import never, one_of, type_requirements
from core.model import names as core
from core.model.pods import Expression
from core.model.pools import InstanceType, Offering
from core.model.requirements import RequirementSet, from_expressions

RESERVED_SHARE: Final = 10_000_000.0  # a reserved offering costs this part of on-demand: first choice, yet comparable


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One way to buy a type, with what a launch must know of it beside what planners see."""

    capacity_type: str
    zone: str
    price: float
    available: bool
    reservation: Reservation | None = None
    partition: str = ""
    offering: Offering
    requirements: RequirementSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What does not change with prices and shortages: a type as a class sees it."""

    facts: TypeFacts
    sizes: Sizes
    expressions: tuple[Expression, ...]
    requirements: RequirementSet
    zones: frozenset[str]
    capacity_types: tuple[str, ...]
    suits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A type and its offers."""

    form: Form
    offers: tuple[Offer, ...]
    type: InstanceType


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """What the region offers: types, and where each is offered."""

    name: str
    types: Mapping[str, TypeFacts]
    offered: Mapping[str, frozenset[str]]
    revision: int = 0

    @property
    def zones(self) -> tuple[str, ...]:
        """All zones in which anything is offered."""
        return tuple(sorted(frozenset().union(*self.offered.values()) if self.offered else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What changes from minute to minute."""

    prices: Prices
    shortages: Shortages
    reservations: Sequence[Reservation] = ()
    group: PlacementGroup | None = None
    shifted: frozenset[str] = frozenset()  # zones that traffic is shifted away from (W-155)
    full_zones: frozenset[tuple[str, str]] = frozenset()  # (capacity type, zone) without a subnet that has room


def forms_of(
    region: Region, node_class: NodeClass, settings: AwsSettings, seen_memory: Mapping[str, int]
) -> tuple[Form, ...]:
    """Every type of the region in the eyes of a class, by name."""
    return tuple(
        _form(region, region.types[name], (node_class, settings, seen_memory.get(name, 0)))
        for name in sorted(region.types)
    )


def _form(region: Region, facts: TypeFacts, view: tuple[NodeClass, AwsSettings, int]) -> Form:
    node_class, settings, seen = view
    subnets = {s.zone: s.zone_id or "" for s in node_class.status.subnets or ()}
    zones = {zone: subnets[zone] for zone in region.offered.get(facts.name, ()) if zone in subnets}
    reserved = settings.reserved_capacity and any(
        r.instance_type == facts.name for r in node_class.status.capacity_reservations or ()
    )
    capacity_types = tuple(
        sorted(
            [kind for kind in (core.CAPACITY_ON_DEMAND, core.CAPACITY_SPOT) if kind in facts.usage]
            + ([core.CAPACITY_RESERVED] if reserved else [])
        )
    )
    expressions = type_requirements(facts, node_class.family, (region.name, zones, capacity_types))
    return Form(
        facts=facts,
        sizes=sizes_of(facts, node_class, settings, seen),
        expressions=expressions,
        requirements=from_expressions(expressions),
        zones=frozenset(zones),
        capacity_types=capacity_types,
        suits=suits_class(facts, node_class),
    )


def items_of(forms: Iterable[Form], places: tuple[Region, NodeClass], now: Circumstances) -> tuple[Item, ...]:
    """The types with their offers, unavailable ones included (C-5)."""
    region, node_class = places
    reserved: dict[str, list[Reservation]] = {}
    for each in now.reservations:
        reserved.setdefault(each.instance_type, []).append(each)
    zones = tuple((zone, node_class.zone_ids.get(zone, "")) for zone in region.zones)
    return tuple(_item(form, (zones, reserved.get(form.facts.name, [])), now) for form in forms)


def _item(form: Form, places: tuple[tuple[tuple[str, str], ...], list[Reservation]], now: Circumstances) -> Item:
    zones, reservations = places
    fits = form.suits and (now.group is None or now.group.strategy in form.facts.strategies)
    offers = [
        _offer(form, kind, zone, (fits, now))
        for zone in zones
        for kind in form.capacity_types
        if kind != core.CAPACITY_RESERVED
    ]
    ids = dict(zones)
    offers += [_reserved(form, each, ids, (fits, now)) for each in reservations]
    if now.group is not None and now.group.partitions:
        offers = [o for offer in offers for o in _by_partition(offer, now.group)]
    kept = tuple(offers)
    return Item(
        form=form,
        offers=kept,
        type=InstanceType(
            name=form.facts.name,
            requirements=form.expressions,
            capacity=form.sizes.capacity,
            overhead=form.sizes.overhead,
            offerings=tuple(offer.offering for offer in kept),
        ),
    )


def _offer(form: Form, kind: str, place: tuple[str, str], view: tuple[bool, Circumstances]) -> Offer:
    """W-64, W-65."""
    (zone, zone_id), (fits, now) = place, view
    name = form.facts.name
    price = now.prices.on_demand(name) if kind == core.CAPACITY_ON_DEMAND else now.prices.spot(name, zone)
    available = (
        fits
        and price is not None
        and zone in form.zones
        and zone not in now.shifted
        and (kind, zone) not in now.full_zones
        and not now.shortages.pool_is_short(kind, name, zone, now.group.id if now.group else "")
    )
    expressions, requirements = _place_requirements(kind, zone, zone_id)
    return Offer(
        capacity_type=kind,
        zone=zone,
        price=price or 0.0,
        available=available,
        offering=Offering(requirements=expressions, price=price or 0.0, available=available),
        requirements=requirements,
    )


@lru_cache(maxsize=1024)
def _place_requirements(kind: str, zone: str, zone_id: str) -> tuple[tuple[Expression, ...], RequirementSet]:
    expressions = (
        one_of(core.CAPACITY_TYPE, (kind,)),
        one_of(core.ZONE, (zone,)),
        *((one_of(names.ZONE_ID, (zone_id,)),) if zone_id else ()),
        *(never(label) for label in names.RESERVATION_LABELS),
    )
    return expressions, from_expressions(expressions)


def _reserved(form: Form, each: Reservation, ids: Mapping[str, str], view: tuple[bool, Circumstances]) -> Offer:
    """W-146."""
    fits, now = view
    price = (now.prices.on_demand(form.facts.name) or 0.0) / RESERVED_SHARE
    zone_id = ids.get(each.zone, "")
    expressions = (
        one_of(core.CAPACITY_TYPE, (core.CAPACITY_RESERVED,)),
        one_of(core.ZONE, (each.zone,)),
        *((one_of(names.ZONE_ID, (zone_id,)),) if zone_id else ()),
        one_of(names.RESERVATION_ID, (each.id,)),
        one_of(names.RESERVATION_TYPE, (each.kind,)),
        one_of(names.INTERRUPTIBLE, ("true" if each.interruptible else "false",)),
    )
    exhausted = now.shortages.holds(Shortage(capacity_type=core.CAPACITY_RESERVED, scope=each.id))
    available = (
        fits
        and not exhausted
        and each.count > 0
        and each.zone in form.zones
        and not each.expiring
        and each.zone not in now.shifted
    )
    return Offer(
        capacity_type=core.CAPACITY_RESERVED,
        zone=each.zone,
        price=price,
        available=available,
        reservation=each,
        offering=Offering(requirements=expressions, price=price, available=available, reservation_capacity=each.count),
        requirements=from_expressions(expressions),
    )


def _by_partition(offer: Offer, group: PlacementGroup) -> list[Offer]:
    """W-70."""
    result = []
    for number in range(1, group.partitions + 1):
        expressions = (*offer.offering.requirements, one_of(names.PARTITION, (str(number),)))
        result.append(
            replace(
                offer,
                partition=str(number),
                offering=replace(offer.offering, requirements=expressions),
                requirements=from_expressions(expressions),
            )
        )
    return result
