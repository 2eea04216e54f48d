"""The instance types that a class could launch now, with their offerings (AWS-48 to AWS-50, AWS-63 to AWS-66, AWS-146).

Offerings are made anew when a price or a shortage changes. An unchanged offering stays the same object, because there
are 11,000 of them, and planners remember by identity what they have worked out for each.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.catalogue.prices import Prices
from dovetail.adapters.aws.catalogue.shortages import Shortage, Shortages, ShortFor, class_scope
from dovetail.adapters.aws.instance_types.region_types import Region
from dovetail.adapters.aws.instance_types.sized_types import SizedType
from dovetail.adapters.aws.instance_types.type_labels import never, one_of
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.placement_groups import PlacementGroup
from dovetail.adapters.aws.resources.reservations import Reservation
from dovetail.model import names as core
from dovetail.model.pods import Expression
from dovetail.model.pools import InstanceType, Offering
from dovetail.model.scheduling.requirements import RequirementSet, from_expressions

_OPEN: Final = ShortFor(0.0, 0.0)
_FULL: Final = "no subnet of its EC2NodeClass has a free address there"
_SHIFTED: Final = "traffic is shifted away from the zone"
ShortPools = Mapping[tuple[str, str, str], ShortFor]  # by capacity type, instance type ("" for all) and zone
RESERVED_SHARE: Final = 10_000_000.0  # a reserved offering costs this part of on-demand: first choice, yet comparable


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferingKind:
    """Where and under which capacity type instances are offered, without a price: shared by all such types."""

    capacity_type: str
    zone: str
    expressions: tuple[Expression, ...]
    requirements: RequirementSet
    reservation: Reservation | None = None
    partition: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedType:
    """A type as planners see it. `kinds` has one entry for each of its offerings, in the same order."""

    sized: SizedType
    type: InstanceType
    kinds: tuple[OfferingKind, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What changes from minute to minute."""

    prices: Prices
    shortages: Shortages
    reservations: Sequence[Reservation] = ()
    group: PlacementGroup | None = None
    shifted: frozenset[str] = frozenset()  # zones that traffic is shifted away from (AWS-155)
    full_zones: frozenset[tuple[str, str]] = frozenset()  # (capacity type, zone) without a subnet that has room
    node_class: str = ""  # its UID
    before: Sequence[OfferedType] = ()  # the last answer for this class: what has not changed stays the same object


def offered_types(
    sized_types: Iterable[SizedType], region: Region, node_class: NodeClass, now: Circumstances
) -> tuple[OfferedType, ...]:
    """The types with their offerings, unavailable ones included (CLD-5)."""
    reserved: dict[str, list[OfferingKind]] = {}
    for each in now.reservations:
        kind = _reserved_kind(each, node_class.zone_ids.get(each.zone, ""))
        reserved.setdefault(each.instance_type, []).append(kind)
    group = now.group.id if now.group else ""
    partitions = _partitions(now.group.partitions if now.group else 0)
    shared = _Shared(
        now=now,
        zones=tuple((zone, node_class.zone_ids.get(zone, "")) for zone in region.zones),
        reserved=reserved,
        short={partition: now.shortages.pools(group, partition) for partition in partitions},
        fresh_from=now.shortages.fresh_from(),
        partitions=partitions,
        before={each.sized.facts.name: each for each in now.before},
    )
    return tuple(_offered_type(sized, shared) for sized in sized_types)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What all types have in common, looked up once."""

    now: Circumstances
    zones: tuple[tuple[str, str], ...]  # name and id
    reserved: Mapping[str, list[OfferingKind]]  # by instance type
    short: Mapping[str, ShortPools]  # by partition
    fresh_from: float  # a shortage with a later end may not be asked about again yet
    partitions: tuple[str, ...]
    before: Mapping[str, OfferedType]
    _closed: dict[tuple[str, ...], tuple[tuple[OfferingKind, str], ...]] = field(default_factory=dict)

    def kinds_now(
        self, capacity_types: tuple[str, ...], kinds: tuple[OfferingKind, ...]
    ) -> tuple[tuple[OfferingKind, str], ...]:
        """Each kind, and why it is closed if shortages are ignored; the same for all types offered that way."""
        found = self._closed.get(capacity_types)
        if found is None:
            found = self._closed[capacity_types] = tuple((kind, _closed(kind, self.now)) for kind in kinds)
        return found


def _closed(kind: OfferingKind, now: Circumstances) -> str:
    """Why nothing is launched there now; empty if something is."""
    if kind.zone in now.shifted:
        return _SHIFTED
    return _FULL if (kind.capacity_type, kind.zone) in now.full_zones else ""


def _span(short: ShortPools, capacity_type: str, name: str, zone: str) -> ShortFor:
    """How long it is short; made of moments that are 0 if no shortage is known."""
    return max(short.get((capacity_type, name, zone), _OPEN), short.get((capacity_type, "", ""), _OPEN))


def _offered_type(sized: SizedType, shared: _Shared) -> OfferedType:
    reserved = shared.reserved.get(sized.facts.name, [])
    plain = _kinds(sized.capacity_types, shared.zones, shared.partitions)
    unsuited = _unsuited(sized, shared.now.group)
    fits = not unsuited
    before = shared.before.get(sized.facts.name)
    if before is not None and (before.sized is not sized or before.kinds is not plain):
        before = None  # sized anew, or offered in other kinds: nothing of it can stay
    offerings = _offerings(sized, plain, shared, () if before is None else before.type.offerings, fits=fits)
    if before is not None and not reserved and offerings is before.type.offerings and unsuited == before.type.unsuited:
        return before
    return OfferedType(
        sized=sized,
        kinds=(*plain, *reserved) if reserved else plain,
        type=InstanceType(
            name=sized.facts.name,
            requirements=sized.expressions,
            capacity=sized.sizes.capacity,
            overhead=sized.sizes.overhead,
            unsuited=unsuited,
            offerings=(*offerings, *(_reserved_offering(sized, kind, shared.now, fits=fits) for kind in reserved)),
        ),
    )


def _unsuited(sized: SizedType, group: PlacementGroup | None) -> str:
    """Why none of the type can be launched as the class asks, wherever that is; empty if one can."""
    if sized.unsuited or not sized.has_image:
        return sized.unsuited or "no image of its EC2NodeClass starts on it"
    if group is not None and group.strategy not in sized.facts.strategies:
        return f"placement group {group.name or group.id} takes no such type"
    return "" if sized.zones else "no subnet of its EC2NodeClass is in a zone that has it"


def _offerings(
    sized: SizedType, kinds: tuple[OfferingKind, ...], shared: _Shared, before: tuple[Offering, ...], *, fits: bool
) -> tuple[Offering, ...]:
    """The inner loop, 11,000 rounds: what types share was looked up before, and an unchanged offering is kept."""
    name, zones, prices = sized.facts.name, sized.zones, shared.now.prices
    on_demand, spot, differs = prices.on_demand(name), prices.spot, not before
    found: list[Offering] = []
    for number, (kind, closed) in enumerate(shared.kinds_now(sized.capacity_types, kinds)):
        capacity_type, zone = kind.capacity_type, kind.zone
        price = on_demand if capacity_type == core.CAPACITY_ON_DEMAND else spot(name, zone)
        suits = fits and zone in zones
        available, closed, span, may_be_asked = suits and not closed, closed if suits else "", _OPEN, False
        if available and (short := shared.short[kind.partition]):
            span = _span(short, capacity_type, name, zone)
            available, may_be_asked = not span.until, 0.0 < span.until <= shared.fresh_from
        unpriced = available and price is None
        available = available and not unpriced
        if before:
            same = before[number]
            now = (price or 0.0, available, span.until, may_be_asked, closed, unpriced)
            if (same.price, same.available, same.short_until, same.may_be_asked, same.closed, same.unpriced) == now:
                found.append(same)
                continue
            differs = True
        found.append(
            Offering(
                requirements=kind.expressions,
                price=price or 0.0,
                available=available,
                short_until=span.until,
                short_since=span.since,
                may_be_asked=may_be_asked,
                closed=closed,
                unpriced=unpriced,
            )
        )
    return tuple(found) if differs else before


def _partitions(number: int) -> tuple[str, ...]:
    """By their labels; an empty one if there are none."""
    return tuple(str(each) for each in range(1, number + 1)) or ("",)


@lru_cache(maxsize=256)
def _kinds(
    capacity_types: tuple[str, ...], zones: tuple[tuple[str, str], ...], partitions: tuple[str, ...]
) -> tuple[OfferingKind, ...]:
    """Every zone and capacity type, in each partition where there are any (AWS-64, AWS-70)."""
    return tuple(
        _kind(capacity_type, zone, zone_id, partition)
        for zone, zone_id in zones
        for capacity_type in capacity_types
        if capacity_type != core.CAPACITY_RESERVED
        for partition in partitions
    )


def _kind(capacity_type: str, zone: str, zone_id: str, partition: str) -> OfferingKind:
    expressions = (
        one_of(core.CAPACITY_TYPE, (capacity_type,)),
        one_of(core.ZONE, (zone,)),
        *((one_of(names.ZONE_ID, (zone_id,)),) if zone_id else ()),
        *(never(label) for label in names.RESERVATION_LABELS),
        *((one_of(names.PARTITION, (partition,)),) if partition else ()),
    )
    return OfferingKind(
        capacity_type=capacity_type,
        zone=zone,
        expressions=expressions,
        requirements=from_expressions(expressions),
        partition=partition,
    )


def _reserved_kind(each: Reservation, zone_id: str) -> OfferingKind:
    expressions = (
        one_of(core.CAPACITY_TYPE, (core.CAPACITY_RESERVED,)),
        one_of(core.ZONE, (each.zone,)),
        *((one_of(names.ZONE_ID, (zone_id,)),) if zone_id else ()),
        one_of(names.RESERVATION_ID, (each.id,)),
        one_of(names.RESERVATION_TYPE, (each.kind,)),
        one_of(names.INTERRUPTIBLE, ("true" if each.interruptible else "false",)),
    )
    return OfferingKind(
        capacity_type=core.CAPACITY_RESERVED,
        zone=each.zone,
        expressions=expressions,
        requirements=from_expressions(expressions),
        reservation=each,
    )


def _reserved_offering(sized: SizedType, kind: OfferingKind, now: Circumstances, *, fits: bool) -> Offering:
    """The offering of a reservation, with as many instances as it has left (AWS-146)."""
    each = kind.reservation
    assert each is not None
    exhausted = now.shortages.holds(Shortage(capacity_type=core.CAPACITY_RESERVED, scope=each.id))
    suits = fits and each.zone in sized.zones
    closed = _closed(kind, now)
    if each.expiring:
        closed = f"reservation {each.id} ends soon"
    elif now.shortages.holds(
        Shortage(capacity_type=core.CAPACITY_RESERVED, scope=class_scope(each.id, now.node_class))
    ):
        closed = f"reservation {each.id} has refused the last launch of this class"
    full = suits and not (closed or exhausted) and each.count <= 0
    if not each.expiring and (exhausted or each.count <= 0):
        closed = f"reservation {each.id} has no instance left"
    return Offering(
        requirements=kind.expressions,
        price=(now.prices.on_demand(sized.facts.name) or 0.0) / RESERVED_SHARE,
        available=suits and not closed,
        closed=closed if suits else "",
        reservation_capacity=each.count,
        launched_with=each.launched_with,
        full=full,
    )
