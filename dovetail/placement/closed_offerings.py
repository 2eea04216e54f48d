"""Why is nothing to be had in a zone under a capacity type, beside what the cloud has run out of?"""

from collections.abc import Iterable, Mapping
from typing import Final

from dovetail.model.names import CAPACITY_TYPE, ZONE
from dovetail.model.pools import InstanceType, Offering
from dovetail.model.scheduling.requirements import RequirementSet, compatible, from_expressions
from dovetail.model.values.listing import shown

MOST_TYPES: Final = 3  # in one line


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
