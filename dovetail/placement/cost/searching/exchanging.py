"""Bins give one another pods: one of the one for one of the other, or for nothing, where both then cost less together.

Filling and taking apart find which bins there should be. What is left is that each is a little larger than its pods,
and another pod of nearly the same size would make it fit a smaller choice. (Decision record 137.)
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dovetail.placement.cost.problem import Floats, Integers
from dovetail.placement.cost.searching.cheapest import SLACK, Bits, as_bits
from dovetail.placement.cost.searching.filling import Bin, Filler, as_arrays, priced

_GIVEN = 6  # pods of a bin that are offered at a time, at most
_TRIED = 6  # of the exchanges that would save something, the best ones that are looked at closely
_MOST = 8  # exchanges of one bin at a time
_LEAST_GAIN = 1e-9
_NOBODY = -1
_EMPTY = 0.02  # of its price a bin would count less if it were empty: of equal exchanges, those that empty one


class Exchange:
    """Some bins of one problem, and the pods on them."""

    def __init__(self, filler: Filler, bins: Sequence[Bin]) -> None:
        problem = filler.problem
        self._filler = filler
        self._problem = problem
        self._contents = [each.contents() for each in bins]
        self._bins: list[Bin | None] = list(bins)
        self._amounts = np.vstack([filler.amounts, np.zeros((1, filler.amounts.shape[1]))])  # the last: nobody
        self._suits = np.vstack([filler.suits, as_bits(np.ones((1, len(problem.price)), dtype=bool))])
        self._need = np.append(problem.need, len(problem.suits))
        asked = problem.sizes.any(axis=0)
        self._part = asked / np.maximum(filler.rooms, SLACK) / max(int(asked.sum()), 1)  # of a choice, by its resources
        self._price, self._score = np.zeros(len(bins)), np.zeros(len(bins))
        self._given: list[Integers] = [self._need[:0]] * len(bins)
        self._left_of: list[Floats] = [self._amounts[:0]] * len(bins)
        self._suiting_of: list[Bits] = [self._suits[:0]] * len(bins)
        for at in range(len(bins)):
            self._read(at)
        self._gather()

    @property
    def bins(self) -> list[Bin]:
        return [each for each in self._bins if each is not None]

    def improve(self) -> None:
        """Let each bin in turn exchange pods for as long as that saves something, and not so often that a step takes
        long."""
        for at in range(len(self._bins)):
            exchanges = 0
            while exchanges < _MOST and self._exchange(at):
                exchanges += 1

    def _read(self, at: int) -> None:
        """Who could be given of that bin: each item once, and nobody."""
        made, contents = self._bins[at], self._contents[at]
        if made is None:
            self._price[at] = self._score[at] = 0.0
            self._given[at] = np.zeros(0, dtype=np.int64)
        else:
            self._price[at], self._score[at] = made.price, self._scored(made.used, made.choice)
            self._given[at] = np.array([*contents, _NOBODY], dtype=np.int64)
        self._suiting_of[at] = self._suiting_without_each(self._given[at], contents)
        self._left_of[at] = (0.0 if made is None else made.used) - self._amounts[self._given[at]]

    def _gather(self) -> None:
        self._item: Integers = np.concatenate(self._given)
        self._owner: Integers = np.repeat(np.arange(len(self._given)), [len(each) for each in self._given])
        self._left: Floats = np.concatenate(self._left_of)  # without that pod
        self._suiting: Bits = np.concatenate(self._suiting_of)

    def _suiting_without_each(self, given: Integers, contents: dict[int, int]) -> Bits:
        """The choices that suit a bin when one pod of an item has left: fewer pods matter only where the last one of
        its need goes."""
        if not contents:
            return self._suits[given]
        pods = Counter[int]()
        for item, count in contents.items():
            pods[int(self._need[item])] += count
        whole = self._filler.suiting(frozenset(pods))
        found = np.repeat(whole[None], len(given), axis=0)
        for need in (need for need, count in pods.items() if count == 1):
            rest = frozenset(pods) - {need}
            found[self._need[given] == need] = self._filler.suiting(rest) if rest else self._suits[-1]
        return found

    def _exchange(self, at: int) -> bool:
        """Make the best exchange of this bin with another; whether there was one."""
        if self._bins[at] is None:
            return False
        own = np.flatnonzero((self._owner == at) & (self._item != _NOBODY))
        if len(own) > _GIVEN:
            own = np.sort(self._filler.chance.choice(own, _GIVEN, replace=False))
        others = np.flatnonzero(self._owner != at)
        if not len(others):
            return False
        ours = self._lowest(own[:, None], others[None, :])
        if len(self._contents[at]) == 1 and sum(self._contents[at].values()) == 1:
            ours[:, self._item[others] == _NOBODY] = 0.0
        theirs = self._lowest(others[None, :], own[:, None])
        saved = self._score[at] + self._score[self._owner[others]][None, :] - ours - theirs
        best = np.argsort(-saved, axis=None)[:_TRIED]
        for number in best.tolist():
            row, column = divmod(number, len(others))
            if saved[row, column] <= _LEAST_GAIN:
                break
            if self._carry_out(int(own[row]), int(others[column])):
                return True
        return False

    def _lowest(self, leaving: Integers, coming: Integers) -> Floats:
        """What the bins cost that each of the one leaves and each of the other joins."""
        wanted = self._left[leaving] + self._amounts[self._item[coming]]
        suiting = self._suiting[leaving] & self._suits[self._need[self._item[coming]]]
        some, first = self._filler.cheapest.first(suiting, wanted)
        first = np.where(some, first, 0)
        return np.where(some, self._scored(wanted, first), np.inf)

    def _scored(self, used: Floats, choice: Integers | int) -> Floats:
        """The price, and a little less for a bin that is emptier than others: until one needs a smaller choice nothing
        is saved, and it comes to that if what is left free is in one bin rather than in both."""
        spare = 1 - np.einsum("...r,...r->...", used, self._part[choice])
        scored: Floats = self._problem.price[choice] * (1 - _EMPTY * spare * spare)
        return scored

    def _carry_out(self, given: int, taken: int) -> bool:
        """Make the exchange if all rules of both nodes allow it; whether it was made."""
        one, other = int(self._owner[given]), int(self._owner[taken])
        leaving, coming = int(self._item[given]), int(self._item[taken])
        changed = self._changed(one, leaving, coming), self._changed(other, coming, leaving)
        made = [self._made(contents) for contents in changed]
        if any(contents and each is None for contents, each in zip(changed, made, strict=True)):
            return False
        there = [each for each in made if each is not None]
        before = self._score[one] + self._score[other]
        after = sum(float(self._scored(each.used, each.choice)) for each in there)
        dearer = sum(each.price for each in there) > self._price[one] + self._price[other] + _LEAST_GAIN
        if dearer or after >= before - _LEAST_GAIN:
            return False
        for at, contents, each in zip((one, other), changed, made, strict=True):
            self._contents[at], self._bins[at] = contents, each
            self._read(at)
        self._gather()
        return True

    def _changed(self, at: int, leaving: int, coming: int) -> dict[int, int]:
        contents = dict(self._contents[at])
        if leaving != _NOBODY:
            contents[leaving] -= 1
            if not contents[leaving]:
                del contents[leaving]
        if coming != _NOBODY:
            contents[coming] = contents.get(coming, 0) + 1
        return contents

    def _made(self, contents: dict[int, int]) -> Bin | None:
        if not contents:
            return None
        items, counts = as_arrays(contents)
        colours = self._problem.colour[items]
        if len(np.unique(colours[colours > 0])) > 1 or not self._filler.live_together(items, counts):
            return None
        return priced(self._filler, items, counts)
