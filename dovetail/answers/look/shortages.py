"""What the cloud has run out of, in words: which types, where, since when, and when it is asked for them again.

A catalogue marks what is short among its offerings; the planners see it there, and only there.
"""

from dovetail.model.pools import NodePool
from dovetail.model.scheduling.requirements import compatible, from_expressions, merge
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time
from dovetail.placement.closed_offerings import closed_offerings, closed_words, sold_out, sold_out_words


def short_of_pool(snapshot: Snapshot, pool: NodePool) -> str:
    """What its own requirements would let through and is not to be had now; empty where that is nothing."""
    catalogue = snapshot.catalogues.get(pool.name)
    wanted = from_expressions(pool.template.requirements)
    types = catalogue.types if catalogue is not None else ()
    found = [
        (item, offering)
        for item, offering in sold_out(types, snapshot.now)
        if compatible(merge(from_expressions(item.requirements), from_expressions(offering.requirements)), wanted)
    ]
    short = sold_out_words(found)
    if found:
        first, until = min(each.short_since for _, each in found), max(each.short_until for _, each in found)
        short += f" since {format_time(first)}" if first else ""
        short += f"; asked for again at {format_time(until)} at the latest"
    return "; ".join(filter(None, (short, closed_words(closed_offerings(types), wanted))))


def shortages(snapshot: Snapshot) -> tuple[str, ...]:
    """A line for each NodePool that something is short for."""
    lines = [(name, short_of_pool(snapshot, pool)) for name, pool in sorted(snapshot.pools.items())]
    return tuple(f"NodePool {name}: {words}" for name, words in lines if words)
