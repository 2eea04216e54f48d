"""Publishes notices beside the steps, so that no plan, claim or eviction waits for an Event.

Ten thousand pods that fit nowhere make ten thousand requests; with an API server that is slow rather than away, these
would delay what matters for hours. They also share the event loop with everything else, so between two batches the
queue rests for longer than a batch took: on a busy machine, Events come later and claims do not. Notices about other
objects than pods go first.

The queue is bounded: when it is full, the oldest notice is dropped and counted. A notice that is already queued is not
queued twice; the later words replace the earlier. What is still queued when the worker stops is published for a few
more seconds; what a killed worker had queued is lost, which is acceptable for explanations.
"""

import asyncio
import time
from collections.abc import Callable
from itertools import chain, islice
from typing import Final

from dovetail.background.supervised import stop, supervised
from dovetail.notices.notice import Notice
from dovetail.ports.objects import Notices
from dovetail.telemetry.metrics.ours.background import notices_dropped

LONGEST: Final = 20_000  # notices, of about a kilobyte each
AT_ONCE: Final = 100  # handed over together, so that the rest can still be dropped
FLUSH_SECONDS: Final = 5.0
REST: Final = 2.0  # times as long as a handful took; so Events have a third of the loop at most
LONGEST_REST: Final = 5.0  # seconds: an API server that is slow takes nothing of the loop

_Key = tuple[object, ...]


class NoticeQueue:
    """The port Notices: `publish` returns at once."""

    def __init__(self, notices: Notices, longest: int = LONGEST, clock: Callable[[], float] = time.monotonic) -> None:
        self._notices = notices
        self._longest = longest
        self._clock = clock
        self._closing = asyncio.Event()
        self._waiting: dict[_Key, Notice] = {}
        self._count = 0
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None

    async def publish(self, *notices: Notice) -> None:
        for notice in notices:
            self._put(notice)
        dropped = len(self._waiting) - self._longest
        if dropped > 0:
            for key in list(islice(self._waiting, dropped)):
                del self._waiting[key]
            notices_dropped(dropped)
        if self._waiting:
            self._idle.clear()
            self._news.set()
        if self._task is None:
            self._task = supervised("notices", self._run)

    async def close(self, seconds: float = FLUSH_SECONDS) -> None:
        """Publish what waits, for that time at most; what is left is dropped and counted."""
        if self._task is None:
            return
        self._closing.set()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            notices_dropped(len(self._waiting))
        await stop(self._task)
        self._task = None
        self._closing.clear()

    def _put(self, notice: Notice) -> None:
        self._count += 1
        distinct = notice.distinct if notice.window else str(self._count)  # without a window it is said each time
        key = (notice.reason.lower(), notice.kind, notice.namespace, notice.name, notice.uid, distinct)
        self._waiting[key] = notice

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            while self._waiting:
                began = self._clock()
                await self._notices.publish(*self._next())
                if self._waiting:
                    await self._rest(REST * (self._clock() - began))
            self._news.clear()
            self._idle.set()

    def _next(self) -> list[Notice]:
        """The oldest notice, but those about pods last: there may be ten thousand of them."""
        of_pods = (key for key, notice in self._waiting.items() if notice.kind == "Pod")
        others = (key for key, notice in self._waiting.items() if notice.kind != "Pod")
        return [self._waiting.pop(key) for key in list(islice(chain(others, of_pods), AT_ONCE))]

    async def _rest(self, seconds: float) -> None:
        """Wait that long, or until the worker stops."""
        try:
            async with asyncio.timeout(min(seconds, LONGEST_REST)):
                await self._closing.wait()
        except TimeoutError:
            return
