"""What blocks the event loop of a worker, and for how long.

All steps of a process share one loop, and each must send a heartbeat within seconds. Code that blocks the loop takes
time from all of them, and meanwhile none can report it. So the loop's lag is measured four times a second, and a thread
looks from outside at what the loop does whenever it is late.
"""

import asyncio
import logging
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from pathlib import Path
from types import FrameType
from typing import Any, Final

from dovetail.background.garbage import uncollected
from dovetail.telemetry.metrics.ours.background import loop_late

TICK_SECONDS: Final = 0.25
LATE_SECONDS: Final = 1.0  # a lag that is worth a line: a heartbeat is due within a few of them
STUCK_SECONDS: Final = 30.0  # one that is worth a line before it is over: it may never be
MOST_FRAMES: Final = 12

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class LoopWatch:
    """Watches the loop of one thread. The loop calls `beat`, any other thread `look`."""

    thread: int
    clock: Callable[[], float] = time.monotonic
    own_work: Callable[[], float] = time.thread_time  # seconds of the processor that the loop's thread has had
    _due: float = 0.0
    _worked: float = 0.0
    _held_by: Counter[str] = field(default_factory=Counter)
    _complained: bool = False

    def begin(self) -> None:
        """The next beat is due in one tick."""
        self._due, self._worked = self.clock() + TICK_SECONDS, self.own_work()
        self._held_by, self._complained = Counter(), False

    def beat(self) -> None:
        late, work = self.clock() - self._due, self.own_work() - self._worked
        loop_late(max(0.0, late))
        if late >= LATE_SECONDS:
            _log.warning(
                "the event loop was held for %.1f s, %.1f s of them by work of its own%s", late, work, self._by()
            )
        self.begin()

    def look(self) -> None:
        """Look at what the loop does, if it is late."""
        late = self.clock() - self._due
        if late < LATE_SECONDS - TICK_SECONDS:
            return
        frame = sys._current_frames().get(self.thread)
        if frame is not None:
            self._held_by[calls(frame)] += 1
        if late >= STUCK_SECONDS and not self._complained:
            self._complained = True
            _log.error("the event loop has been blocked for %.0f s and still is%s", late, self._by())

    def _by(self) -> str:
        seen = self._held_by.most_common(1)
        return f": {seen[0][0]}" if seen else ""


def calls(frame: FrameType) -> str:
    """The calls in progress there, the innermost first."""
    return " < ".join(_lines(frames_from(frame, MOST_FRAMES)))


def frames_from(frame: FrameType, most: int) -> list[FrameType]:
    """The frames of another thread, the innermost first.

    They are collected without a step of Python in between. While the other thread runs on, a frame that it is leaving
    may no longer be one, and asking it crashes the process (seen with CPython 3.11). A garbage collection would be such
    a step: each frame is a new object, and creating it may start one.
    """
    found = deque[Any]()
    with uncollected(), suppress(AttributeError):  # beyond the outermost, which is called by None
        found.extend(accumulate(repeat("f_back", most - 1), getattr, initial=frame))
    return [each for each in found if each is not None]


def _lines(frames: Iterable[FrameType]) -> Iterator[str]:
    for frame in frames:
        file = Path(frame.f_code.co_filename)
        yield f"{frame.f_code.co_qualname} ({'/'.join(file.parts[-2:])}:{frame.f_lineno})"


async def watch_loop() -> None:
    """Watch the running loop, until cancelled."""
    watch, ended = LoopWatch(threading.get_ident()), threading.Event()
    watch.begin()

    def look_on() -> None:
        while not ended.wait(TICK_SECONDS):
            watch.look()

    threading.Thread(target=look_on, name="watch over the event loop", daemon=True).start()
    try:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            watch.beat()
    finally:
        ended.set()
