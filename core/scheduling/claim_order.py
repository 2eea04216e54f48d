"""In what order are the claims of this pass tried?

Asked at every try on open claims (S-97): the emptiest first, and among equals in the order in which upstream's unstable
sort leaves them. Sorting thousands of claims before every try would cost most of the pass, so claims are kept in one
list per number of pods. One claim moves at a time, and the sort then puts it at the front of the next level; a new one
goes to the end of its level. The trap: between 13 and 49 claims, and wherever the moved one stands next to a pivot, the
sort does more than that; there it is run in full, up to a bound above which ties are ours to break.
"""

from collections.abc import Iterator
from typing import Final

from core.scheduling.go_sort import unstable_sorted

_STABLE_UP_TO: Final = 12  # insertion sort, which is stable
_NINTHER_FROM: Final = 50  # from here on a nearly sorted array is repaired instead of partitioned
# Above this the order of equals is the repaired one; a full sort at every pivot hit would not stay near-linear.
EXACT_UP_TO: Final = 512


class ClaimOrder:
    """Claims by number, each in the level of its number of pods."""

    def __init__(self) -> None:
        self._levels: dict[int, list[int]] = {}
        self._masks: dict[int, int] = {}
        self._heights: list[int] = []  # the levels in use, ascending
        self._rank: list[int] = []  # position within the level; negative after a front insertion
        self.pods: list[int] = []  # pods per claim
        self._lowest: dict[int, int] = {}
        self._highest: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.pods)

    def _level(self, height: int) -> list[int]:
        level = self._levels.get(height)
        if level is None:
            level = self._levels[height] = []
            self._masks[height] = 0
            self._heights.append(height)
            self._heights.sort()
        return level

    def append(self, claim: int) -> None:
        """A new claim with its first pod."""
        self.pods.append(1)
        level = self._level(1)
        self._masks[1] |= 1 << claim
        if _STABLE_UP_TO < len(self.pods) < _NINTHER_FROM and self._heights[-1] > 1:
            self._rank.append(0)
            self._sort([*self._flat(), claim])
            return
        rank = self._highest.get(1, -1) + 1
        self._highest[1] = rank
        self._lowest.setdefault(1, rank)
        self._rank.append(rank)
        level.append(claim)

    def raise_claim(self, claim: int) -> None:
        """One more pod on a claim."""
        height = self.pods[claim]
        level = self._levels[height]
        sort = len(self.pods) <= EXACT_UP_TO and level[-1] != claim and self._must_sort(claim, height)
        flat = self._flat() if sort else []
        self.pods[claim] = height + 1
        level.remove(claim)
        bit = 1 << claim
        self._masks[height] ^= bit
        if not level:
            self._forget(height)
        upper = self._level(height + 1)
        self._masks[height + 1] |= bit
        if sort:
            self._sort(flat)
            return
        rank = self._lowest.get(height + 1, 1) - 1
        self._lowest[height + 1] = rank
        self._highest.setdefault(height + 1, rank)
        self._rank[claim] = rank
        upper.insert(0, claim)

    def _forget(self, height: int) -> None:
        del self._levels[height], self._masks[height]
        self._lowest.pop(height, None)
        self._highest.pop(height, None)
        self._heights.remove(height)

    def _must_sort(self, claim: int, height: int) -> bool:
        count = len(self.pods)
        if count <= _STABLE_UP_TO:
            return False
        if count < _NINTHER_FROM:
            return True
        position = sum(len(self._levels[h]) for h in self._heights if h < height) + self._levels[height].index(claim)
        quarter = count // 4
        return any(position in (pivot - 1, pivot) for pivot in (quarter, 2 * quarter, 3 * quarter))

    def _flat(self) -> list[int]:
        return [claim for height in self._heights for claim in self._levels[height]]

    def _sort(self, flat: list[int]) -> None:
        """The full sort. Who is on which level is known already; the order within the levels is made anew."""
        in_order = unstable_sorted(flat, self.pods.__getitem__)
        for rank, claim in enumerate(in_order):
            self._rank[claim] = rank
        start = 0
        for height in self._heights:
            end = start + self._masks[height].bit_count()
            self._levels[height] = in_order[start:end]
            self._lowest[height], self._highest[height] = start, end - 1
            start = end

    def first(self, candidates: int) -> int:
        """The first of the candidates (at least one) in order."""
        masks = self._masks
        for height in self._heights:
            here = candidates & masks[height]
            if not here:
                continue
            if not here & (here - 1):
                return here.bit_length() - 1
            level = self._levels[height]
            if here.bit_count() * 8 < len(level):
                return min(_numbers(here), key=self._rank.__getitem__)
            for claim in level:
                if here >> claim & 1:
                    return claim
        raise ValueError("no such claim")

    def among(self, candidates: int) -> Iterator[int]:
        """The candidates in order. The order must not be changed while this runs."""
        for height in list(self._heights):
            here = candidates & self._masks[height]
            if not here:
                continue
            level = self._levels[height]
            if here.bit_count() * 8 < len(level):  # few of many: pick them out and order them
                yield from sorted(_numbers(here), key=self._rank.__getitem__)
            else:
                for claim in level:
                    if here >> claim & 1:
                        yield claim
            candidates ^= here
            if not candidates:
                return

    def in_order(self) -> list[int]:
        """All claims in order."""
        return self._flat()


def _numbers(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
