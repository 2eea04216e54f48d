"""Durations as Go writes and reads them: `1h30m`, `90s`, `1.5h`. `720` has no unit and is no duration, nor is `1d`."""

import re
from functools import lru_cache
from typing import Final

NANOSECONDS: Final = 10**9

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
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_LONGEST: Final = 2**63 - 1  # Go keeps a duration in 64 bits


class DurationError(ValueError):
    """A text that is no Go duration; the message is the one that Go's parser gives."""


@lru_cache(maxsize=4096)
def parse_nanoseconds(text: str) -> int:
    """The duration in nanoseconds, exactly."""
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0
    if not body:
        raise DurationError(f'time: invalid duration "{text}"')
    value, position = 0, 0
    while position < len(body):
        part = _PART.match(body, position)
        whole, fraction, unit = part.groups() if part else ("", None, "")
        if part is None or not (whole or fraction):
            raise DurationError(f'time: invalid duration "{text}"')
        if not unit:
            raise DurationError(f'time: missing unit in duration "{text}"')
        if unit not in _UNITS:
            raise DurationError(f'time: unknown unit "{unit}" in duration "{text}"')
        digits = fraction or ""
        value += int(whole or "0") * _UNITS[unit] + int(digits or "0") * _UNITS[unit] // 10 ** len(digits)
        position = part.end()
    if value > _LONGEST:
        raise DurationError(f'time: invalid duration "{text}"')
    return -value if text[:1] == "-" else value


def parse_seconds(text: str) -> float:
    """The duration in seconds."""
    return parse_nanoseconds(text) / NANOSECONDS
