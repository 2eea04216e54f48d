"""Bins that are there take further pods, each where it adds least to the price; a bin may become a larger one for it.

Filling makes good bins while there are many pods to choose from. What is left at the end are pods that nothing goes
with, each on a node of its own. They belong into the gaps of bins that were filled before.
"""

from collections.abc import Sequence

import numpy as np

from dovetail.placement.cost.problem import Flags, Floats, Integers
from dovetail.placement.cost.searching.cheapest import Bits
from dovetail.placement.cost.searching.filling import Bin, Filler, as_arrays


class Shelf:
    """Some bins, as arrays."""

    def __init__(self, filler: Filler, bins: Sequence[Bin]) -> None:
        problem = filler.problem
        self._filler = filler
        self._problem = problem
        self._prices = np.append(problem.price, np.inf)
        self._suiting: Bits = np.stack([filler.suiting_all(b.items) for b in bins])
        self._used: Floats = np.stack([b.used for b in bins])
        self._colour = np.array([int(problem.colour[b.items].max()) for b in bins], dtype=np.int64)
        self._bins = list(bins)
        self._choice: Integers = np.array([b.choice for b in bins], dtype=np.int64)
        self._more: dict[int, dict[int, int]] = {}  # what was put into which bin
        if problem.hosts is not None:
            self._count: Integers = np.stack([b.counts @ filler.counted[b.items] for b in bins])
            self._binding: Flags = np.stack([filler.binding[b.items].any(axis=0) for b in bins])

    @property
    def bins(self) -> list[Bin]:
        return [self._bin(at) if at in self._more else each for at, each in enumerate(self._bins)]

    def _bin(self, at: int) -> Bin:
        before = self._bins[at]
        contents = before.contents()
        for item, count in self._more[at].items():
            contents[item] = contents.get(item, 0) + count
        items, counts = as_arrays(contents)
        choice = int(self._choice[at])
        return Bin(items, counts, self._used[at].copy(), choice, float(self._prices[choice]))

    def _refused(self, item: int) -> Flags:
        """The bins that the item's pods may not join whatever room there is."""
        colour = int(self._problem.colour[item])
        refused: Flags = (
            (self._colour > 0) & (self._colour != colour) if colour else np.zeros(len(self._bins), dtype=bool)
        )
        hosts = self._problem.hosts
        if hosts is not None:
            for check in hosts.checks[item].tolist():
                refused |= hosts.refusing_one(check, self._count, self._binding)
        return refused

    def insert(self, item: int) -> float | None:
        """Put one pod where it adds least; by how much. None: no bin takes it for less than a node of its own costs."""
        size, own = self._filler.amounts[item], self._filler.suits[self._problem.need[item]]
        some, first = self._filler.cheapest.first(self._suiting & own, self._used + size)
        first = np.where(some, first, len(self._prices) - 1)
        added = self._prices[first] - self._prices[self._choice]
        added[self._refused(item)] = np.inf
        at = int(added.argmin())
        if not added[at] < self._filler.alone[item]:
            return None
        self._put(item, at, int(first[at]))
        return float(added[at])

    def _put(self, item: int, at: int, choice: int) -> None:
        self._used[at] += self._filler.amounts[item]
        self._suiting[at] &= self._filler.suits[self._problem.need[item]]
        self._colour[at] = max(int(self._colour[at]), int(self._problem.colour[item]))
        self._choice[at] = choice
        more = self._more.setdefault(at, {})
        more[item] = more.get(item, 0) + 1
        if self._problem.hosts is not None:
            self._count[at] += self._filler.counted[item]
            self._binding[at] |= self._filler.binding[item]
