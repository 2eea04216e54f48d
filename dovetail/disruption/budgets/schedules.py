"""The meaning of a budget's cron text, in the dialect that upstream reads (DIS-56).

Five fields (minute, hour, day of month, month, day of week) or a lower-case macro; if both days are restricted,
either is enough. A general cron library accepts day 7, wrapping ranges, `L` and `W`. For upstream these are errors, and
an error must close the budget (DIS-54).
"""

from dataclasses import dataclass
from typing import Final

from dovetail.model.values.digits import integer
from dovetail.model.values.durations import NANOSECONDS, DurationError, parse_nanoseconds
from dovetail.model.values.quoting import one_line, shown

_LONGEST: Final = 1024  # characters; upstream has no limit, and nobody writes such a schedule


class ScheduleError(ValueError):
    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


@dataclass(frozen=True, slots=True)
class Field:
    """The values that one field admits; none if it is nothing but commas. `any`: it restricts nothing (`*` or `?`
    without a step)."""

    values: frozenset[int]
    any: bool


EVERY: Final = Field(frozenset(), any=True)


@dataclass(frozen=True, slots=True)
class Calendar:
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def never(self) -> bool:
        """Whether some field admits nothing, so that there is no hit."""
        empty = [not field.any and not field.values for field in (self.day, self.weekday)]
        no_day = all(empty) or (any(empty) and (self.day.any or self.weekday.any))
        return no_day or any(not field.any and not field.values for field in (self.minute, self.hour, self.month))


@dataclass(frozen=True, slots=True)
class Every:
    """`@every 1h`: a hit that many seconds after whatever moment is asked about."""

    seconds: int


@dataclass(frozen=True, slots=True)
class _Bounds:
    low: int
    high: int
    names: tuple[str, ...] = ()
    first_name: int = 0


_MINUTE: Final = _Bounds(0, 59)
_HOUR: Final = _Bounds(0, 23)
_DAY: Final = _Bounds(1, 31)
_MONTH: Final = _Bounds(
    1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), first_name=1
)
_WEEKDAY: Final = _Bounds(0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def parse_schedule(text: str) -> Calendar | Every:
    if len(text) > _LONGEST:
        raise ScheduleError(f"longer than {_LONGEST} characters: {shown(text)}")
    text = text.strip()
    if text.startswith("@every "):
        return _parse_every(text.removeprefix("@every "))
    if text.startswith("@"):
        if text not in _MACROS:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        text = _MACROS[text]
    parts = text.split()
    if len(parts) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    bounds = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)
    return Calendar(*(_parse_field(part, bound) for part, bound in zip(parts, bounds, strict=True)))


def _parse_every(text: str) -> Every:
    try:
        nanoseconds = parse_nanoseconds(text)
    except DurationError as error:
        raise ScheduleError(f"failed to parse duration @every {text}: {error}") from None
    return Every(max(1, nanoseconds // NANOSECONDS))


def _parse_field(text: str, bounds: _Bounds) -> Field:
    ranges = [_parse_range(part, bounds) for part in text.split(",") if part]
    return Field(frozenset[int]().union(*(r.values for r in ranges)), any(r.any for r in ranges))


def _parse_range(text: str, bounds: _Bounds) -> Field:
    span, slash, step_text = text.partition("/")
    low_text, dash, high_text = span.partition("-")
    star = low_text in {"*", "?"}
    if star:
        low, high = bounds.low, bounds.high
    else:
        low = _number_or_name(low_text, bounds)
        high = _number_or_name(high_text, bounds) if dash else low
    if ("-" in high_text and not star) or "/" in step_text:  # upstream ignores what follows a star
        raise ScheduleError(f"too many hyphens or slashes: {text}")
    step = _number(step_text) if slash else 1
    if slash and not dash and not star:
        high = bounds.high  # `5/15` is `5-59/15`
    _judge(text, (low, high, step), bounds)
    return Field(frozenset(range(low, high + 1, step)), star and step == 1)


def _judge(text: str, span: tuple[int, int, int], bounds: _Bounds) -> None:
    low, high, step = span
    if low < bounds.low:
        raise ScheduleError(f"beginning of range ({low}) below minimum ({bounds.low}): {text}")
    if high > bounds.high:
        raise ScheduleError(f"end of range ({high}) above maximum ({bounds.high}): {text}")
    if low > high:
        raise ScheduleError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")


def _number_or_name(text: str, bounds: _Bounds) -> int:
    name = text.lower()
    return bounds.names.index(name) + bounds.first_name if name in bounds.names else _number(text)


def _number(text: str) -> int:
    number = None if text.startswith("-") else integer(text)
    if number is None:
        raise ScheduleError(f"failed to parse int from {shown(text)}")
    return number
