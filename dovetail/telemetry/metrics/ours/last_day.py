"""The cost of the last day and what moves saved in it, by the last answer of `dovetail savings`. Names of ours alone.

An answer replaces the one before entirely: a NodePool or namespace that it no longer names has no series. The number of
namespaces is not limited, so the largest are named and the rest is one series.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from dovetail.telemetry.metrics.gauges import Sample

HELP: Final = {
    "last_day_saved_dollars": "What `dovetail savings` says that the moves of the last day have saved, by NodePool.",
    "last_day_namespace_saved_dollars": "The same dollars by the namespaces whose pods were moved: the ten with the "
    "most, and by `whose` the sums of others, of empty nodes (nobody) and of what is not known.",
    "last_day_bill_dollars": "What the nodes of a NodePool have cost in the last day.",
    "last_day_moves": "Nodes that disruptions took away in the last day.",
    "last_day_moves_back": "Nodes of the last day that were launched again for pods that had to wait.",
}
MOST_NAMESPACES: Final = 10
NAMED: Final = "namespace"  # of `whose`
OTHERS: Final = "others"


class PoolDay(NamedTuple):
    """One NodePool; None if not known."""

    saved: float
    bill: float | None
    moves: int
    back: int


class LastDay:
    """The last answer, until there is another."""

    def __init__(self) -> None:
        self._samples: tuple[Sample, ...] = ()

    def keep(self, pools: Mapping[str, PoolDay], namespaces: Mapping[tuple[str, str], float]) -> None:
        """`namespaces`: dollars by whose they are, and by name if they are a namespace's."""
        self._samples = (*_of_pools(pools), *_of_namespaces(namespaces))

    def forget(self) -> None:
        """Forget the answer, because another worker counts now."""
        self._samples = ()

    def samples(self) -> tuple[Sample, ...]:
        return self._samples


def _of_pools(pools: Mapping[str, PoolDay]) -> Iterator[Sample]:
    for pool, day in sorted(pools.items()):
        labels = (("nodepool", pool),)
        yield Sample(name="last_day_saved_dollars", labels=labels, value=day.saved)
        if day.bill is not None:
            yield Sample(name="last_day_bill_dollars", labels=labels, value=day.bill)
        yield Sample(name="last_day_moves", labels=labels, value=float(day.moves))
        yield Sample(name="last_day_moves_back", labels=labels, value=float(day.back))


def _of_namespaces(namespaces: Mapping[tuple[str, str], float]) -> Iterator[Sample]:
    """The largest by absolute amount: a move that was called off has a cost."""
    named = [key for key in namespaces if key[0] == NAMED]
    named.sort(key=lambda key: (-abs(namespaces[key]), key))
    shown = set(named[:MOST_NAMESPACES])
    sums: dict[tuple[str, str], float] = {}
    for key, dollars in namespaces.items():
        place = (OTHERS, "") if key[0] == NAMED and key not in shown else key
        sums[place] = sums.get(place, 0.0) + dollars
    for (whose, namespace), dollars in sorted(sums.items()):
        labels = (("namespace", namespace), ("whose", whose))
        yield Sample(name="last_day_namespace_saved_dollars", labels=labels, value=dollars)
