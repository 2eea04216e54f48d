"""Runs the watch in a thread with an event loop of its own.

The watch's client is opened and closed on that loop: a connection made on one event loop cannot be used on another.
"""

import asyncio
import logging
import threading
from typing import Final

from dovetail.adapters.kube.watching.watch import Watch
from dovetail.background.supervised import supervised

_log = logging.getLogger(__name__)

_STOP_SECONDS: Final = 5.0


class WatchThread:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    async def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._cancel)
        await asyncio.to_thread(self._thread.join, _STOP_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._follow())
        except asyncio.CancelledError:
            _log.debug("the watch has been stopped")
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _follow(self) -> None:
        """Until it is stopped; a watch that fails is restarted."""
        self._task = supervised("watch", self._watch.run)
        if self._stopping:
            self._task.cancel()
        await self._task

    def _cancel(self) -> None:
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
