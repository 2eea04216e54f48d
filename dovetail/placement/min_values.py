"""Do enough distinct values remain for every requirement that asks for a minimum?

The question comes up whenever instance types were filtered or cut (PLC-122, PLC-123, PLC-137). Types are counted in
order, because consolidation needs the length of the shortest prefix that suffices.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

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


def covering(types: Sequence[RequirementSet], wanted: RequirementSet, most: int) -> frozenset[int]:
    """At most so many types that together have the values that all minima ask for, or as many of them as are found by
    taking the type that brings most of what is missing, of equals the first. What a type brings only becomes less, so
    only those that may be next are looked at again."""
    missing, found = minima_of(wanted), {key: set[str]() for key in minima_of(wanted)}
    values = [
        {key: set(filter(wanted[key].has, item.values)) for key in missing if (item := requirements.get(key))}
        for requirements in types
    ]

    def brings(number: int) -> int:
        new = ((key, len(its - found[key])) for key, its in values[number].items())
        return sum(min(count, max(0, missing[key] - len(found[key]))) for key, count in new)

    heap = [(-brings(number), number) for number in range(len(types))]
    heapify(heap)
    chosen: set[int] = set()
    while heap and heap[0][0] < 0 and len(chosen) < most:
        known, number = heappop(heap)
        now = -brings(number)
        if now != known:
            heappush(heap, (now, number))
            continue
        chosen.add(number)
        for key, its in values[number].items():
            found[key] |= its
    return frozenset(chosen)
