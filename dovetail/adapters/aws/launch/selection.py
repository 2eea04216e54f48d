"""Which types, in which zones and by which capacity type are offered to a launch (W-78 to W-82, W-150)?

Pure: a claim and a catalogue in, a choice or the reason why there is none out. The order of the filters is upstream's.
The trap avoided: a type that fits a claim in no zone that is for sale.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, tee
from math import inf
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.catalogue.offerings import Item, Offer, Shelved, item_of, offer_of
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Expression
from dovetail.model.requirements import RequirementSet, conflicts, from_expressions
from dovetail.model.resources import Resources, fits, subtract

MOST_TYPES: Final = 60  # W-81: what CreateFleet takes well
NOTHING: Final = "all requested instance types were unavailable during launch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a fleet is asked for: types in order of price, each with the offers of one capacity type."""

    capacity_type: str
    tenancy: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """What of the settings bears on a choice."""

    strict_min_values: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Suited:
    """A type that a claim's requirements allow, with the offers for sale that they allow."""

    item: Item
    room: Resources  # what it leaves to pods, nothing of it below zero
    reserved: bool
    cheapest_on_demand: float
    dearest_spot: float

    @classmethod
    def of(cls, item: Item, room: Resources) -> "Suited":
        """With what launches ask of hundreds of types, worked out once for all of them."""
        offers = item.offers
        return cls(
            item=item,
            room=room,
            reserved=any(offer.reservation is not None for offer in offers),
            cheapest_on_demand=min(
                (o.price for o in offers if o.capacity_type == core.CAPACITY_ON_DEMAND), default=inf
            ),
            dearest_spot=max((o.price for o in offers if o.capacity_type == core.CAPACITY_SPOT), default=-inf),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What suits a claim but for amounts, cheapest first. `plain_trade`: neither reservations nor spot among it, so
    that no offer of one type bears on those of another."""

    types: tuple[Suited, ...]
    plain_trade: bool


def suited(requirements: Iterable[Expression], shelf: Iterable[Shelved]) -> Range:
    """(1) without the amounts, cheapest first: the same for all that ask for the same, however much they need."""
    wanted, found = from_expressions(requirements), []
    by_way: dict[int, bool] = {}  # ways are shared by all types that are sold so
    for shelved in shelf:
        if conflicts(shelved.form.requirements, wanted):
            continue
        kept = []
        for way, offering in zip(shelved.ways, shelved.type.offerings, strict=True):
            if not offering.available:
                continue
            allowed = by_way.get(id(way))
            if allowed is None:
                allowed = by_way[id(way)] = not conflicts(way.requirements, wanted)
            if allowed:
                kept.append(offer_of(way, offering))
        if kept:
            room = subtract(shelved.type.capacity, shelved.type.overhead)
            if fits({}, room):
                found.append(Suited.of(item_of(shelved.form, tuple(kept)), room))
    return Range(
        types=tuple(sorted(found, key=lambda each: _rank(each.item))),
        plain_trade=not any(each.reserved or each.dearest_spot > -inf for each in found),
    )


def choose(claim: NodeClaim, among: Range, preferences: Preferences) -> Choice | str:
    """A choice, or why there is none."""
    wanted = from_expressions(claim.requirements)
    has_minimum = any(item.min_values is not None for item in wanted.values())
    items = _offered(_holding(among.types, claim.requests), among.plain_trade, has_minimum)[:MOST_TYPES]
    if not items:
        return NOTHING
    if has_minimum and preferences.strict_min_values and not _meets_minimum(wanted, items):
        return "minValues cannot be met by the instance types that are available"
    kind = _capacity_type(items)
    kept = tuple(item for item in [_only(item, lambda o: o.capacity_type == kind) for item in items] if item.offers)
    tenancy = wanted.get(names.TENANCY)
    return Choice(
        capacity_type=kind, tenancy="default" if tenancy is None or tenancy.has("default") else "dedicated", items=kept
    )


def _holding(types: Iterable[Suited], requests: Resources) -> Iterator[Suited]:
    """Those that are large enough."""
    needs = tuple(requests.items())
    for each in types:
        room = each.room
        for name, amount in needs:
            if amount > room.get(name, 0):
                break
        else:
            yield each


def _offered(holding: Iterator[Suited], plain_trade: bool, has_minimum: bool) -> list[Item]:
    """(2) to (6). Where nothing of one type bears on another, it ends with the last that a fleet takes."""
    if plain_trade and not has_minimum:
        kept, rest = tee(holding)
        plain = islice((each.item for each in kept if each.item.form.plain), MOST_TYPES)
        return list(plain) or [each.item for each in rest]
    found = list(holding)
    if any(each.reserved for each in found):
        found = _bookable(found)
    return [each.item for each in found] if has_minimum else _affordable_spot(_plain(found))


def _rank(item: Item) -> tuple[float, str]:
    return item.price, item.form.facts.name


def _only(item: Item, keep: Callable[[Offer], bool]) -> Item:
    kept = tuple([offer for offer in item.offers if keep(offer)])
    return item if len(kept) == len(item.offers) else item_of(item.form, kept)


def _bookable(holding: Iterable[Suited]) -> list[Suited]:
    """(2) to (4), cheapest first again."""
    items = [each.item for each in holding]
    for each in (_one_kind_of_reservation, _one_capacity_block, _one_reservation_per_zone):
        items = each(items)
    return [Suited.of(item, {}) for item in sorted(items, key=_rank)]


_KINDS: Final = (("default", False), ("capacity-block", False), ("default", True), ("capacity-block", True))


def _kind(offer: Offer) -> tuple[str, bool]:
    assert offer.reservation is not None
    return offer.reservation.kind, offer.reservation.interruptible


def _one_kind_of_reservation(items: list[Item]) -> list[Item]:
    """(2), W-79: the kind with the cheapest reservation; all else goes."""
    reserved = [o for item in items for o in item.offers if o.reservation is not None]
    if not reserved:
        return items
    cheapest = min(reserved, key=lambda offer: (offer.price, _KINDS.index(_kind(offer))))
    kept = [_only(i, lambda o: o.reservation is not None and _kind(o) == _kind(cheapest)) for i in items]
    return [item for item in kept if item.offers]


def _one_capacity_block(items: list[Item]) -> list[Item]:
    """(3): a fleet takes instances from one block only."""
    blocks = [
        (offer.price, item.form.facts.name, offer.reservation.id)
        for item in items
        for offer in item.offers
        if offer.reservation is not None and offer.reservation.kind == "capacity-block"
    ]
    if not blocks:
        return items
    _, name, block = min(blocks)
    chosen = [item for item in items if item.form.facts.name == name]
    return [_only(item, lambda o: o.reservation is not None and o.reservation.id == block) for item in chosen]


def _one_reservation_per_zone(items: list[Item]) -> list[Item]:
    """(4): of the reservations of a type in a zone the one with the largest count."""
    return [item_of(item.form, tuple(_largest(item.offers))) for item in items]


def _largest(offers: Iterable[Offer]) -> list[Offer]:
    best: dict[tuple[str, str], Offer] = {}
    plain = []
    for offer in offers:
        if offer.reservation is None:
            plain.append(offer)
            continue
        key = (offer.zone, offer.partition)
        other = best.get(key)
        if other is None or other.reservation is None or _count(offer) > _count(other):
            best[key] = offer
    return [*plain, *best.values()]


def _count(offer: Offer) -> tuple[int, str]:
    assert offer.reservation is not None
    return offer.reservation.count, offer.reservation.id


def _plain(holding: list[Suited]) -> list[Suited]:
    """(5), W-80: no metal and no accelerators, unless nothing else is left."""
    return [each for each in holding if each.item.form.plain] or holding


def _affordable_spot(holding: list[Suited]) -> list[Item]:
    """(6): where both are for sale, no spot offer that costs more than the cheapest on demand."""
    most = min([each.cheapest_on_demand for each in holding], default=inf)
    if max([each.dearest_spot for each in holding], default=-inf) <= most:
        return [each.item for each in holding]
    kept = [_only(e.item, lambda o: o.capacity_type != core.CAPACITY_SPOT or o.price <= most) for e in holding]
    return sorted([item for item in kept if item.offers], key=_rank)


def _meets_minimum(wanted: RequirementSet, items: Iterable[Item]) -> bool:
    kept = list(items)
    for key, requirement in wanted.items():
        if requirement.min_values is None:
            continue
        values: set[str] = set()
        for item in kept:
            known = item.form.requirements.get(key)
            if known is not None and not known.complement:
                values |= {value for value in known.values if requirement.has(value)}
        if len(values) < requirement.min_values:
            return False
    return True


def _capacity_type(items: Iterable[Item]) -> str:
    """W-82, W-150."""
    kinds = {offer.capacity_type for item in items for offer in item.offers}
    for kind in (core.CAPACITY_RESERVED, core.CAPACITY_SPOT):
        if kind in kinds:
            return kind
    return core.CAPACITY_ON_DEMAND
