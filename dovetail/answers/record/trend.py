"""The price per hour and the number of all nodes over the last day: as a worker has seen it, and before its start as
the record has it. Kept in memory, and never more than a day.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from dovetail.answers.record.bill import Bill, CostSpan, bill_of
from dovetail.answers.record.entries import Entries
from dovetail.answers.record.lives import distinct
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.durations import DAY

STEP_SECONDS: Final = 300.0
MOST_POINTS: Final = int(DAY / STEP_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """All nodes that are Dovetail's, at one moment. `price`: dollars an hour."""

    at: float
    price: float
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendAnswer:
    """The points in order. `seen_since`: when the worker itself began to look, None if it has not yet; `partial`: the
    time before is not known, or only in part."""

    points: tuple[TrendPoint, ...] = ()
    seen_since: float | None = None
    partial: bool = True


@dataclass(slots=True)
class Trend:
    """The costs that one worker has seen. A loop adds to it; questions read it."""

    _seen: deque[TrendPoint] = field(default_factory=lambda: deque(maxlen=MOST_POINTS))
    _before: tuple[TrendPoint, ...] = ()
    is_filled: bool = False  # with what was before the worker's start
    partial: bool = True

    def look(self, fleet: Snapshot) -> None:
        """Add a point for this moment."""
        bill = bill_of((), fleet, fleet.now, fleet.now)
        standing = [span for span in bill.all_spans() if span.ends >= fleet.now]
        price = sum(span.rate for span in standing)
        self._seen.append(TrendPoint(at=fleet.now, price=price, nodes=len(standing) + bill.unpriced))

    def fill(self, found: Entries, fleet: Snapshot) -> None:
        """The day before the first look, from the record."""
        first = self._seen[0].at if self._seen else fleet.now
        bill = bill_of(distinct((*found.entries, *found.ends)), fleet, fleet.now - DAY, fleet.now)
        self._before, self.is_filled = tuple(_points(bill, first)), True
        self.partial = found.cut or found.missing_hours > 0

    def answer(self, now: float) -> TrendAnswer:
        """The points of the last day."""
        points = tuple(point for point in chain(self._before, self._seen) if point.at > now - DAY)
        seen = self._seen[0].at if self._seen else None
        is_whole = bool(points) and seen is not None and seen <= now - DAY + STEP_SECONDS
        return TrendAnswer(points=points, seen_since=seen, partial=self.partial and not is_whole)


def _points(bill: Bill, first: float) -> Iterable[TrendPoint]:
    """The points before the first look, one for each step. A node of unknown price is left out, because it is not known
    when it existed."""
    changes = sorted(_changes(bill.all_spans()))
    moments = [first - STEP_SECONDS * count for count in range(MOST_POINTS, 0, -1)]
    price, nodes, passed = 0.0, 0, 0
    for moment in moments:
        while passed < len(changes) and changes[passed][0] <= moment:
            price, nodes, passed = price + changes[passed][1], nodes + changes[passed][2], passed + 1
        yield TrendPoint(at=moment, price=max(0.0, price), nodes=nodes)


def _changes(spans: Iterable[CostSpan]) -> Iterable[tuple[float, float, int]]:
    for span in spans:
        yield span.begins, span.rate, 1
        yield span.ends, -span.rate, -1
