"""Everything that a class could buy now: instance types with their offerings (W-48 to W-50, W-63 to W-66, W-146).

A type's form (labels, capacity) is computed once per class and kept; offerings are made anew when a price or a shortage
changes. The trap avoided: 11,000 offerings computed again for every plan.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.catalogue.prices import Prices
from dovetail.adapters.aws.catalogue.shortages import Shortage, Shortages
from dovetail.adapters.aws.instance_types.capacity import Sizes, sizes_of
from dovetail.adapters.aws.instance_types.class_fit import suits_class
from dovetail.adapters.aws.instance_types.type_facts import TypeFacts
from dovetail.adapters.aws.instance_types.type_labels import never, one_of, type_requirements
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.placement_groups import PlacementGroup
from dovetail.adapters.aws.resources.reservations import Reservation
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model import names as core
from dovetail.model.pods import Expression
from dovetail.model.pools import InstanceType, Offering
from dovetail.model.requirements import RequirementSet, from_expressions

RESERVED_SHARE: Final = 10_000_000.0  # a reserved offering costs this part of on-demand: first choice, yet comparable


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One way to buy a type, with what a launch must know of it beside what planners see."""

    capacity_type: str
    zone: str
    price: float
    reservation: Reservation | None = None
    partition: str = ""
    overlaid: bool = False  # whether a NodeOverlay has set the price (W-88)


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
    plain: bool  # neither metal nor with accelerators


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to buy, without its price: shared by all types that are sold so."""

    capacity_type: str
    zone: str
    expressions: tuple[Expression, ...]
    requirements: RequirementSet
    reservation: Reservation | None = None
    partition: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A type and its offers, as a launch chooses among them."""

    form: Form
    offers: tuple[Offer, ...]
    price: float  # of its cheapest offer


def item_of(form: Form, offers: tuple[Offer, ...]) -> Item:
    """A type with the offers that are left of it; its price is what launches order hundreds of types by."""
    return Item(form=form, offers=offers, price=min([offer.price for offer in offers], default=inf))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelved:
    """A type as planners see it; its offers are spelt out only where a launch looks at them."""

    form: Form
    type: InstanceType
    ways: tuple[Way, ...]


def offer_of(way: Way, offering: Offering) -> Offer:
    """One way to buy a type, spelt out."""
    return Offer(
        capacity_type=way.capacity_type,
        zone=way.zone,
        price=offering.price,
        reservation=way.reservation,
        partition=way.partition,
        overlaid=offering.price_overlay,
    )


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
    before: Sequence[Shelved] = ()  # the last shelf of this class: what has not changed stays the same object


def forms_of(
    region: Region, node_class: NodeClass, settings: AwsSettings, seen_memory: Mapping[str, int]
) -> tuple[Form, ...]:
    """Every type of the region in the eyes of a class, by name."""
    return tuple(
        form_of(region, region.types[name], (node_class, settings, seen_memory.get(name, 0)))
        for name in sorted(region.types)
    )


def form_of(region: Region, facts: TypeFacts, view: tuple[NodeClass, AwsSettings, int]) -> Form:
    """One type in the eyes of a class; the last of `view` is the memory that nodes of the type have shown."""
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
        plain="metal" not in facts.size and not facts.has_accelerators,
    )


def items_of(forms: Iterable[Form], places: tuple[Region, NodeClass], now: Circumstances) -> tuple[Shelved, ...]:
    """The types with their offers, unavailable ones included (C-5)."""
    region, node_class = places
    reserved: dict[str, list[Way]] = {}
    for each in now.reservations:
        way = _reserved_way(each, node_class.zone_ids.get(each.zone, ""))
        reserved.setdefault(each.instance_type, []).append(way)
    zones = tuple((zone, node_class.zone_ids.get(zone, "")) for zone in region.zones)
    group = now.group.id if now.group else ""
    partitions = now.group.partitions if now.group else 0
    before = {each.form.facts.name: each for each in now.before}
    moment = _Moment(now=now, short=now.shortages.pools(group), partitions=partitions, before=before)
    return tuple(_shelved(form, zones, (reserved.get(form.facts.name, []), moment)) for form in forms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """What the whole shelf has in common, looked up once."""

    now: Circumstances
    short: frozenset[tuple[str, str, str]]  # capacity type, instance type ("" for all), zone
    partitions: int
    before: Mapping[str, Shelved]
    open_ways: dict[tuple[str, ...], tuple[tuple[Way, bool], ...]] = field(default_factory=dict)

    def told(self, kinds: tuple[str, ...], ways: tuple[Way, ...]) -> tuple[tuple[Way, bool], ...]:
        """Each way, and whether anything beside the type itself closes it; the same for all types sold so."""
        found = self.open_ways.get(kinds)
        if found is None:
            found = self.open_ways[kinds] = tuple((way, self._is_open(way)) for way in ways)
        return found

    def _is_open(self, way: Way) -> bool:
        now, kind, zone = self.now, way.capacity_type, way.zone
        return (kind, "", "") not in self.short and zone not in now.shifted and (kind, zone) not in now.full_zones


def _shelved(form: Form, zones: tuple[tuple[str, str], ...], context: tuple[list[Way], _Moment]) -> Shelved:
    reserved, moment = context
    plain = _ways(form.capacity_types, zones, moment.partitions)
    fits = form.suits and (moment.now.group is None or moment.now.group.strategy in form.facts.strategies)
    before = moment.before.get(form.facts.name)
    if before is not None and (before.form is not form or before.ways is not plain):
        before = None  # another form, or other ways to buy: nothing of it can stay
    offerings = _offerings(form, plain, (moment, before.type.offerings if before is not None else (), fits))
    if before is not None and not reserved and offerings is before.type.offerings:
        return before
    return Shelved(
        form=form,
        ways=(*plain, *reserved) if reserved else plain,
        type=InstanceType(
            name=form.facts.name,
            requirements=form.expressions,
            capacity=form.sizes.capacity,
            overhead=form.sizes.overhead,
            offerings=(*offerings, *(_reserved_offering(form, way, (fits, moment.now)) for way in reserved)),
        ),
    )


def _offerings(
    form: Form, ways: tuple[Way, ...], context: tuple[_Moment, tuple[Offering, ...], bool]
) -> tuple[Offering, ...]:
    """Eleven thousand turns: what types share was looked up before, and an offering that says the same stays."""
    moment, before, fits = context
    name, at, short, prices = form.facts.name, form.zones, moment.short, moment.now.prices
    on_demand, spot, differs = prices.on_demand(name), prices.spot, not before
    found: list[Offering] = []
    for number, (way, is_open) in enumerate(moment.told(form.capacity_types, ways)):
        kind, zone = way.capacity_type, way.zone
        price = on_demand if kind == core.CAPACITY_ON_DEMAND else spot(name, zone)
        available = is_open and fits and price is not None and zone in at and (kind, name, zone) not in short
        if before:
            same = before[number]
            if same.price == (price or 0.0) and same.available == available:
                found.append(same)
                continue
            differs = True
        found.append(Offering(requirements=way.expressions, price=price or 0.0, available=available))
    return tuple(found) if differs else before


@lru_cache(maxsize=256)
def _ways(kinds: tuple[str, ...], zones: tuple[tuple[str, str], ...], partitions: int) -> tuple[Way, ...]:
    """W-64, W-70: every zone and capacity type, in each partition where there are any."""
    return tuple(
        _way((kind, zone, zone_id), partition)
        for zone, zone_id in zones
        for kind in kinds
        if kind != core.CAPACITY_RESERVED
        for partition in ([str(number) for number in range(1, partitions + 1)] or [""])
    )


def _way(place: tuple[str, str, str], partition: str) -> Way:
    kind, zone, zone_id = place
    expressions = (
        one_of(core.CAPACITY_TYPE, (kind,)),
        one_of(core.ZONE, (zone,)),
        *((one_of(names.ZONE_ID, (zone_id,)),) if zone_id else ()),
        *(never(label) for label in names.RESERVATION_LABELS),
        *((one_of(names.PARTITION, (partition,)),) if partition else ()),
    )
    return Way(
        capacity_type=kind,
        zone=zone,
        expressions=expressions,
        requirements=from_expressions(expressions),
        partition=partition,
    )


def _reserved_way(each: Reservation, zone_id: str) -> Way:
    expressions = (
        one_of(core.CAPACITY_TYPE, (core.CAPACITY_RESERVED,)),
        one_of(core.ZONE, (each.zone,)),
        *((one_of(names.ZONE_ID, (zone_id,)),) if zone_id else ()),
        one_of(names.RESERVATION_ID, (each.id,)),
        one_of(names.RESERVATION_TYPE, (each.kind,)),
        one_of(names.INTERRUPTIBLE, ("true" if each.interruptible else "false",)),
    )
    return Way(
        capacity_type=core.CAPACITY_RESERVED,
        zone=each.zone,
        expressions=expressions,
        requirements=from_expressions(expressions),
        reservation=each,
    )


def _reserved_offering(form: Form, way: Way, view: tuple[bool, Circumstances]) -> Offering:
    """W-146."""
    fits, now = view
    each = way.reservation
    assert each is not None
    exhausted = now.shortages.holds(Shortage(capacity_type=core.CAPACITY_RESERVED, scope=each.id))
    available = (
        fits
        and not exhausted
        and each.count > 0
        and each.zone in form.zones
        and not each.expiring
        and each.zone not in now.shifted
    )
    return Offering(
        requirements=way.expressions,
        price=(now.prices.on_demand(form.facts.name) or 0.0) / RESERVED_SHARE,
        available=available,
        reservation_capacity=each.count,
    )
