"""Which types, in which zones and under which capacity type a fleet is asked for (AWS-78 to AWS-82, AWS-150).

Pure: a claim and its catalogue in, a choice or the reason for none out. The order of the filters is upstream's, and the
numbers below are too. A type counts only with the offerings that the claim allows and that are available, so that no
type is chosen that fits the claim in none of these zones.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, tee
from math import inf
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.catalogue.offerings import OfferedType
from dovetail.adapters.aws.launch.launch_options import LaunchOffering, LaunchOption, launch_offering, launch_option
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Expression
from dovetail.model.scheduling.requirements import RequirementSet, conflicts, from_expressions
from dovetail.model.values.resources import Resources, fits, subtract
from dovetail.placement.min_values import covering, minima_of, shortest_prefix
from dovetail.ports.cloud import FILTERED, LaunchRefused, NoCapacity

MOST_TYPES: Final = 60  # what CreateFleet takes well (AWS-81)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChoice:
    """What a fleet is asked for: types in order of price, each with its offerings under one capacity type."""

    capacity_type: str
    tenancy: str
    options: tuple[LaunchOption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitableType:
    """A type that a claim's requirements allow, with the available offerings that they allow."""

    option: LaunchOption
    room: Resources  # what it leaves to pods, nothing of it below zero
    reserved: bool
    cheapest_on_demand: float
    highest_spot_price: float

    @classmethod
    def of(cls, option: LaunchOption, room: Resources) -> "SuitableType":
        """Including what launches need for hundreds of types, worked out once for all of them."""
        offerings = option.offerings
        return cls(
            option=option,
            room=room,
            reserved=any(offering.reservation is not None for offering in offerings),
            cheapest_on_demand=min(
                (o.price for o in offerings if o.capacity_type == core.CAPACITY_ON_DEMAND), default=inf
            ),
            highest_spot_price=max((o.price for o in offerings if o.capacity_type == core.CAPACITY_SPOT), default=-inf),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitableTypes:
    """What suits a claim apart from amounts, cheapest first."""

    types: tuple[SuitableType, ...]
    on_demand_only: bool  # neither reservations nor spot: no offering of one type bears on those of another


def suitable_types(requirements: Iterable[Expression], offered: Iterable[OfferedType]) -> SuitableTypes:
    """The types that are allowed, cheapest first: the same for all claims with these requirements, of any size."""
    wanted, found = from_expressions(requirements), []
    allowed_kinds: dict[int, bool] = {}  # by identity: kinds are shared by all types offered so
    for each in offered:
        if conflicts(each.sized.requirements, wanted):
            continue
        kept = []
        for kind, offering in zip(each.kinds, each.type.offerings, strict=True):
            if not offering.available:
                continue
            allowed = allowed_kinds.get(id(kind))
            if allowed is None:
                allowed = allowed_kinds[id(kind)] = not conflicts(kind.requirements, wanted)
            if allowed:
                kept.append(launch_offering(kind, offering))
        if kept:
            room = subtract(each.type.capacity, each.type.overhead)
            if fits({}, room):
                found.append(SuitableType.of(launch_option(each.sized, tuple(kept)), room))
    return SuitableTypes(
        types=tuple(sorted(found, key=lambda each: _rank(each.option))),
        on_demand_only=not any(each.reserved or each.highest_spot_price > -inf for each in found),
    )


def choose(
    claim: NodeClaim, among: SuitableTypes, *, strict_min_values: bool
) -> FleetChoice | NoCapacity | LaunchRefused:
    """A choice, or why there is none. Where reservations alone do not meet a minimum, what the claim allows besides
    them."""
    found = _chosen(claim, among, strict=strict_min_values)
    if isinstance(found, LaunchRefused) and any(each.reserved for each in among.types):
        instead = _chosen(claim, _unreserved(among), strict=strict_min_values)
        return instead if isinstance(instead, FleetChoice) else found
    return found


def _chosen(claim: NodeClaim, among: SuitableTypes, *, strict: bool) -> FleetChoice | NoCapacity | LaunchRefused:
    wanted = from_expressions(claim.requirements)
    has_minimum = bool(minima_of(wanted))
    found = _remaining(_large_enough(among.types, claim.requests), among, has_minimum=has_minimum)
    if not found:
        return NoCapacity(message="insufficient capacity, all requested instance types were unavailable during launch")
    options = _most(found, wanted) if has_minimum else found[:MOST_TYPES]
    _, short = shortest_prefix((option.sized.requirements for option in options), wanted)
    if short and strict:
        # No shortage: the claim stays and says so, as the next one would come to the same at once.
        said = ", ".join(f"{key}: {count}" for key, count in short.items())
        types = "instance type" if len(options) == 1 else "instance types"
        return LaunchRefused(
            reason=FILTERED, message=f"minValues cannot be met by {len(options)} available {types}; found {said}"
        )
    capacity_type = _capacity_type(options)
    of_type = [_only(option, lambda o: o.capacity_type == capacity_type) for option in options]
    tenancy = wanted.get(names.TENANCY)
    return FleetChoice(
        capacity_type=capacity_type,
        tenancy="default" if tenancy is None or tenancy.has("default") else "dedicated",
        options=tuple(option for option in of_type if option.offerings),
    )


def _unreserved(among: SuitableTypes) -> SuitableTypes:
    """The types with what they offer besides reservations, cheapest first again."""
    options = ((_only(each.option, lambda o: o.reservation is None), each.room) for each in among.types)
    types = [SuitableType.of(option, room) for option, room in options if option.offerings]
    return SuitableTypes(types=tuple(sorted(types, key=lambda each: _rank(each.option))), on_demand_only=False)


def _most(options: list[LaunchOption], wanted: RequirementSet) -> list[LaunchOption]:
    """The cheapest, but first those that bring a value which a minimum still lacks (AWS-81)."""
    minima = minima_of(wanted)
    found: dict[str, set[str]] = {key: set() for key in minima}
    needed: list[LaunchOption] = []
    others: list[LaunchOption] = []
    for option in options:
        brings = False
        for key, values in found.items():
            known = option.sized.requirements.get(key)
            if known is not None and len(values) < minima[key]:
                new = set(filter(wanted[key].has, known.values)) - values
                values |= new
                brings |= bool(new)
        (needed if brings else others).append(option)
    if len(needed) > MOST_TYPES:  # fewer may do, where one brings what several minima lack
        chosen = covering([option.sized.requirements for option in options], wanted, MOST_TYPES)
        needed = [options[number] for number in sorted(chosen)]
        others = [option for number, option in enumerate(options) if number not in chosen]
    return sorted((needed + others)[:MOST_TYPES], key=_rank)


def _large_enough(types: Iterable[SuitableType], requests: Resources) -> Iterator[SuitableType]:
    needs = tuple(requests.items())
    for each in types:
        room = each.room
        for name, amount in needs:
            if amount > room.get(name, 0):
                break
        else:
            yield each


def _remaining(types: Iterator[SuitableType], among: SuitableTypes, *, has_minimum: bool) -> list[LaunchOption]:
    """What the further filters leave. If no type affects another, it stops at the last type that a fleet takes."""
    if among.on_demand_only and not has_minimum:
        kept, rest = tee(types)
        plain = islice((each.option for each in kept if each.option.sized.plain), MOST_TYPES)
        return list(plain) or [each.option for each in rest]
    found = list(types)
    if any(each.reserved for each in found):
        found = _bookable(found)
    return [each.option for each in found] if has_minimum else _affordable_spot(_plain(found))


def _rank(option: LaunchOption) -> tuple[float, str]:
    return option.price, option.sized.facts.name


def _only(option: LaunchOption, keep: Callable[[LaunchOffering], bool]) -> LaunchOption:
    kept = tuple([offering for offering in option.offerings if keep(offering)])
    return option if len(kept) == len(option.offerings) else launch_option(option.sized, kept)


def _bookable(types: Iterable[SuitableType]) -> list[SuitableType]:
    """What the rules about reservations leave, cheapest first again."""
    options = [each.option for each in types]
    for narrow in (_one_kind_of_reservation, _one_capacity_block, _one_reservation_per_zone):
        options = narrow(options)
    return [SuitableType.of(option, {}) for option in sorted(options, key=_rank)]


_RESERVATION_KINDS: Final = (
    ("default", False),
    ("capacity-block", False),
    ("default", True),
    ("capacity-block", True),
)


def _reservation_kind(offering: LaunchOffering) -> tuple[str, bool]:
    """(kind, whether it may be reclaimed)."""
    assert offering.reservation is not None
    return offering.reservation.kind, offering.reservation.interruptible


def _one_kind_of_reservation(options: list[LaunchOption]) -> list[LaunchOption]:
    """The kind with the cheapest reservation; all others are dropped (AWS-79)."""
    reserved = [o for option in options for o in option.offerings if o.reservation is not None]
    if not reserved:
        return options
    cheapest = min(reserved, key=lambda o: (o.price, _RESERVATION_KINDS.index(_reservation_kind(o))))
    wanted = _reservation_kind(cheapest)
    kept = [_only(each, lambda o: o.reservation is not None and _reservation_kind(o) == wanted) for each in options]
    return [option for option in kept if option.offerings]


def _one_capacity_block(options: list[LaunchOption]) -> list[LaunchOption]:
    """A fleet takes instances from one block only."""
    blocks = [
        (offering.price, option.sized.facts.name, offering.reservation.id)
        for option in options
        for offering in option.offerings
        if offering.reservation is not None and offering.reservation.kind == "capacity-block"
    ]
    if not blocks:
        return options
    _, name, block = min(blocks)
    chosen = [option for option in options if option.sized.facts.name == name]
    return [_only(option, lambda o: o.reservation is not None and o.reservation.id == block) for option in chosen]


def _one_reservation_per_zone(options: list[LaunchOption]) -> list[LaunchOption]:
    """Of the reservations of a type in a zone, the one with the largest count."""
    return [launch_option(option.sized, tuple(_largest(option.offerings))) for option in options]


def _largest(offerings: Iterable[LaunchOffering]) -> list[LaunchOffering]:
    best: dict[tuple[str, str], LaunchOffering] = {}  # by zone and partition
    plain = []
    for offering in offerings:
        if offering.reservation is None:
            plain.append(offering)
            continue
        key = (offering.zone, offering.partition)
        other = best.get(key)
        if other is None or other.reservation is None or _count(offering) > _count(other):
            best[key] = offering
    return [*plain, *best.values()]


def _count(offering: LaunchOffering) -> tuple[int, str]:
    assert offering.reservation is not None
    return offering.reservation.count, offering.reservation.id


def _plain(types: list[SuitableType]) -> list[SuitableType]:
    """No bare metal and no accelerators, unless nothing else is left (AWS-80)."""
    return [each for each in types if each.option.sized.plain] or types


def _affordable_spot(types: list[SuitableType]) -> list[LaunchOption]:
    """If both exist, no spot offering that costs more than the cheapest on-demand one."""
    most = min([each.cheapest_on_demand for each in types], default=inf)
    if max([each.highest_spot_price for each in types], default=-inf) <= most:
        return [each.option for each in types]
    kept = [_only(e.option, lambda o: o.capacity_type != core.CAPACITY_SPOT or o.price <= most) for e in types]
    return sorted([option for option in kept if option.offerings], key=_rank)


def _capacity_type(options: Iterable[LaunchOption]) -> str:
    """Reserved before spot before on-demand (AWS-82, AWS-150)."""
    offered = {offering.capacity_type for option in options for offering in option.offerings}
    for capacity_type in (core.CAPACITY_RESERVED, core.CAPACITY_SPOT):
        if capacity_type in offered:
            return capacity_type
    return core.CAPACITY_ON_DEMAND
