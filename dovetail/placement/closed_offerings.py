"""Why is nothing to be had in a zone under a capacity type, beside what the cloud has run out of?"""

from collections.abc import Iterable, Mapping

from dovetail.model.names import CAPACITY_TYPE, ZONE
from dovetail.model.pools import InstanceType, Offering
from dovetail.model.scheduling.requirements import RequirementSet, compatible, from_expressions


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


def _places(kinds: Mapping[str, Iterable[str]]) -> str:
    return ", ".join(f"{kind} in {', '.join(sorted(zones))}" for kind, zones in sorted(kinds.items()))
