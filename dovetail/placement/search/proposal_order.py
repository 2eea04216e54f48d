"""In what order are the drafts of this pass tried?

Those with the fewest pods first, and equals in the order in which Karpenter's unstable sort leaves them (PLC-97).
Sorting thousands of drafts before every try would take most of the pass, so drafts are kept in one list per number of
pods, a level. After a try only one draft has moved: the sort would put it at the front of the next level, and a new one
at the end of the lowest. With 13 to 49 drafts, and wherever the moved one is next to a pivot, the sort changes more
than that. Then it is run in full, up to a number of drafts above which the order of equals is our own.
"""

from collections.abc import Iterator
from typing import Final

from dovetail.placement.facts.masks import bits
from dovetail.placement.go_sort import unstable_sorted

_STABLE_UP_TO: Final = 12  # insertion sort, which is stable
_NINTHER_FROM: Final = 50  # from here on a nearly sorted array is repaired instead of partitioned
# Above this the order of equals is the repaired one; a full sort at every pivot hit would not stay near-linear.
EXACT_UP_TO: Final = 512


class _Level:
    """The drafts that hold one number of pods, in order."""

    __slots__ = ("drafts", "first", "last", "mask")

    def __init__(self) -> None:
        self.drafts: list[int] = []
        self.mask = 0
        self.first, self.last = 1, 0  # the ranks of both ends; the next one in front has one less than the first


class DraftOrder:
    """Drafts by number, each in the level of its number of pods."""

    def __init__(self) -> None:
        self._lowest = _Level()  # of one pod; kept even when empty, because new drafts start there
        self._levels: list[_Level] = [self._lowest]  # ascending; those above the lowest have drafts
        self._at: dict[int, _Level] = {1: self._lowest}  # the same by height
        self._rank: list[int] = []  # position within the level; negative after a front insertion
        self.pods: list[int] = []  # pods per draft

    def __len__(self) -> int:
        return len(self.pods)

    def append(self, draft: int) -> None:
        """A new draft with its first pod."""
        pods = self.pods
        pods.append(1)
        level = self._lowest
        level.mask |= 1 << draft
        if _STABLE_UP_TO < len(pods) < _NINTHER_FROM and len(self._levels) > 1:
            self._rank.append(0)
            self._sort([*self.in_order(), draft])
            return
        level.last += 1
        self._rank.append(level.last)
        level.drafts.append(draft)

    def raise_draft(self, draft: int) -> None:
        pods = self.pods
        height = pods[draft]
        level = self._at[height]
        drafts, count = level.drafts, len(pods)
        upper = self._at.get(height + 1)
        if upper is None:
            if len(drafts) == 1 and height > 1:  # it is alone on its level, which rises with it
                pods[draft] = height + 1
                self._at[height + 1] = self._at.pop(height)
                return
            upper = self._at[height + 1] = _Level()
            self._levels.insert(self._levels.index(level) + 1, upper)
        sort = _STABLE_UP_TO < count <= EXACT_UP_TO and drafts[-1] != draft and self._must_sort(draft, level)
        flat = self.in_order() if sort else []
        pods[draft] = height + 1
        drafts.remove(draft)
        bit = 1 << draft
        level.mask ^= bit
        upper.mask |= bit
        if not drafts and height > 1:
            del self._at[height]
            self._levels.remove(level)
        if sort:
            self._sort(flat)
            return
        upper.first -= 1
        self._rank[draft] = upper.first
        upper.drafts.insert(0, draft)

    def _must_sort(self, draft: int, level: _Level) -> bool:
        count = len(self.pods)
        if count < _NINTHER_FROM:
            return True
        position = level.drafts.index(draft)
        for lower in self._levels:
            if lower is level:
                break
            position += len(lower.drafts)
        quarter = count // 4
        return position in (quarter - 1, quarter, 2 * quarter - 1, 2 * quarter, 3 * quarter - 1, 3 * quarter)

    def _sort(self, flat: list[int]) -> None:
        """The full sort. The level of each draft is known already; the order within the levels is made anew."""
        in_order = unstable_sorted(flat, self.pods.__getitem__)
        ranks, start = self._rank, 0
        for rank, draft in enumerate(in_order):
            ranks[draft] = rank
        for level in self._levels:
            end = start + level.mask.bit_count()
            level.drafts = in_order[start:end]
            level.first, level.last = start, end - 1
            start = end

    def front(self) -> int:
        """The first of all drafts; there must be one."""
        lowest = self._lowest.drafts
        return lowest[0] if lowest else self._levels[1].drafts[0]

    def first(self, candidates: int) -> int:
        """The first of the candidates (at least one) in order."""
        for level in self._levels:
            here = candidates & level.mask
            if not here:
                continue
            if not here & (here - 1):
                return here.bit_length() - 1
            drafts = level.drafts
            if here >> drafts[0] & 1:  # nearly always
                return drafts[0]
            if here.bit_count() * 8 < len(drafts):
                return min(bits(here), key=self._rank.__getitem__)
            for draft in drafts:
                if here >> draft & 1:
                    return draft
        raise ValueError("no such draft")

    def among(self, candidates: int) -> Iterator[int]:
        """The candidates in order. The order must not be changed while this runs."""
        for level in list(self._levels):
            here = candidates & level.mask
            if not here:
                continue
            if here.bit_count() * 8 < len(level.drafts):  # few of many: they are picked out and ordered
                yield from sorted(bits(here), key=self._rank.__getitem__)
            else:
                for draft in level.drafts:
                    if here >> draft & 1:
                        yield draft
            candidates ^= here
            if not candidates:
                return

    def in_order(self) -> list[int]:
        return [draft for level in self._levels for draft in level.drafts]
