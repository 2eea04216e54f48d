"""Moments as seconds since the epoch, and as RFC 3339 text: read and written here and nowhere else.

Nothing in this module reads the clock: a decision is given its moment.
"""

from datetime import UTC, datetime
from typing import Final

from dovetail.model.values.remembering import MEGABYTE, remembered

_LAST: Final = 253402300799.0  # the end of the year 9999, after which there are no texts


@remembered(4 * MEGABYTE)
def parse_time(text: str) -> float:
    """A time as the API server writes it; ValueError if it is none. Remembered, since a cluster repeats a few."""
    return datetime.fromisoformat(text).timestamp()


def optional_time(text: str | None) -> float | None:
    """The time in a field that may be absent or empty."""
    return None if not text else parse_time(text)


def time_or_none(text: str) -> float | None:
    """A time that anybody may have written, in an annotation for example; None unless it is RFC 3339 with an offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None or "T" not in text.upper() else moment.timestamp()


def utc_moment(text: str) -> float:
    """A time that may lack an offset, and is then in UTC; ValueError if it is none."""
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()


def format_time(moment: float) -> str:
    """A moment in UTC, in whole seconds, as upstream prints it."""
    return datetime.fromtimestamp(written(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def written(moment: float) -> float:
    """What is left of a moment once it has been written. What a person wrote has to be brought to this before it is
    compared with what was remembered of it: JavaScript and Go write fractions of a second."""
    return max(0.0, min(moment, _LAST)) // 1
