"""In what order does upstream's unstable sort leave equal elements?

Go's sort.Slice is stable up to twelve elements only; above, a pattern-defeating quicksort decides ties, and the
recorded results depend on it (PLQ-11). The code follows the published algorithm step by step: insertion sort for short
ranges, a ninther as pivot, at most five repairs of a nearly sorted range, else a partition; heap sort when partitions
stay bad, and a seeded shuffle against patterns.
"""

from collections.abc import Callable
from typing import Final, TypeVar

Item = TypeVar("Item")

_SHORT: Final = 12
_NINTHER_FROM: Final = 50
_REPAIRS: Final = 5
_MOST_SWAPS: Final = 12
_INCREASING, _DECREASING, _UNKNOWN = 0, 1, 2


def unstable_sorted(items: list[Item], key: Callable[[Item], float]) -> list[Item]:
    """The items in ascending order of key; equal ones are where Go's sort.Slice would leave them."""
    if len(items) <= _SHORT:
        return sorted(items, key=key)  # insertion sort is stable
    keys = list(map(key, items))
    if len(set(keys)) == len(keys):
        return sorted(items, key=key)  # no ties, one order
    sorter = _Sorter(keys)
    sorter.quick_sort(0, len(items), len(items).bit_length())
    return [items[index] for index in sorter.order]


class _Sorter:
    """Keys and the original index of each, moved together."""

    def __init__(self, keys: list[float]) -> None:
        self.keys = keys
        self.order = list(range(len(keys)))

    def swap(self, i: int, j: int) -> None:
        keys, order = self.keys, self.order
        keys[i], keys[j] = keys[j], keys[i]
        order[i], order[j] = order[j], order[i]

    def insertion_sort(self, start: int, end: int) -> None:
        keys, order = self.keys, self.order
        for i in range(start + 1, end):
            key = keys[i]
            if key < keys[i - 1]:
                moved, j = order[i], i
                while j > start and key < keys[j - 1]:
                    keys[j], order[j] = keys[j - 1], order[j - 1]
                    j -= 1
                keys[j], order[j] = key, moved

    def sift_down(self, low: int, high: int, first: int) -> None:
        root, keys = low, self.keys
        while (child := 2 * root + 1) < high:
            if child + 1 < high and keys[first + child] < keys[first + child + 1]:
                child += 1
            if not keys[first + root] < keys[first + child]:
                return
            self.swap(first + root, first + child)
            root = child

    def heap_sort(self, start: int, end: int) -> None:
        length = end - start
        for i in range((length - 1) // 2, -1, -1):
            self.sift_down(i, length, start)
        for i in range(length - 1, -1, -1):
            self.swap(start, start + i)
            self.sift_down(0, i, start)

    def quick_sort(self, start: int, end: int, limit: int) -> None:
        balanced = partitioned = True
        while end - start > _SHORT:
            length = end - start
            if limit == 0:
                self.heap_sort(start, end)
                return
            if not balanced:
                self.break_patterns(start, end)
                limit -= 1
            pivot, hint = self.choose_pivot(start, end)
            if hint == _DECREASING:
                self.keys[start:end] = self.keys[start:end][::-1]
                self.order[start:end] = self.order[start:end][::-1]
                pivot = (end - 1) - (pivot - start)
                hint = _INCREASING
            if balanced and partitioned and hint == _INCREASING and self.repair(start, end):
                return
            if start > 0 and not self.keys[start - 1] < self.keys[pivot]:
                start = self.partition_equal(start, end, pivot)
                continue
            middle, partitioned = self.partition(start, end, pivot)
            left, right = middle - start, end - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.quick_sort(start, middle, limit)
                start = middle + 1
            else:
                self.quick_sort(middle + 1, end, limit)
                end = middle
        self.insertion_sort(start, end)

    def partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """The pivot's final place, and whether nothing had to move. Written out on locals: most of a sort is here."""
        keys, order = self.keys, self.order
        key, moved = keys[pivot], order[pivot]
        keys[pivot], order[pivot] = keys[start], order[start]
        i, j = start + 1, end - 1
        in_place = True
        while True:
            while i <= j and keys[i] < key:
                i += 1
            while i <= j and keys[j] >= key:
                j -= 1
            if i > j:
                break
            in_place = False
            keys[i], keys[j] = keys[j], keys[i]
            order[i], order[j] = order[j], order[i]
            i, j = i + 1, j - 1
        keys[start], order[start] = keys[j], order[j]
        keys[j], order[j] = key, moved
        return j, in_place

    def partition_equal(self, start: int, end: int, pivot: int) -> int:
        """Where the elements that are larger than the pivot begin, when none is smaller."""
        self.swap(start, pivot)
        keys, order = self.keys, self.order
        key = keys[start]
        i, j = start + 1, end - 1
        while True:
            while i <= j and keys[i] <= key:
                i += 1
            while i <= j and key < keys[j]:
                j -= 1
            if i > j:
                return i
            keys[i], keys[j] = keys[j], keys[i]
            order[i], order[j] = order[j], order[i]
            i, j = i + 1, j - 1

    def repair(self, start: int, end: int) -> bool:
        """Move up to five misplaced elements; whether the range is sorted now."""
        keys = self.keys
        i = start + 1
        for _ in range(_REPAIRS):
            while i < end and not keys[i] < keys[i - 1]:
                i += 1
            if i == end:
                return True
            if end - start < _NINTHER_FROM:
                return False
            self.swap(i, i - 1)
            if i - start >= 2:
                j = i - 1
                while j >= 1 and keys[j] < keys[j - 1]:
                    self.swap(j, j - 1)
                    j -= 1
            if end - i >= 2:
                j = i + 1
                while j < end and keys[j] < keys[j - 1]:
                    self.swap(j, j - 1)
                    j += 1
        return False

    def break_patterns(self, start: int, end: int) -> None:
        """Swap three elements near the middle with ones picked by a generator seeded with the length."""
        length = end - start
        if length < 8:
            return
        state = length
        modulus = 1 << length.bit_length()
        middle = start + (length // 4) * 2 - 1
        for i in range(3):
            state ^= (state << 13) & 0xFFFFFFFFFFFFFFFF
            state ^= state >> 7
            state ^= (state << 17) & 0xFFFFFFFFFFFFFFFF
            other = state & (modulus - 1)
            if other >= length:
                other -= length
            self.swap(middle + i, start + other)

    def choose_pivot(self, start: int, end: int) -> tuple[int, int]:
        """The pivot's index and what the comparisons suggest about the range."""
        length = end - start
        swaps = [0]
        i, j, k = start + length // 4, start + length // 4 * 2, start + length // 4 * 3
        if length >= 8:
            if length >= _NINTHER_FROM:
                i, j, k = (self.median(x - 1, x, x + 1, swaps) for x in (i, j, k))
            j = self.median(i, j, k, swaps)
        if swaps[0] == 0:
            return j, _INCREASING
        return j, _DECREASING if swaps[0] == _MOST_SWAPS else _UNKNOWN

    def median(self, a: int, b: int, c: int, swaps: list[int]) -> int:
        keys = self.keys
        if keys[b] < keys[a]:
            swaps[0] += 1
            a, b = b, a
        if keys[c] < keys[b]:
            swaps[0] += 1
            b, c = c, b
        if keys[b] < keys[a]:
            swaps[0] += 1
            a, b = b, a
        return b
