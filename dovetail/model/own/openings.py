"""Windows by the wall clock of a zone: whether a moment lies in one, and when that next changes.

A window is a predicate on one moment, so daylight saving needs no rule: an hour that does not exist has no effect, and
one that comes twice applies twice. Zones are passed in, because reading one takes files.

What many windows close is put together as the bits of minutes, a day at a time: a policy may have a hundred windows of
fifty dates each, and asking all of them at each moment of a year took minutes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from functools import lru_cache
from typing import Annotated, Final, NamedTuple

from dovetail.model.own.forms import Form, Key
from dovetail.model.values.durations import DAY
from dovetail.model.values.quoting import shown

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST_DAYS: Final = 400  # no change further ahead is looked for: a window of one date comes again in a year
# Days in which windows without dates come again, even if one lies in an hour that a change of clocks skips. Not so
# those of two zones: they may be open together in winter alone.
_COMES_AGAIN: Final = 15

_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
_THURSDAY: Final = 3  # the weekday of that day, where Monday is 0
_STEP: Final = DAY // 4  # no zone changes its offset twice within six hours
_MINUTES: Final = DAY // 60
_BEFORE: Final = 2  # days before today: the window of yesterday may end today, and in some zones today is yesterday
_SPAN: Final = _BEFORE + MOST_DAYS + 3  # days that are looked at: each is a bit
_EACH_WEEK: Final = sum(1 << number for number in range(0, _SPAN, 7))


class Dates(NamedTuple):
    """Days from the first to the last, both included: (year, month, day), or (month, day) of every year."""

    first: tuple[int, ...]
    last: tuple[int, ...]

    def has(self, day: date) -> bool:
        """Whether the day is one of them; a yearly span may include New Year."""
        here = (day.year, day.month, day.day)[-len(self.first) :]
        if self.first <= self.last:
            return self.first <= here <= self.last
        return here >= self.first or here <= self.last

    def spans(self, years: Iterable[int]) -> Iterator[tuple[int, int]]:
        """The same as ordinals of days, the last not included; of every year, those that begin in these."""
        if len(self.first) == 3:
            yield date(*self.first).toordinal(), date(*self.last).toordinal() + 1
            return
        for year in years:
            yield _ordinal(year, self.first), _ordinal(year + (self.last < self.first), self.last, after=1)


def _ordinal(year: int, of_year: tuple[int, ...], after: int = 0) -> int:
    """The ordinal of that day, or so many days after it; at most that of the next month's first, as the 29th of
    February is not in every year."""
    month, day = of_year
    begin = date(year, month, 1)
    following = date(year + month // 12, month % 12 + 1, 1)
    return min(begin.toordinal() + day - 1 + after, following.toordinal())


def dates_of(text: str) -> Dates:
    """Days as a policy names them: 2026-12-24/2027-01-02, or 05-01 of every year."""
    first, _, last = text.partition("/")
    found = Dates(_day(first), _day(last or first))
    if len(found.first) == 3 and found.last < found.first:
        raise ValueError(f"{shown(text)} ends before it begins")
    return found


def _day(text: str) -> tuple[int, ...]:
    parts = tuple(map(int, text.split("-")))
    try:
        date(*(2000, *parts)[-3:])  # of every year: 2000 has a 29th of February
    except ValueError:
        raise ValueError(f"{shown(text)} is no day of the calendar") from None
    return parts


def second_of(text: str) -> int:
    """The second of the day that 22:00 is."""
    hours, minutes = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Times of day, on some days, for some reasons; an empty field restricts nothing.

    If `end` is not after `start`, it is on the next day, and the day is the one on which the window begins."""

    start: Annotated[int, Key("from"), Form(second_of)] = 0  # seconds of the day
    end: Annotated[int, Key("to"), Form(second_of)] = 0
    days: frozenset[Annotated[int, Form(DAYS.index)]] = frozenset()  # Monday is 0
    dates: tuple[Annotated[Dates, Form(dates_of)], ...] = ()
    reasons: frozenset[str] = frozenset()

    def names(self, reason: str) -> bool:
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
        if not self.dates:
            return True
        here = date.fromordinal(_FIRST_DAY + day)
        return any(dates.has(here) for dates in self.dates)


def offset(moment: float, zone: tzinfo) -> int:
    """How far the zone's clocks are ahead of UTC, in seconds."""
    found = datetime.fromtimestamp(int(moment // 1), zone).utcoffset()
    assert found is not None  # a time that was made in a zone has an offset
    return int(found.total_seconds())


def wall_clock(moment: float, zone: tzinfo) -> int:
    """What the zone's clocks show, as seconds since they showed the beginning of 1970."""
    return int(moment // 1) + offset(moment, zone)


def _change_of_offset(low: int, high: int, zone: tzinfo) -> int:
    """The first second with the offset of `high`; the offset changes once between the two."""
    there = offset(high, zone)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if offset(middle, zone) == there else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class Timetable:
    """Windows of one zone that hold for one reason: closed in each of `deny`, and outside all of `allow` if there are
    any."""

    zone: tzinfo
    allow: tuple[Window, ...]
    deny: tuple[Window, ...]


class _Coming(NamedTuple):
    """A window in the days to come. `days`: those on which it begins, as bits; then its minutes on such a day, and on
    the next."""

    days: int
    today: int
    tomorrow: int

    @classmethod
    def of(cls, window: Window, first: int) -> "_Coming":
        """`first`: the day of the first bit, counted from the beginning of 1970."""
        days = (1 << _SPAN) - 1
        if window.days:
            days &= _either(_EACH_WEEK << (day - first - _THURSDAY) % 7 for day in window.days)
        if window.dates:
            year = date.fromordinal(_FIRST_DAY + first).year
            spans = (span for dates in window.dates for span in dates.spans(range(year - 1, year + 3)))
            days &= _either(_bits(since - first - _FIRST_DAY, until - first - _FIRST_DAY) for since, until in spans)
        start, end = window.start // 60, window.end // 60
        if start < end:
            return cls(days, _bits(start, end), 0)
        return cls(days, _bits(start, _MINUTES), _bits(0, end))

    def minutes(self, number: int) -> int:
        """Its minutes on the day of that bit."""
        found = self.today if self.days >> number & 1 else 0
        return found | self.tomorrow if self.days >> (number - 1) & 1 else found


def _bits(since: int, until: int) -> int:
    """The bits from one number up to, not including, another, as far as there are such."""
    since, until = max(since, 0), min(until, max(_SPAN, _MINUTES))
    return (1 << until) - (1 << since) if since < until else 0


def _either(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


class _Ahead:
    """What a timetable closes in the days to come. A date that does not come again costs nothing more."""

    def __init__(self, table: Timetable, first: int) -> None:
        """`first`: a day, counted from the beginning of 1970."""
        self._zone, self._first = table.zone, first
        self._allow = [_Coming.of(window, first) for window in table.allow]
        self._deny = [_Coming.of(window, first) for window in table.deny]
        self._otherwise = _bits(0, _MINUTES) if table.allow else 0  # what is closed where no window says anything
        self._known: dict[int, int] = {}
        every = zip((*table.allow, *table.deny), (*self._allow, *self._deny), strict=True)
        dated = _either(coming.days for window, coming in every if window.dates)
        self._allow = [coming for coming in self._allow if coming.days]
        self._deny = [coming for coming in self._deny if coming.days]
        self.days = min(dated.bit_length() - _BEFORE + _COMES_AGAIN, MOST_DAYS) if dated else _COMES_AGAIN

    def closed(self, step: int) -> int:
        """What it closes of the step from that moment on, as the bits of its minutes."""
        end = step + _STEP
        before, behind = offset(step, self._zone), offset(end, self._zone)
        if before == behind:
            return self._shown(step, end, before)
        change = _change_of_offset(step, end, self._zone)
        return self._shown(step, change, before) | self._shown(change, end, behind) << (change - step) // 60

    def _shown(self, since: int, until: int, ahead: int) -> int:
        day, minute = divmod((since + ahead) // 60, _MINUTES)
        days = self._closed_on(day) | self._closed_on(day + 1) << _MINUTES
        return days >> minute & (1 << (until - since) // 60) - 1

    def _closed_on(self, day: int) -> int:
        """What it closes of a day by the wall clock."""
        known = self._known.get(day)
        if known is None:
            number = day - self._first
            opened = _either(coming.minutes(number) for coming in self._allow)
            known = self._otherwise & ~opened | _either(coming.minutes(number) for coming in self._deny)
            self._known[day] = known
        return known


@lru_cache(maxsize=64)
def _ahead(table: Timetable, first: int) -> _Ahead:
    return _Ahead(table, first)


def next_change(tables: Sequence[Timetable], now: float) -> float | None:
    """When they next open, if one of them is closed, or else close; None if that does not happen within 400 days."""
    begin = int(now // _STEP) * _STEP
    ahead = [_ahead(table, begin // DAY - _BEFORE) for table in tables]
    here = int(now // 60) - begin // 60
    whole = (1 << _STEP // 60) - 1
    days = MOST_DAYS if len({table.zone for table in tables}) > 1 else max((each.days for each in ahead), default=0)
    known = _either(each.closed(begin) for each in ahead) >> here & 1
    for step in range(begin, begin + days * DAY + 1, _STEP):
        differs = _either(each.closed(step) for each in ahead) ^ (whole if known else 0)
        if step == begin:
            differs = differs >> here << here
        if differs:
            return float(step + 60 * ((differs & -differs).bit_length() - 1))
    return None
