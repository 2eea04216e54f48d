"""Which types hold these pods, next to the DaemonSets that will run on them?

The question of every try on a draft (PLC-116, PLC-119, PLC-120). Per resource the amounts of all rows are sorted once,
with a mask of the rows that have at least that much, so that an answer takes one bisection and one AND per resource. A
type on which one of its DaemonSets does not fit is left out, whatever the pods ask for.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import sub

from dovetail.model.pods import HostPort
from dovetail.model.values.resources import Resources
from dovetail.placement.facts.masks import bits
from dovetail.placement.facts.type_table import TypeTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What the DaemonSets of a group of types take: requests (`pods` among them) and host ports."""

    requests: Resources
    ports: tuple[HostPort, ...] = ()
    daemon_sets: tuple[str, ...] = ()  # their names, with their namespaces
    left_out: tuple[str, ...] = ()  # and those that have no room beside these, but would run there (PLQ-69)


class Fit:
    """The rows of one template by what they have room for, next to their DaemonSets (PLC-119)."""

    def __init__(self, table: TypeTable, overheads: Sequence[Overhead], overhead_of: Sequence[int]) -> None:
        """`overhead_of`: of each row."""
        self.overheads, self.overhead_of = tuple(overheads), tuple(overhead_of)
        self.overhead_rows = [0] * len(overheads)
        names = table.dimensions.names
        self._taken = [table.dimensions.of(overhead.requests) for overhead in overheads]
        self.room: list[list[int]] = []
        valid = table.usable
        for row, (number, group) in enumerate(table.rows):
            overhead = overhead_of[row]
            self.overhead_rows[overhead] |= 1 << row
            size = table.types[number].groups[group][0]
            have = list(map(sub, [size.get(name, 0) for name in names], self._taken[overhead]))
            if min(have, default=0) < 0:
                valid &= ~(1 << row)
            self.room.append(have)
        self.valid, self._usable = valid, table.usable
        self.crowded = valid & sum(
            rows for overhead, rows in zip(overheads, self.overhead_rows, strict=True) if overhead.left_out
        )
        self.whole = valid & ~self.crowded
        self._steps = [self._suffixes([have[d] for have in self.room]) for d in range(len(names))]

    @staticmethod
    def _suffixes(amounts: list[int]) -> tuple[list[int], list[int]]:
        """Distinct amounts ascending, and for each (and past the end) the rows that have at least that much."""
        order = sorted(range(len(amounts)), key=amounts.__getitem__)
        values: list[int] = []
        masks: list[int] = []
        mask = 0
        for row in reversed(order):
            mask |= 1 << row
            if values and values[-1] == amounts[row]:
                masks[-1] = mask
            else:
                values.append(amounts[row])
                masks.append(mask)
        values.reverse()
        masks.reverse()
        assert all(a < b for a, b in pairwise(values))
        masks.append(0)
        return values, masks

    def holding(self, wanted: Sequence[int], rows: int) -> int:
        rows &= self.valid
        for amount, (values, masks) in zip(wanted, self._steps, strict=True):
            if amount:
                rows &= masks[bisect_left(values, amount)]
        return rows

    def lacking(self, daemon_sets: frozenset[str]) -> int:
        """The rows that are too small for one of these."""
        pairs = zip(self.overheads, self.overhead_rows, strict=True)
        return sum(rows for overhead, rows in pairs if not daemon_sets.isdisjoint(overhead.left_out))

    def crowding(self, wanted: Sequence[int], rows: int) -> tuple[str, ...]:
        """The DaemonSets but for which one of the given rows would hold the wanted amounts."""
        found: set[str] = set()
        for overhead, taken, members in zip(self.overheads, self._taken, self.overhead_rows, strict=True):
            if any(
                all(have + own >= amount for have, own, amount in zip(self.room[row], taken, wanted, strict=True))
                for row in bits(rows & members & self._usable)
            ):
                found.update(overhead.daemon_sets)
        return tuple(sorted(found))
