"""Publishes notices beside the steps, so that no plan, claim or eviction waits for an Event.

Ten thousand pods that fit nowhere make ten thousand requests; an API server that is slow rather than away would hold
back what matters for hours. The queue is bounded: when it is full the oldest notice is dropped and counted. A notice
that waits already is not queued twice; the later words count. What is still queued when the worker stops is published
for a few seconds more; what a killed worker had queued is lost, as it is only an explanation.
"""

import asyncio
from itertools import islice
from typing import Final

from dovetail.background.supervised import stop, supervised
from dovetail.model.notice import Notice
from dovetail.ports.objects import Notices
from dovetail.telemetry.metrics.background import notices_dropped

LONGEST: Final = 20_000  # notices, of about a kilobyte each
AT_ONCE: Final = 100  # handed over together, so that the rest can still be dropped
FLUSH_SECONDS: Final = 5.0

_Key = tuple[object, ...]


class NoticeQueue:
    """The port Notices: `publish` returns at once."""

    def __init__(self, notices: Notices, longest: int = LONGEST) -> None:
        self._notices = notices
        self._longest = longest
        self._waiting: dict[_Key, Notice] = {}
        self._count = 0
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None

    async def publish(self, *notices: Notice) -> None:
        """Queue them."""
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
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            notices_dropped(len(self._waiting))
        await stop(self._task)
        self._task = None

    def _put(self, notice: Notice) -> None:
        self._count += 1
        distinct = notice.distinct if notice.window else str(self._count)  # without a window it is said each time
        key = (notice.reason.lower(), notice.kind, notice.namespace, notice.name, notice.uid, distinct)
        self._waiting[key] = notice

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            while self._waiting:
                batch = [self._waiting.pop(key) for key in list(islice(self._waiting, AT_ONCE))]
                await self._notices.publish(*batch)
            self._news.clear()
            self._idle.set()
