"""What the cloud has run out of, in words: which types, where, since when, and when it is asked for them again.

A catalogue marks what is short among its offerings; the planners see it there, and only there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dovetail.answers.wording import shown
from dovetail.model.names import CAPACITY_TYPE, ZONE
from dovetail.model.pools import NodePool, Offering
from dovetail.model.scheduling.requirements import compatible, from_expressions, merge
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time
from dovetail.placement.closed_offerings import closed_offerings, closed_words

MOST_TYPES: Final = 3  # in one line of a pool


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Short:
    name: str
    capacity_type: str
    zone: str
    since: float
    until: float


def short_of_pool(snapshot: Snapshot, pool: NodePool) -> str:
    """What its own requirements would let through and is not to be had now; empty where that is nothing."""
    catalogue = snapshot.catalogues.get(pool.name)
    wanted = from_expressions(pool.template.requirements)
    types = catalogue.types if catalogue is not None else ()
    found = [
        _short(item.name, offering)
        for item in types
        for offering in item.offerings
        if _holds(offering, snapshot.now)
        and compatible(merge(from_expressions(item.requirements), from_expressions(offering.requirements)), wanted)
    ]
    return "; ".join(filter(None, (_words(found), closed_words(closed_offerings(types), wanted))))


def shortages(snapshot: Snapshot) -> tuple[str, ...]:
    """A line for each NodePool that something is short for."""
    lines = [(name, short_of_pool(snapshot, pool)) for name, pool in sorted(snapshot.pools.items())]
    return tuple(f"NodePool {name}: {words}" for name, words in lines if words)


def _holds(offering: Offering, now: float) -> bool:
    return not offering.available and offering.short_until > now


def _short(name: str, offering: Offering) -> _Short:
    said = from_expressions(offering.requirements)
    return _Short(
        name=name,
        capacity_type=_only(said[CAPACITY_TYPE].values),
        zone=_only(said[ZONE].values),
        since=offering.short_since,
        until=offering.short_until,
    )


def _only(values: Iterable[str]) -> str:
    return ", ".join(sorted(values))


def _words(found: list[_Short]) -> str:
    if not found:
        return ""
    zones: dict[tuple[str, str], list[str]] = {}
    for each in sorted(set(found)):
        zones.setdefault((each.name, each.capacity_type), []).append(each.zone)
    parts = [f"{name} {kind} in {', '.join(sorted(set(where)))}" for (name, kind), where in zones.items()]
    first, until = min(each.since for each in found), max(each.until for each in found)
    since = f" since {format_time(first)}" if first else ""
    again = f"asked for again at {format_time(until)} at the latest"
    return f"the cloud has run out of {shown(parts, MOST_TYPES)}{since}; {again}"
