"""Writes moments, durations, amounts and prices for people, and reads them.

Short and the same everywhere, because a tired person compares lines.
"""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from dovetail.answers.failures import NotUnderstood
from dovetail.model.values import quoting
from dovetail.model.values.digits import nearest_integer
from dovetail.model.values.durations import DurationError, parse_seconds
from dovetail.model.values.listing import shown as shown
from dovetail.model.values.resources import NANO, Resources
from dovetail.model.values.time import format_time

HOURS_IN_MONTH: Final = 730

_ENDLESS: Final = 1_000_000  # for a pipe or a file, which have no width
_width: ContextVar[int] = ContextVar("width", default=_ENDLESS)
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


@contextmanager
def fitting(width: int | None) -> Iterator[None]:
    """Texts written within the block fit a screen of that width; 0 or None: no limit."""
    before = _width.set(width or _ENDLESS)
    try:
        yield
    finally:
        _width.reset(before)


def moment_text(moment: float) -> str:
    """2026-05-01 12:00:03Z."""
    return format_time(moment).replace("T", " ")


def duration_text(seconds: float) -> str:
    """A duration in at most two units: 2d3h, 4m10s, 12s; tenths below ten seconds."""
    if abs(seconds) < 10 and seconds != int(seconds):
        return f"{seconds:.1f}s"
    left, parts = round(abs(seconds)), []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if seconds < 0 else "") + ("".join(parts[:2]) or "0s")


def age_text(seconds: float) -> str:
    """An age in whole seconds, never negative: the two clocks behind it may differ."""
    return duration_text(max(0, round(seconds)))


def when(moment: float, now: float) -> str:
    """`in 4m10s` or `4m10s ago`."""
    return f"in {duration_text(moment - now)}" if moment >= now else f"{duration_text(now - moment)} ago"


def price_text(price: float) -> str:
    return f"${price:.4f}/h"


def dollars_text(amount: float) -> str:
    return f"${amount / 1000:,.1f}k" if amount >= 10_000 else f"${amount:,.0f}"


def amount_text(resource: str, amount: int) -> str:
    """An amount as a person would write it: 1500m, 2Gi, 110."""
    if resource == "cpu":
        return f"{amount // NANO}" if amount % NANO == 0 else f"{amount / (NANO / 1000):g}m"
    for size, suffix in ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if amount >= size:
            return f"{amount / size:.4g}{suffix}"
    return str(amount)


def amounts_text(amounts: Resources) -> str:
    """cpu 2, memory 4Gi."""
    ordered = sorted(amounts, key=lambda name: (name != "cpu", name != "memory", name))
    return ", ".join(f"{name} {amount_text(name, amounts[name])}" for name in ordered if amounts[name])


def plural(count: int, word: str, several: str = "") -> str:
    """1 pod, 2 pods."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {several or word + 's'}"


def wrapped(head: str, text: str, indent: int = 2) -> list[str]:
    """`  head  text`, the text broken into aligned lines if the screen has a width."""
    start = " " * indent + head
    return textwrap.wrap(
        text, _width.get(), initial_indent=start, subsequent_indent=" " * len(start), break_on_hyphens=False
    ) or [start.rstrip()]


def seconds_of(text: str, option: str = "--for") -> float:
    """A time as people type it: 7d, 36h, 90m."""

    given = text
    if text.endswith("d") and (days := nearest_integer(text[:-1])) is not None:
        text = f"{days * 24}h"
    try:
        seconds = parse_seconds(text)
    except DurationError:
        seconds = 0.0
    if seconds <= 0:
        raise NotUnderstood(f"{option}: {quoting.shown(given)} is no time such as 7d, 36h or 90m")
    return seconds
