"""How many lines of code run: a measure of work that is the same on each machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


def with_lines(work: Callable[[], T]) -> tuple[T, int]:
    """What the work answers, and the lines that it ran, in whatever module."""
    lines = 0

    def traced(_: FrameType, event: str, __: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        found = work()
    finally:
        sys.settrace(before)
    return found, lines


def within_lines(most: int, work: Callable[[], T]) -> T:
    """What the work answers; it fails as soon as it has run more lines, which may be long before its end."""
    lines = 0

    def traced(_: FrameType, event: str, __: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        assert lines <= most, f"more than {most} lines"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        return work()
    finally:
        sys.settrace(before)
