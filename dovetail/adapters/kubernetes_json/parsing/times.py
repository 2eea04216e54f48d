"""Timestamps and durations of the Kubernetes API as seconds.

A busy cluster repeats the same few timestamps, so they are remembered.
"""

import re
from datetime import datetime
from functools import lru_cache

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


@lru_cache(maxsize=16384)
def parse_time(text: str) -> float:
    """An RFC 3339 time as seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def optional_time(text: str | None) -> float | None:
    """The same for a field that may be absent."""
    return None if not text else parse_time(text)


@lru_cache(maxsize=1024)
def parse_duration(text: str) -> float:
    """A Go duration ("1h30m") as seconds."""
    body = text.removeprefix("-").removeprefix("+")
    parts = _PART.findall(body)
    if body == "0":
        return 0.0
    if not parts or "".join(number + unit for number, unit in parts) != body:
        raise ValueError(f"not a duration: {text!r}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return -seconds if text.startswith("-") else seconds


def optional_duration(text: str | None) -> float | None:
    """A duration, or None for an absent one and for Never."""
    return None if text is None or text == "Never" else parse_duration(text)
