"""Durations as Go writes and reads them: `1h30m`, `90s`, `1.5h`. `720` has no unit and is no duration, nor is `1d`."""

import re
from math import ceil
from typing import Final

from dovetail.model.values.digits import integer
from dovetail.model.values.quoting import quoted
from dovetail.model.values.remembering import MEGABYTE, remembered

NANOSECONDS: Final = 10**9
DAY: Final = 86_400  # seconds

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
}
_PART: Final = re.compile(r"([0-9]*+)(?:\.([0-9]*+))?+([^0-9.]*+)")
_LONGEST: Final = 2**63 - 1  # Go keeps a duration in 64 bits
_LONGEST_TEXT: Final = 1024  # Go has no limit; here no text may cost more than this to judge
_DECIMALS: Final = 18  # Go drops the digits that do not fit into 64 bits


class DurationError(ValueError):
    """A text that is no Go duration, with the message of Go's parser."""


@remembered(MEGABYTE)
def parse_nanoseconds(text: str) -> int:
    """The duration in nanoseconds, exactly."""
    negative = text[:1] == "-"
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0
    if not body or len(text) > _LONGEST_TEXT:
        raise _invalid(text)
    value, position = 0, 0
    while position < len(body):
        part = _PART.match(body, position)
        assert part is not None  # the pattern also matches the empty text
        value += _part(text, *part.groups(""))
        if value > _LONGEST + negative:
            raise _invalid(text)
        position = part.end()
    return -value if negative else value


def _part(text: str, whole: str, fraction: str, unit: str) -> int:
    number = integer(f"-{whole or 0}")  # negative, because the range is one larger on that side
    if number is None or not (whole or fraction):
        raise _invalid(text)
    if not unit:
        raise DurationError(f"time: missing unit in duration {quoted(text)}")
    size = _UNITS.get(unit)
    if size is None:
        raise DurationError(f"time: unknown unit {quoted(unit)} in duration {quoted(text)}")
    decimals = fraction[:_DECIMALS]
    return -number * size + int(decimals or "0") * size // int(10 ** len(decimals))


def _invalid(text: str) -> DurationError:
    return DurationError(f"time: invalid duration {quoted(text)}")


def parse_seconds(text: str) -> float:
    return parse_nanoseconds(text) / NANOSECONDS


def format_seconds(seconds: float) -> str:
    """A duration as the API's pattern takes it: whole hours, minutes and seconds (API-6)."""
    rest, parts = ceil(seconds), []
    for unit, size in (("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
