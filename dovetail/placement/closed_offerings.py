"""Why is something not to be had that a pool allows?"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from dovetail.model.names import CAPACITY_TYPE, ZONE
from dovetail.model.pools import InstanceType, Offering
from dovetail.model.scheduling.requirements import RequirementSet, compatible, from_expressions, passes
from dovetail.model.values.listing import shown

MOST_TYPES: Final = 3  # in one line


class Withheld(NamedTuple):
    """A type, and its offerings that are not to be had for a reason that is known."""

    item: InstanceType
    offerings: tuple[Offering, ...]

    @property
    def is_for_good(self) -> bool:
        """Whether somebody must change something before it is to be had."""
        return bool(self.item.unsuited) or all(each.unpriced for each in self.offerings)


def withheld(
    types: Iterable[tuple[InstanceType, RequirementSet]], wanted: RequirementSet, now: float
) -> list[Withheld]:
    """What suits and is not to be had, of types with their requirements."""
    known: dict[int, bool] = {}  # by the requirements of offerings, which types share: there are thousands of these

    def suits(offering: Offering) -> bool:
        identity = id(offering.requirements)
        if identity not in known:
            known[identity] = overlap(from_expressions(offering.requirements), wanted)
        return known[identity]

    found: list[Withheld] = []
    for item, has in types:
        offerings = tuple(
            each
            for each in item.offerings
            if not each.available and (each.closed or each.unpriced or each.short_until > now) and suits(each)
        )
        if (offerings or item.unsuited) and overlap(has, wanted):
            found.append(Withheld(item, offerings))
    return found


def withheld_words(found: Sequence[Withheld], now: float) -> str:
    """Each reason with what it holds for; empty where nothing is withheld."""
    short = [(each.item, o) for each in found for o in each.offerings if o.short_until > now]
    closed = {id(o.requirements): o for each in found for o in each.offerings if o.closed}
    unpriced = sorted(each.item.name for each in found if any(o.unpriced for o in each.offerings))
    price = f"no price of it is known: {shown(unpriced, MOST_TYPES)}" if unpriced else ""
    unsuited = unsuited_words(each.item for each in found)
    return "; ".join(filter(None, (sold_out_words(short), closed_words(closed.values(), {}), unsuited, price)))


def overlap(has: RequirementSet, wanted: RequirementSet) -> bool:
    """Whether the two agree on every key that both have."""
    return all(passes(item, wanted[key]) for key, item in has.items() if key in wanted)


def closed_offerings(types: Iterable[InstanceType]) -> tuple[Offering, ...]:
    """One of each kind: types share the requirements of their offerings, and there are thousands of these."""
    closed = {id(each.requirements): each for item in types for each in item.offerings if each.closed}
    return tuple(closed.values())


def closed_words(offerings: Iterable[Offering], wanted: RequirementSet) -> str:
    """The reasons of those that suit, each with where it holds; empty where there are none."""
    found: dict[str, dict[str, set[str]]] = {}
    for each in offerings:
        have = from_expressions(each.requirements)
        if compatible(have, {key: item for key, item in wanted.items() if key in have}):
            kinds = found.setdefault(each.closed, {})
            for kind in have[CAPACITY_TYPE].values:
                kinds.setdefault(kind, set()).update(have[ZONE].values)
    return "; ".join(f"{closed}: {_places(kinds)}" for closed, kinds in sorted(found.items()))


def unsuited_words(types: Iterable[InstanceType]) -> str:
    """Why none of some of these types can be launched, with the first of them."""
    found: dict[str, list[str]] = {}
    for each in types:
        if each.unsuited:
            found.setdefault(each.unsuited, []).append(each.name)
    return "; ".join(f"{why}: {shown(sorted(names), MOST_TYPES)}" for why, names in sorted(found.items()))


def sold_out(types: Iterable[InstanceType], now: float) -> tuple[tuple[InstanceType, Offering], ...]:
    """What the cloud has run out of, until a moment that is yet to come."""
    return tuple((t, o) for t in types for o in t.offerings if not o.available and o.short_until > now)


def sold_out_words(found: Iterable[tuple[InstanceType, Offering]]) -> str:
    """Which types it has run out of, and where; empty where that is none."""
    zones: dict[tuple[str, str], set[str]] = {}
    for item, offering in found:
        have = from_expressions(offering.requirements)
        zones.setdefault((item.name, ", ".join(sorted(have[CAPACITY_TYPE].values))), set()).update(have[ZONE].values)
    parts = [f"{name} {kind} in {', '.join(sorted(where))}" for (name, kind), where in sorted(zones.items())]
    return f"the cloud has run out of {shown(parts, MOST_TYPES)}" if parts else ""


def _places(kinds: Mapping[str, Iterable[str]]) -> str:
    return ", ".join(f"{kind} in {', '.join(sorted(zones))}" for kind, zones in sorted(kinds.items()))
