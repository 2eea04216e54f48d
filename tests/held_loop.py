"""No test lets the product hold an event loop: half a second of its thread's processor in one callback is too much.

All steps of a worker send their heartbeats over one loop. What is measured is the processor time of the loop's own
thread, so that nothing which other tests do to the machine can turn this red. A thread looks at long callbacks from
outside: those in which the test itself works (its own plans of a thousand nodes) are the test's business.
"""

import asyncio
import gc
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from pathlib import Path
from types import FrameType
from typing import Any, Final

from dovetail.background.loop_watch import frames_from

MOST_SECONDS: Final = 0.5
LOOKS_SECONDS: Final = 0.05  # between two looks
MOST_FRAMES: Final = 1000
FIRST_LOOK_SECONDS: Final = 0.1  # of processor time: shorter callbacks are not looked at

_ROOT: Final = Path(__file__).parents[1]
_PRODUCT: Final = ("dovetail/", "worker/", "activities/", "workflows/")
_TESTS: Final = ("tests/", "testbed/", "acceptance/")

# Functions that hold the loop for longer, by file and name, and why that is let be.
LET_BE: Final[Mapping[tuple[str, str], str]] = {
    (
        "worker/task_queues.py",
        "queue_worker",
    ): "the sandbox compiles the workflows once, before the worker takes its first step",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """One function of a stack."""

    file: str  # from the root of the project; empty for others
    name: str
    line: int
    is_coroutine: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.file or 'elsewhere'}:{self.line})"


Stack = tuple[Seen, ...]  # the innermost first


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What a callback did at one moment. `step` is the innermost coroutine that ran: one that awaits what answers at
    once, as objects in memory do, goes on in the same callback, and gives the loop back where servers answer."""

    stack: Stack
    step: FrameType | None


@dataclass(slots=True)
class Running:
    """A callback that runs, and how often it was seen, by what it did."""

    thread: int
    clock: int
    began: float
    looks: list["Look"] = field(default_factory=list)

    @property
    def spent(self) -> float:
        """Seconds of the processor."""
        return time.clock_gettime(self.clock) - self.began


@dataclass(frozen=True, slots=True)
class Hold:
    """A callback that has taken too long."""

    seconds: float  # those that are the product's
    stack: Stack

    def __str__(self) -> str:
        shown = " < ".join(str(seen) for seen in self.stack if seen.file)
        return f"the event loop was held for {self.seconds:.2f} s of processor time: {shown}"


class HeldLoops:
    """All event loops of this process."""

    def __init__(self) -> None:
        self.holds: list[Hold] = []
        self.longest = 0.0
        self._running: dict[int, Running] = {}
        self._clocks: dict[int, int] = {}
        self._collecting: dict[int, float] = {}
        self._ended = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch until the block ends."""
        plain = asyncio.Handle._run
        asyncio.Handle._run = self._measured(plain)  # type: ignore[method-assign, assignment]
        gc.callbacks.append(self._collected)
        thread = threading.Thread(target=self._look_on, name="watch over the loops of tests", daemon=True)
        thread.start()
        try:
            yield
        finally:
            asyncio.Handle._run = plain  # type: ignore[method-assign]
            gc.callbacks.remove(self._collected)
            self._ended.set()
            thread.join()

    def taken(self) -> list[Hold]:
        """What was held since the last time that was asked."""
        found, self.holds = self.holds, []
        return found

    def _measured(self, plain: Callable[[asyncio.Handle], None]) -> Callable[[asyncio.Handle], None]:
        def run(handle: asyncio.Handle) -> None:
            thread = threading.get_ident()
            outer = self._running.get(thread)
            self._running[thread] = running = Running(thread, self._clock(thread), time.thread_time())
            try:
                plain(handle)
            finally:
                self._judge(running, time.thread_time() - running.began)
                if outer is None:
                    self._running.pop(thread, None)
                else:
                    self._running[thread] = outer

        return run

    def _collected(self, phase: str, _: object) -> None:
        """A collection takes as long as the heap of all tests is large, in whichever callback it falls."""
        thread = threading.get_ident()
        if phase == "start":
            self._collecting[thread] = time.thread_time()
            return
        took = time.thread_time() - self._collecting.pop(thread, time.thread_time())
        if (running := self._running.get(thread)) is not None:
            running.began += took

    def _clock(self, thread: int) -> int:
        """Asked by the thread itself: the clock of one that has ended must not be asked for."""
        if thread not in self._clocks:
            self._clocks[thread] = time.pthread_getcpuclockid(thread)
        return self._clocks[thread]

    def _judge(self, running: Running, seconds: float) -> None:
        self.longest = max(self.longest, seconds)
        if seconds < MOST_SECONDS:
            return
        looks = list(running.looks)
        held = _longest_hold(looks)
        share = seconds * len(held) / len(looks) if looks else 0.0
        if share >= MOST_SECONDS:
            self.holds.append(Hold(share, held[len(held) // 2].stack))

    def _look_on(self) -> None:
        while not self._ended.wait(LOOKS_SECONDS):
            for running in list(self._running.values()):
                self._look(running)

    def _look(self, running: Running) -> None:
        try:
            if running.spent < FIRST_LOOK_SECONDS:
                return
        except OSError:
            return  # its thread has ended
        frame = sys._current_frames().get(running.thread)
        if frame is not None and self._running.get(running.thread) is running:
            frames = frames_from(frame, MOST_FRAMES)
            running.looks.append(Look(tuple(_stack(frames)), _innermost_coroutine(frames)))


def _longest_hold(looks: list[Look]) -> list[Look]:
    """The most looks in a row at one and the same run of a coroutine of the product."""
    runs = (list(run) for _, run in groupby(looks, key=lambda look: (id(look.step), is_product(look.stack))))
    return max((run for run in runs if is_product(run[0].stack)), key=len, default=[])


def _innermost_coroutine(frames: Iterable[FrameType]) -> FrameType | None:
    return next((each for each in frames if each.f_code.co_flags & inspect.CO_COROUTINE), None)


def is_product(stack: Stack) -> bool:
    """Whether the product holds the loop, and not the test itself, which may call what it likes."""
    if any((seen.file, seen.name) in LET_BE for seen in stack):
        return False
    for seen in stack:
        if seen.file.startswith(_TESTS):
            return False
        if seen.file.startswith(_PRODUCT) and seen.is_coroutine:
            return True
    return any(seen.file.startswith(_PRODUCT) for seen in stack)


def _stack(frames: Iterable[FrameType]) -> Iterator[Seen]:
    for at in takewhile(lambda each: each.f_code is not _RUN_ONCE, frames):
        code = at.f_code
        yield Seen(_within(code.co_filename), code.co_name, at.f_lineno, bool(code.co_flags & inspect.CO_COROUTINE))


def _within(file: str) -> str:
    """From the root, through the links of the package; empty for what is installed."""
    if not file.startswith(f"{_ROOT}/") or ".venv" in file:
        return ""
    path = file.removeprefix(f"{_ROOT}/")
    inner = path.removeprefix("dovetail/")
    return inner if inner.startswith(("worker/", "activities/", "workflows/")) else path


_RUN_ONCE: Final[Any] = asyncio.BaseEventLoop._run_once.__code__  # type: ignore[attr-defined]
HELD: Final = HeldLoops()
