"""Which nodes there should be where few kinds of pods repeat.

Filling one node after the other leaves what nothing goes with for the last ones; with few, large kinds that is much.
So the mix of patterns is looked for that covers all pods at the least price, patterns in part allowed; what a pod is
worth in it says which patterns are missing, and these are made by filling nodes with what is worth most for its room.
The whole parts of the mix become nodes, and the few pods that are left are filled as ever. (Decision record 137.)
"""

from collections.abc import Callable, Sequence

import numpy as np

from dovetail.placement.cost.problem import Floats, Integers, Problem
from dovetail.placement.cost.searching.cheapest import SLACK
from dovetail.placement.cost.searching.covering import Cover
from dovetail.placement.cost.searching.filling import Bin, Filler, priced

_MOST_ITEMS = 120  # a program of so many rows is solved in a tenth of a second or two
_REPEATED = 4  # pods of each item, on the average: with fewer a pattern stands for hardly more than one node
_WEIGHTINGS = 24  # of the resources, by which a bound on what a choice can hold is made
_CHOICES = 40  # that new patterns are made for at a time
_TRIES = 12  # patterns of each of them
_ADDED = 12  # new patterns of a turn, at most
_EXCHANGES = 8  # of pods in each new pattern, at most
_LEAST_GAIN = 1e-9
_TURNS = 600
_IN_VAIN = 6  # turns that found nothing new
_NOISE = 0.25  # by how much the worth of a pod's room is changed at random, so that tries differ
_SPARED = 0.3  # how often a try takes one pod less than fits, of the three that come first
_ENOUGH = 0.3  # of a pattern is left over when it becomes one more node


def repeats(problem: Problem) -> bool:
    """Whether there are few kinds of pods, and many pods of each."""
    items = len(problem.stock)
    return items <= _MOST_ITEMS and int(problem.stock.sum()) >= _REPEATED * items


class Patterns:
    """The patterns of one problem, beginning with those of an answer that is there."""

    def __init__(self, filler: Filler, bins: Sequence[Bin]) -> None:
        problem = filler.problem
        self._filler = filler
        self._problem = problem
        self._sizes = np.maximum(filler.amounts, 0.0)
        self._most = self._most_of_each()
        self._cover = Cover(problem.stock, *self._alone())
        self._packer = _Packer(filler, self._most)
        for each in bins:
            pattern = np.zeros(len(problem.stock), dtype=np.int64)
            pattern[each.items] = each.counts
            self._cover.add(pattern, each.price)

    def _most_of_each(self) -> Integers:
        """Per choice and item how many pods fit, if there is no other."""
        sizes, room = self._sizes[None, :, :], self._filler.rooms[:, None, :]
        fit = np.where(sizes > 0, (room + SLACK) / np.maximum(sizes, SLACK), np.inf).min(axis=2)
        fit = np.minimum(np.maximum(fit, 0), self._filler.most_together())
        most: Integers = np.floor(fit).astype(np.int64) * self._problem.suits[self._problem.need].T
        return most

    def _alone(self) -> tuple[Floats, Floats]:
        """For each item, the cheapest pattern of that item alone, and its price."""
        each = np.where(self._most > 0, self._problem.price[:, None] / np.maximum(self._most, 1), np.inf)
        cheapest, items = each.argmin(axis=0), np.arange(len(self._problem.stock))
        return np.diag(self._most[cheapest, items].astype(np.float64)), self._problem.price[cheapest]

    @property
    def worth(self) -> Floats:
        return self._cover.worth

    def improve(self, should_stop: Callable[[], bool]) -> None:
        """Look for patterns that save something, until none is found."""
        in_vain = 0
        for _ in range(_TURNS):
            if in_vain == _IN_VAIN or should_stop():
                break
            worth = self._cover.worth
            choices, found = self._packer.pack(worth)
            best = np.argsort(-(found @ worth) / self._problem.price[choices])[:_ADDED]
            choices, found = choices[best], self._packer.exchanged(choices[best], found[best], worth)
            held = found @ worth / self._problem.price[choices]
            added = 0
            for at in np.argsort(-held).tolist():
                items = np.flatnonzero(found[at])
                if held[at] > 1 and self._may_be(items, found[at, items]):
                    added += self._cover.add(found[at], float(self._problem.price[choices[at]]))
            in_vain = 0 if added else in_vain + 1

    def _may_be(self, items: Integers, counts: Integers) -> bool:
        colours = self._problem.colour[items]
        return len(np.unique(colours[colours > 0])) <= 1 and self._filler.live_together(items, counts)

    def whole(self) -> tuple[list[Bin], Integers]:
        """The nodes of the mix: whole parts first, then those that are nearly whole; and how many pods are left."""
        left, bins = self._problem.stock.copy(), list[Bin]()
        patterns = np.rint(np.maximum(self._cover.patterns, 0.0)).astype(np.int64).T
        times, rest = np.divmod(self._cover.parts + SLACK, 1.0)
        for at in np.argsort(-rest).tolist():
            for _ in range(int(times[at])):
                self._take(np.minimum(patterns[at], left), left, bins)
        for at in np.argsort(-rest).tolist():
            if rest[at] > _ENOUGH and (patterns[at] <= left).all():
                self._take(patterns[at], left, bins)
        return bins, left

    def _take(self, pattern: Integers, left: Integers, bins: list[Bin]) -> None:
        items = np.flatnonzero(pattern)
        made = priced(self._filler, items, pattern[items]) if len(items) else None
        if made is not None:
            bins.append(made)
            left[items] -= pattern[items]


class _Packer:
    """Fills nodes with what is worth most, for many choices in many ways at once, each as if it were the only one."""

    def __init__(self, filler: Filler, most: Integers) -> None:
        self._filler = filler
        self._problem = filler.problem
        self._most = most
        resources = filler.rooms.shape[1]
        scale = np.maximum(np.median(filler.rooms, axis=0), SLACK)
        drawn = filler.chance.dirichlet(np.full(resources, 0.6), _WEIGHTINGS)
        self._weightings = np.concatenate([drawn, np.eye(resources)]) / scale
        self._weighted = np.maximum(filler.amounts @ self._weightings.T, SLACK)  # (items, weightings)
        self._rooms = filler.rooms @ self._weightings.T  # (choices, weightings)

    def pack(self, worth: Floats) -> tuple[Integers, Integers]:
        """Choices that might hold more than they cost, and for each what it can hold that is worth much."""
        best = self._at_most(worth) / self._problem.price
        choices = np.flatnonzero(best > 1 + 1e-7)
        choices = choices[np.argsort(-best[choices], kind="stable")[:_CHOICES]]
        items = np.flatnonzero(worth > 1e-12)
        found = np.zeros((len(choices), len(worth)), dtype=np.int64)
        if len(choices) and len(items):
            tried = self._tried(choices, items, worth[items])
            held = (tried @ worth[items]).argmax(axis=0)
            found[:, items] = tried[held, np.arange(len(choices))]
        return choices, found

    def exchanged(self, choices: Integers, found: Integers, worth: Floats) -> Integers:
        """The same, each with pods exchanged one by one for others, or for nobody, for as long as they are worth more
        and fit."""
        sizes, worth = np.vstack([self._filler.amounts, np.zeros(self._filler.amounts.shape[1])]), np.append(worth, 0.0)
        nobody = np.ones((len(found), 1), dtype=np.int64)
        found, most = np.hstack([found, nobody]), np.hstack([self._most[choices], 0 * nobody])
        for _ in range(_EXCHANGES):
            left = self._filler.rooms[choices] - found @ sizes + SLACK
            rows, leaving = np.nonzero(found)
            gain = np.where(found[rows] < most[rows], worth - worth[leaving, None], 0.0)
            for resource, size in enumerate(sizes.T):
                gain[size > (left[rows, resource] + size[leaving])[:, None]] = 0.0
            coming = gain.argmax(axis=1)
            best = gain[np.arange(len(rows)), coming]
            order = np.lexsort((-best, rows))
            first = order[np.unique(rows[order], return_index=True)[1]]
            first = first[best[first] > _LEAST_GAIN]
            if not len(first):
                break
            found[rows[first], leaving[first]] -= leaving[first] < len(worth) - 1
            found[rows[first], coming[first]] += 1
        return found[:, :-1]

    def _at_most(self, worth: Floats) -> Floats:
        """What the pods on a choice can be worth: for no weighting of resources more than its room is."""
        problem = self._problem
        per_unit = worth[:, None] / self._weighted
        highest = np.zeros(self._rooms.shape)
        for need, suits in enumerate(problem.suits):
            of_need = per_unit[problem.need == need].max(axis=0, initial=0.0)
            highest = np.where(suits[:, None], np.maximum(highest, of_need), highest)
        found: Floats = (highest * self._rooms).min(axis=1)
        return found

    def _tried(self, choices: Integers, items: Integers, worth: Floats) -> Integers:
        """(tries, choices, items): in each try the pods that are worth most for their room come first."""
        chance, sizes = self._filler.chance, self._filler.amounts[items]
        drawn = self._weightings[chance.integers(0, len(self._weightings), _TRIES)]
        value = worth / np.maximum(drawn @ sizes.T, SLACK) * chance.uniform(1 - _NOISE, 1.0, (_TRIES, len(items)))
        order = np.argsort(-value, axis=1)
        left = np.repeat(self._filler.rooms[choices][None], _TRIES, axis=0) + SLACK
        most, tries = self._most[np.ix_(choices, items)].T, np.arange(_TRIES)
        found = np.zeros((_TRIES, len(choices), len(items)), dtype=np.int64)
        for place in range(len(items)):
            item = order[:, place]
            size = sizes[item][:, None, :]
            fit = np.floor((left / np.maximum(size, SLACK * SLACK)).min(axis=2))
            count = np.minimum(np.maximum(fit, 0), most[item]).astype(np.int64)
            if place < 3:
                count -= (count > 0) & (chance.random(count.shape) < _SPARED)
            found[tries, :, item] = count
            left -= size * count[:, :, None]
        return found
