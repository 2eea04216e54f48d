"""Wakes coroutines of any event loop from any thread when something has changed.

A listener registers before it looks. If it looked first, a change between its look and its wait would be missed.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Bell:
    """Rung at a change; heard by all who are listening at that moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listening: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}

    @contextmanager
    def listen(self) -> Iterator[asyncio.Future[None]]:
        """A future that the next ring completes. Enter, look whether a wait is needed at all, then await it."""
        loop = asyncio.get_running_loop()
        heard = loop.create_future()
        with self._lock:
            self._listening[heard] = loop
        try:
            yield heard
        finally:
            with self._lock:
                self._listening.pop(heard, None)

    def ring(self) -> None:
        """Wake everyone who listens."""
        if not self._listening:  # usual during a burst of events; a listener that registers now looks first
            return
        with self._lock:
            listening, self._listening = self._listening, {}
        for heard, loop in listening.items():
            with suppress(RuntimeError):  # that loop has been closed
                loop.call_soon_threadsafe(_complete, heard)


def _complete(heard: asyncio.Future[None]) -> None:
    if not heard.done():
        heard.set_result(None)
