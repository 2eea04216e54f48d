"""Looks for cheaper bins until it is stopped: bins that are poorly paid for are taken apart, and bins exchange pods."""

from collections.abc import Callable, Sequence

import numpy as np

from dovetail.placement.cost.problem import Floats, Integers, Problem
from dovetail.placement.cost.searching.exchanging import Exchange
from dovetail.placement.cost.searching.filling import Bin, Filler
from dovetail.placement.cost.searching.inserting import Shelf
from dovetail.placement.cost.searching.patterns import Patterns, repeats
from dovetail.placement.cost.searching.pouring import Poured, poured
from dovetail.placement.cost.searching.values import least_values

_PART = 400  # pods that are looked at together at first: with all at once, the work would grow with their square
_TAKING = 120  # bins that pods of others are put into, at most: more would make a step slow
_EXCHANGING = 150  # different pods of the bins that exchange some, at least
_FOR_PATTERNS = 6  # candidates for each bin where the first answer is the beginning of patterns
_FEW_NODES = 4  # poured pods say little of fewer whole nodes
_BAR = 1.02  # what a unit of value may cost in the first answer
_WASTEFUL = 0.6  # a bin is wasteful whose pods pay for less of its price than this share of the average


def _stock_of(bins: Sequence[Bin], items: int) -> Integers:
    stock = np.zeros(items, dtype=np.int64)
    for each in bins:
        stock[each.items] += each.counts
    return stock


def _cost(bins: Sequence[Bin]) -> float:
    return float(sum(each.price for each in bins))


class Search:
    """One search over a problem; the same seed and number of steps give the same bins."""

    def __init__(self, problem: Problem, seed: int, candidates: int = 24) -> None:
        self.problem = problem
        self.chance = np.random.default_rng(seed)
        found = poured(problem)
        if found.nodes.sum() < _FEW_NODES:
            found = Poured(least_values(problem, self.chance), np.zeros(len(problem.price)))
        self.value = found.worth
        self.filler = Filler(problem, self.chance, min(candidates, _FOR_PATTERNS) if repeats(problem) else candidates)
        self.filler.set_merit(self.value, found.nodes)
        self.bins: list[Bin] = []
        self.steps = 0

    def start(self, is_late: Callable[[], bool]) -> None:
        """The first answer; what is still to be filled when time is up is filled with less care."""
        stock = self.problem.stock
        parts = max(1, round(int(stock.sum()) / _PART))
        spread = np.arange(len(stock))
        for part in range(parts):
            share = stock // parts + ((spread + part) % parts < stock % parts)
            self.bins += self.filler.fill(share, self.value, _BAR, is_late)
        self._gather()

    def _gather(self) -> None:
        """Move the pods of all wasteful bins into the others: bins that are filled last hold what fits with nothing."""
        price = np.array([b.price for b in self.bins])
        share = self._worth() / price
        average = float(share @ price) / max(float(price.sum()), 1e-9)
        wasteful = set(np.flatnonzero(share < _WASTEFUL * average).tolist())
        if 0 < len(wasteful) < len(self.bins):
            self._empty(wasteful, [n for n in range(len(self.bins)) if n not in wasteful])

    def begin_with(self, bins: Sequence[Bin], left: Integers, is_late: Callable[[], bool]) -> None:
        """Begin with an answer that is there, and fill what is left beside it."""
        self.bins = [*bins, *self.filler.fill(left, self.value, _BAR, is_late)]

    def by_patterns(self, should_stop: Callable[[], bool]) -> None:
        """Take the nodes of the cheapest mix of patterns, if they cost less: worth a try where few kinds of pods
        repeat."""
        if not self.bins or not repeats(self.problem):
            return
        patterns = Patterns(self.filler, self.bins)
        patterns.improve(should_stop)
        self.value = np.maximum(patterns.worth, 1e-9)
        bins, left = patterns.whole()
        bins += self.filler.fill(left, self.value, _BAR, should_stop)
        if _cost(bins) < self.cost:
            self.bins = bins

    def improve(self, should_stop: Callable[[], bool], most_steps: int) -> None:
        """Take a few bins apart, again and again."""
        while self.steps < most_steps and not should_stop():
            self.steps += 1
            self._step()

    def _step(self) -> None:
        if len(self.bins) < 2:
            return
        if self.steps % 3 == 0:
            self._exchange()
        else:
            self._spread(self._drawn(int(self.chance.integers(1, 4))))

    def _exchange(self) -> None:
        order = self.chance.permutation(len(self.bins)).tolist()
        some, entries = [], 0
        for number in order:
            entries += len(self.bins[number].items) + 1
            some.append(number)
            if entries > _EXCHANGING:
                break
        left = [self.bins[number] for number in sorted(set(order) - set(some))]
        exchange = Exchange(self.filler, [self.bins[number] for number in some])
        exchange.improve()
        self.bins = left + exchange.bins

    def _drawn(self, count: int) -> set[int]:
        """That many bins, drawn so that wasteful ones come more often."""
        bins = self.bins
        price = np.array([b.price for b in bins])
        waste = np.maximum(price - self._worth(), 0) + 1e-3 * price
        most = min(count, len(bins) - 1)
        return set(self.chance.choice(len(bins), most, replace=False, p=waste / waste.sum()).tolist())

    def _worth(self) -> Floats:
        bins = self.bins
        first = np.cumsum([0, *(len(b.items) for b in bins[:-1])])
        items, counts = np.concatenate([b.items for b in bins]), np.concatenate([b.counts for b in bins])
        worth: Floats = np.add.reduceat(self.value[items] * counts, first)
        return worth

    def _spread(self, chosen: set[int]) -> None:
        """The pods of these bins into others; those that no bin takes cheaply are filled into new ones."""
        others = [n for n in range(len(self.bins)) if n not in chosen]
        self._empty(chosen, sorted(self.chance.choice(others, min(_TAKING, len(others)), replace=False).tolist()))

    def _empty(self, chosen: set[int], taking: Sequence[int]) -> None:
        """The pods of the chosen bins into those that take them, if that is cheaper."""
        old = [self.bins[n] for n in sorted(chosen)]
        stock = _stock_of(old, len(self.problem.stock))
        shelf = Shelf(self.filler, [self.bins[n] for n in taking])
        most, added, left = _cost(old) + 1e-12, 0.0, np.zeros_like(stock)
        for item in sorted(np.flatnonzero(stock).tolist(), key=lambda n: -float(self.filler.amounts[n].sum())):
            for _ in range(int(stock[item])):
                more = shelf.insert(item)
                added += self.value[item] if more is None else more
                left[item] += more is None
                if added > most:
                    return
        new = self.filler.fill_for(left, self.value, most - (added - float(self.value @ left)))
        if new is not None:
            gone = chosen | set(taking)
            self.bins = [b for n, b in enumerate(self.bins) if n not in gone] + shelf.bins + new

    @property
    def cost(self) -> float:
        return _cost(self.bins)
