"""Fills one new node after the other, each time the best of many that are filled side by side.

Every node begins with a seed, the pod that is hardest to place. A number of candidates of different types are filled
with it at once; the one that is paid for best by the value of its pods is kept.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dovetail.placement.cost.problem import Flags, Floats, Integers, Problem
from dovetail.placement.cost.searching.cheapest import SLACK, Bits, Cheapest, as_bits

_NOISE = 0.35  # by how much the fit of a pod is changed at random, so that candidates differ
_NEXT = 8  # different pods at once, at most
_BESIDE = 0.2  # of the tries are for choices that poured pods may not need
_AT_ONCE = 0.5  # of the room that is left may be filled without looking at all pods again
_FEW = 3  # candidates when time is up


@dataclass(slots=True, eq=False)
class Bin:
    """A node to be: how many of which items, and the cheapest choice that holds them."""

    items: Integers
    counts: Integers
    used: Floats
    choice: int
    price: float

    def contents(self) -> dict[int, int]:
        """How many of each item."""
        return dict(zip(self.items.tolist(), self.counts.tolist(), strict=True))


class Filler:
    """Makes bins out of a stock of items."""

    def __init__(self, problem: Problem, chance: np.random.Generator, candidates: int) -> None:
        self.problem = problem
        self.chance = chance
        self.candidates = candidates
        scale = np.maximum(problem.sizes.max(axis=0, initial=0.0), SLACK)
        self.amounts = np.ascontiguousarray(problem.sizes / scale)
        self.rooms = np.ascontiguousarray(problem.room / scale)
        self.cheapest = Cheapest(self.rooms)
        self.suits = as_bits(problem.suits)  # by need
        some, first = self.cheapest.first(self.suits[problem.need], self.amounts)
        self.alone: Floats = np.where(
            some, problem.price[np.where(some, first, 0)], np.inf
        )  # what a node for one costs
        groups = 0 if problem.hosts is None else problem.hosts.groups
        self.counted: Flags = np.zeros((len(problem.sizes), groups), dtype=bool)
        self.binding: Flags = np.zeros((len(problem.sizes), groups), dtype=bool)
        if problem.hosts is not None:
            for item, (counted, bound) in enumerate(zip(problem.hosts.counted, problem.hosts.bound, strict=True)):
                self.counted[item, list(counted)] = True
                self.binding[item, list(bound)] = True
            own = self.counted.astype(np.int64)
            allowed = np.where(own == 1, problem.hosts.full_at[:, 1], problem.hosts.full_at[:, 0] - 1)
            self._allowed = np.where(self.binding, allowed, np.iinfo(np.int64).max)
        self._suiting: dict[frozenset[int], Bits] = {}

    def suiting(self, needs: frozenset[int]) -> Bits:
        """The choices that suit all of these needs, room apart."""
        if needs not in self._suiting:
            self._suiting[needs] = np.bitwise_and.reduce(self.suits[sorted(needs)])
        return self._suiting[needs]

    def suiting_all(self, items: Integers) -> Bits:
        """The choices that suit all of these items, room apart."""
        return self.suiting(frozenset(self.problem.need[items].tolist()))

    def most_together(self) -> Integers:
        """How many pods of each item may share a node."""
        if self.problem.hosts is None:
            return self.problem.stock
        most = np.where(self.counted, self._allowed, np.iinfo(np.int64).max).min(axis=1, initial=np.iinfo(np.int64).max)
        together: Integers = np.clip(most, 1, self.problem.stock)
        return together

    def live_together(self, items: Integers, counts: Integers) -> bool:
        """Whether no pod of one node minds the others: of no group that binds one of them there are too many."""
        if self.problem.hosts is None:
            return True
        return bool((counts @ self.counted[items] <= self._allowed[items].min(axis=0)).all())

    def fill(self, stock: Integers, value: Floats, bar: float, is_late: Callable[[], bool]) -> list[Bin]:
        """Bins for all of the stock; `bar`: what a unit of value may cost, on the average. When it is late, few
        candidates are looked at."""
        return list(self._filled(stock.copy(), value, bar, is_late))

    def fill_for(self, stock: Integers, value: Floats, most: float) -> list[Bin] | None:
        """Bins for all of the stock that cost no more than `most`; None where it soon comes to more."""
        left, bins = stock.copy(), list[Bin]()
        for made in self._filled(left, value, 1.0, lambda: False):
            bins.append(made)
            most -= made.price
            if float(value @ left) > most:
                return None
        return bins

    def _filled(self, left: Integers, value: Floats, bar: float, is_late: Callable[[], bool]) -> Iterator[Bin]:
        present = np.flatnonzero(left)
        hardness = self.problem.conflicts[present] * 1e6 + value[present]
        order = present[np.argsort(-hardness * self.chance.uniform(0.9, 1.1, len(present)), kind="stable")]
        for seed in order:
            while left[seed]:
                if self.candidates > _FEW and is_late():
                    self.candidates = _FEW
                self._most = self._fair_share(left, value)
                yield from self._repeated(self._one(int(seed), left, value, bar), left)

    def _fair_share(self, left: Integers, value: Floats) -> float:
        """What a bin may cost while pods are left of which each needs a node of its own: pods that could fill those
        nodes are not to be spent on a few."""
        exclusive = self.problem.exclusive
        if exclusive is None:
            return np.inf
        alone = int((left @ exclusive).max())
        return 1.4 * float(left @ value) / alone if alone > 1 else np.inf

    @staticmethod
    def _repeated(made: Bin, left: Integers) -> Iterator[Bin]:
        """Take the bin off the stock, and as often again as the stock holds eight of it."""
        left[made.items] -= made.counts
        yield made
        while bool((left[made.items] >= 8 * made.counts).all()):
            left[made.items] -= made.counts
            yield Bin(made.items, made.counts, made.used, made.choice, made.price)

    def _choices_for(self, seed: int) -> Integers:
        """Types for the candidates: the cheapest for the room that they have, of different sizes."""
        problem = self.problem
        possible = np.flatnonzero(
            problem.suits[problem.need[seed]] & (self.rooms >= self.amounts[seed] - SLACK).all(axis=1)
        )
        price = problem.price[possible]
        possible = possible[price <= max(self._most, float(price.min(initial=np.inf)) * 1.001)]
        if len(possible) <= self.candidates:
            return possible
        odds = self._merit[possible]
        drawn = self.chance.choice(len(possible), self.candidates - 1, replace=False, p=odds / odds.sum())
        cheapest = int(np.argmin(problem.price[possible]))
        chosen: Integers = possible[np.append(drawn, cheapest)]
        return chosen

    def set_merit(self, value: Floats, nodes: Floats) -> None:
        """How often each choice is tried: by how many nodes there are of it where pods are poured, and some others by
        what their room is worth, for the pods that there are, per price."""
        problem = self.problem
        scale = (problem.sizes * problem.stock[:, None]).sum(axis=0)
        worth = (value * problem.stock).sum()
        share = np.where(scale > 0, worth / np.maximum(scale, SLACK), 0.0) / max(1, int((scale > 0).sum()))
        ratio = problem.price / np.maximum((np.maximum(problem.room, 0) * share).sum(axis=1), SLACK)
        best = np.sort(ratio)[: max(1, len(ratio) // 20)].mean()
        merit = (best / np.maximum(ratio, best)) ** 6
        merit /= np.sqrt(problem.price / problem.price.min())
        poured = np.sqrt(nodes)
        self._merit = _BESIDE * merit / merit.sum() + poured / max(float(poured.sum()), SLACK)

    def _one(self, seed: int, left: Integers, value: Floats, bar: float) -> Bin:
        problem = self.problem
        choices = self._choices_for(seed)
        if not len(choices):
            raise AssertionError("an item without a choice")
        items = np.flatnonzero(left)
        if problem.colour[seed] or problem.colour.any():
            colours = problem.colour[items]
            items = items[(colours == 0) | (colours == problem.colour[seed])]
        suits = problem.suits[problem.need[items]][:, choices].T  # (candidates, items)
        useful = suits.any(axis=0)
        items, suits = items[useful], np.ascontiguousarray(suits[:, useful])
        state = _Candidates(self, choices, items, suits, left[items])
        at = int(np.searchsorted(items, seed))
        state.put_seed(at)
        state.run()
        return state.best(value, bar)


class _Candidates:
    """Bins that are filled side by side from one stock, each as if it were the only one."""

    def __init__(self, filler: Filler, choices: Integers, items: Integers, suits: Flags, left: Integers) -> None:
        self._filler = filler
        self._problem = filler.problem
        self._choices = choices
        self._items = items
        self._sizes = filler.amounts[items]
        self._room = filler.rooms[choices].copy()
        self._whole = np.maximum(filler.rooms[choices], SLACK)
        self._left = left
        self._taken = np.zeros((len(choices), len(items)), dtype=np.int64)
        self._open = suits  # what may still join, hosts apart
        self._least = self._sizes.min(axis=0, initial=np.inf)
        self._alone: Flags = np.zeros(len(items), dtype=bool)  # those that others on their node matter to
        hosts = filler.problem.hosts
        self._hosts = hosts
        if hosts is not None:
            self._count = np.zeros((len(choices), hosts.groups), dtype=np.int64)
            self._binding = np.zeros((len(choices), hosts.groups), dtype=bool)
            self._checks = hosts.checks[items]
            self._alone = self._checks[:, 0] < hosts.groups * 3
        noise = filler.chance.uniform(1 - _NOISE, 1 + _NOISE, (len(choices), len(items)))
        noise[-1] = 1.0
        self._noise = noise
        self._steps = 0

    def put_seed(self, at: int) -> None:
        """Every candidate begins with it."""
        rows = np.arange(len(self._choices))
        self._add(rows, np.full(len(rows), at), np.ones(len(rows), dtype=np.int64))

    def _add(self, rows: Integers, columns: Integers, times: Integers) -> None:
        self._taken[rows, columns] += times
        self._room[rows] -= self._sizes[columns] * times[:, None]
        exhausted = self._taken[rows, columns] >= self._left[columns]
        self._open[rows[exhausted], columns[exhausted]] = False
        if self._hosts is None:
            return
        items = self._items[columns]
        self._count[rows] += self._filler.counted[items]
        self._binding[rows] |= self._filler.binding[items]

    def run(self) -> None:
        """Add pods until nothing fits any more."""
        live = np.arange(len(self._choices))
        while len(live):
            room = self._room[live]
            fits = self._open[live]
            for resource in range(self._sizes.shape[1]):
                fits &= self._sizes[None, :, resource] <= room[:, resource, None] + SLACK
            self._open[live] = fits  # what does not fit now never will
            if self._hosts is not None:
                refusing = self._hosts.refusing(self._count[live], self._binding[live])
                for check in range(self._checks.shape[1]):
                    fits &= ~refusing[:, self._checks[:, check]]
            weight = room / self._whole[live] ** 2
            score = weight[:, :1] * self._sizes[:, 0]  # not by a matrix product, whose threads would take other cores
            for resource in range(1, self._sizes.shape[1]):
                score += weight[:, resource, None] * self._sizes[:, resource]
            score *= self._noise[live]
            score[~fits] = -1.0
            columns = score.argmax(axis=1)
            some = score[np.arange(len(live)), columns] >= 0
            live, columns, room = live[some], columns[some], room[some]
            if not len(live):
                break
            times = self._times(live, columns, room)
            self._add(live, columns, times)
            score = score[some]
            score[np.arange(len(live)), columns] = -1.0
            self._add_next(live, score, _AT_ONCE * room - self._sizes[columns] * times[:, None])

    def _add_next(self, rows: Integers, score: Floats, spare: Floats) -> None:
        """One each of the next best pods, without looking at all of them again: as many as go into what is to spare,
        and none that others on its node matter to."""
        wide = (spare > self._least).all(axis=1)
        if not wide.any():
            return
        rows, score, spare = rows[wide], score[wide], spare[wide]
        score[:, self._alone] = -1.0
        many = min(_NEXT, score.shape[1])
        best = np.argpartition(score, -many, axis=1)[:, -many:]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(score, best, axis=1), axis=1), axis=1)
        sizes = self._sizes[best]  # (rows, pods, resources)
        joins = (sizes.cumsum(axis=1) <= spare[:, None, :]).all(axis=2) & (np.take_along_axis(score, best, axis=1) >= 0)
        at = rows[:, None]
        self._taken[at, best] += joins
        self._open[at, best] &= self._taken[at, best] < self._left[best]
        self._room[rows] -= (sizes * joins[:, :, None]).sum(axis=1)

    def _times(self, rows: Integers, columns: Integers, room: Floats) -> Integers:
        """How many of the same pods to add at once where many fit."""
        sizes = self._sizes[columns]
        ratio = np.where(sizes > 0, room / np.maximum(sizes, SLACK), np.inf).min(axis=1)
        many = np.maximum(1, np.floor(ratio * _AT_ONCE)).astype(np.int64)
        times: Integers = np.minimum(many, self._left[columns] - self._taken[rows, columns])
        if self._hosts is not None:
            times[self._alone[columns]] = 1
        return times

    def best(self, value: Floats, bar: float) -> Bin:
        """The candidate that is paid for best, at the price of the cheapest choice that holds it."""
        worth = self._taken @ value[self._items]
        price = self._problem.price[self._choices]
        order = np.argsort(price - bar * worth, kind="stable")[:6]
        found: list[tuple[float, Bin]] = []
        for row in order.tolist():
            made = self._bin(row)
            found.append((made.price - bar * float(worth[row]), made))
        return min(found, key=lambda pair: pair[0])[1]

    def _bin(self, row: int) -> Bin:
        columns = np.flatnonzero(self._taken[row])
        items, counts = self._items[columns], self._taken[row, columns]
        made = priced(self._filler, items, counts)
        if made is None:
            raise AssertionError("a candidate that no choice holds")
        return made


def as_arrays(contents: Mapping[int, int]) -> tuple[Integers, Integers]:
    """The items and their counts, as a bin has them."""
    items = np.array(sorted(contents), dtype=np.int64)
    return items, np.array([contents[each] for each in items.tolist()], dtype=np.int64)


def priced(filler: Filler, items: Integers, counts: Integers) -> Bin | None:
    """The bin with its cheapest choice; None: no choice holds it."""
    used = (filler.amounts[items] * counts[:, None]).sum(axis=0)
    some, choice = filler.cheapest.first(filler.suiting_all(items), used)
    if not some:
        return None
    return Bin(items, counts, used, int(choice), float(filler.problem.price[choice]))
