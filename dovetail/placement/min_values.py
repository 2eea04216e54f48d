"""Do enough distinct values remain for every requirement that asks for a minimum?

The question comes up whenever instance types were filtered or cut (PLC-122, PLC-123, PLC-137). Types are counted in
order, because consolidation needs the length of the shortest prefix that suffices.
"""

from collections.abc import Iterable

from dovetail.model.scheduling.requirements import RequirementSet


def minima_of(wanted: RequirementSet) -> dict[str, int]:
    """The keys that ask for a minimum of distinct values."""
    return {key: item.min_values for key, item in wanted.items() if item.min_values is not None}


def shortest_prefix(
    types: Iterable[RequirementSet], wanted: RequirementSet, only_wanted: bool = True
) -> tuple[int, dict[str, int]]:
    """How many types it takes, and for each key that stays short the number of values found. `only_wanted`: values that
    are excluded do not count."""
    minima = minima_of(wanted)
    if not minima:
        return 0, {}
    found: dict[str, set[str]] = {key: set() for key in minima}
    short: dict[str, int] = {}
    count = 0
    for requirements in types:
        count += 1
        for key, values in found.items():
            if item := requirements.get(key):
                values.update(filter(wanted[key].has, item.values) if only_wanted else item.values)
        short = {key: len(values) for key, values in found.items() if len(values) < minima[key]}
        if not short:
            break
    return count, short
