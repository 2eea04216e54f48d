"""Windows by the wall clock of a zone: whether a moment lies in one, and when that next changes.

A window is a predicate on one moment, so daylight saving needs no rule: an hour that does not exist has no effect, and
one that comes twice applies twice. Zones are passed in, because reading one takes files.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Final

DAY: Final = 86_400
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST_DAYS: Final = 400  # no change further ahead is looked for: a window of one date comes again in a year
_A_WEEK: Final = (
    15  # days in which windows without dates come again, even if one lies in an hour that a change of clocks skips
)

_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
_THURSDAY: Final = 3  # the weekday of that day, where Monday is 0
_STEP: Final = DAY // 4  # no zone changes its offset twice within six hours


@dataclass(frozen=True, slots=True)
class Dates:
    """Days from the first to the last, both included: (year, month, day), or (month, day) of every year."""

    first: tuple[int, ...]
    last: tuple[int, ...]

    def has(self, day: date) -> bool:
        """Whether the day is one of them; a yearly span may include New Year."""
        here = (day.year, day.month, day.day)[-len(self.first) :]
        if self.first <= self.last:
            return self.first <= here <= self.last
        return here >= self.first or here <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Times of day, on some days, for some reasons; an empty field restricts nothing.

    If `end` is not after `start`, it is on the next day, and the day is the one on which the window begins."""

    start: int = 0  # seconds of the day
    end: int = 0
    days: frozenset[int] = frozenset()  # Monday is 0
    dates: tuple[Dates, ...] = ()
    reasons: frozenset[str] = frozenset()

    def names(self, reason: str) -> bool:
        """Whether it applies to that reason."""
        return not self.reasons or reason in self.reasons

    def covers(self, wall: int) -> bool:
        """Whether that wall clock time lies in it; `wall` as `wall_clock` gives it."""
        day, second = divmod(wall, DAY)
        if self.start < self.end:
            return self.start <= second < self.end and self._is_on(day)
        return (second >= self.start and self._is_on(day)) or (second < self.end and self._is_on(day - 1))

    def _is_on(self, day: int) -> bool:
        if self.days and (day + _THURSDAY) % 7 not in self.days:
            return False
        return not self.dates or any(dates.has(date.fromordinal(_FIRST_DAY + day)) for dates in self.dates)


def second_of(text: str) -> int:
    """The second of the day that 22:00 is."""
    hours, minutes = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60


def offset(moment: float, zone: tzinfo) -> int:
    """How far the zone's clocks are ahead of UTC, in seconds."""
    found = datetime.fromtimestamp(int(moment // 1), zone).utcoffset()
    assert found is not None  # a time that was made in a zone has an offset
    return int(found.total_seconds())


def wall_clock(moment: float, zone: tzinfo) -> int:
    """What the zone's clocks show, as seconds since they showed the beginning of 1970."""
    return int(moment // 1) + offset(moment, zone)


def edges(windows: Iterable[Window], zone: tzinfo, after: float) -> Iterator[int]:
    """The moments after that one, in order, at which a window may begin or end; most of them change nothing."""
    windows = tuple(windows)
    times = {second for window in windows for second in (window.start, window.end)} | {0}
    days = MOST_DAYS if any(window.dates for window in windows) else _A_WEEK
    begin = int(after // 1)
    before = offset(begin, zone)
    for step in range(begin, begin + days * DAY, _STEP):
        end, behind = step + _STEP, offset(step + _STEP, zone)
        found = {
            moment
            for ahead in (before, behind)
            for second in times
            if step < (moment := _next(second, step, ahead)) <= end
        }
        if behind != before:
            found.add(_change_of_offset(step, end, zone))
        yield from sorted(found)
        before = behind


def _next(second: int, after: int, ahead: int) -> int:
    """When clocks that are that far ahead of UTC next show that second of the day."""
    return after + ((second - after - ahead - 1) % DAY) + 1


def _change_of_offset(low: int, high: int, zone: tzinfo) -> int:
    """The first second with the offset of `high`; the offset changes once between the two."""
    there = offset(high, zone)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if offset(middle, zone) == there else (middle, high)
    return high


def next_change(holds: Callable[[float], bool], moments: Iterable[int], now: float) -> float | None:
    """The first of these moments at which the answer differs from now; None if it never does."""
    known = holds(now)
    return next((float(moment) for moment in moments if holds(moment) != known), None)
