"""Bins that are there take further pods, each where it adds least to the price; a bin may become a larger one for it.

Filling makes good bins while there are many pods to choose from. What is left at the end are pods that nothing goes
with, each on a node of its own. They belong into the gaps of bins that were filled before.
"""

from collections.abc import Sequence

import numpy as np

from dovetail.placement.cost.filling import SLACK, Bin, Filler
from dovetail.placement.cost.problem import Flags, Floats, Integers


class Shelf:
    """Some bins, as arrays."""

    def __init__(self, filler: Filler, bins: Sequence[Bin]) -> None:
        problem = filler.problem
        self._filler = filler
        self._problem = problem
        self._by_price = np.argsort(problem.price, kind="stable")
        self._rooms = filler.rooms[self._by_price]
        self._prices = np.append(problem.price[self._by_price], np.inf)
        suits = problem.suits[:, self._by_price]
        self._suits_of_need = suits
        self._suits: Flags = np.stack([suits[np.unique(problem.need[b.items])].all(axis=0) for b in bins])
        self._used: Floats = np.stack([b.used for b in bins])
        self._colour = np.array([int(problem.colour[b.items].max()) for b in bins], dtype=np.int64)
        self._contents = [dict(zip(b.items.tolist(), b.counts.tolist(), strict=True)) for b in bins]
        self.bins = list(bins)
        self.prices: Floats = np.array([b.price for b in bins])
        hosts = problem.hosts
        groups = 0 if hosts is None else hosts.groups
        self._count: Integers = np.zeros((len(bins), groups), dtype=np.int64)
        self._binding: Flags = np.zeros((len(bins), groups), dtype=bool)
        for number, contents in enumerate(self._contents):
            for item, count in contents.items():
                self._tally(number, item, count)

    def _tally(self, number: int, item: int, count: int) -> None:
        hosts = self._problem.hosts
        if hosts is not None:
            self._count[number, list(hosts.counted[item])] += count
            self._binding[number, list(hosts.bound[item])] = True

    def _refused(self, item: int) -> Flags:
        """The bins that the item's pods may not join whatever room there is."""
        colour = int(self._problem.colour[item])
        refused: Flags = (
            (self._colour > 0) & (self._colour != colour) if colour else np.zeros(len(self.bins), dtype=bool)
        )
        hosts = self._problem.hosts
        if hosts is not None:
            refusing = hosts.refusing(self._count, self._binding)
            refused |= refusing[:, hosts.checks[item]].any(axis=1)
        return refused

    def insert(self, item: int) -> float | None:
        """Put one pod where it adds least; by how much. None: no bin takes it for less than a node of its own costs."""
        size = self._filler.amounts[item]
        own = self._suits_of_need[self._problem.need[item]]
        alone = own & (self._rooms >= size - SLACK).all(axis=1)
        lowest = float(self._prices[int(alone.argmax())]) if alone.any() else np.inf
        fits = self._suits & own
        wanted = self._used + size
        for resource in range(len(size)):
            fits &= self._rooms[:, resource] >= wanted[:, resource, None] - SLACK
        first = np.where(fits.any(axis=1), fits.argmax(axis=1), len(self._by_price))
        added = self._prices[first] - self.prices
        added[self._refused(item)] = np.inf
        at = int(added.argmin())
        if not added[at] < lowest:
            return None
        self._put(item, at, int(first[at]))
        return float(added[at])

    def _put(self, item: int, at: int, choice: int) -> None:
        self._used[at] += self._filler.amounts[item]
        self._suits[at] &= self._suits_of_need[self._problem.need[item]]
        self._colour[at] = max(int(self._colour[at]), int(self._problem.colour[item]))
        self._contents[at][item] = self._contents[at].get(item, 0) + 1
        self.prices[at] = self._prices[choice]
        self._tally(at, item, 1)
        items = np.array(sorted(self._contents[at]), dtype=np.int64)
        counts = np.array([self._contents[at][each] for each in items.tolist()], dtype=np.int64)
        made = Bin(items, counts, self._used[at].copy(), int(self._by_price[choice]), float(self._prices[choice]))
        self.bins[at] = made
