"""Runs decisions beside the event loop, one at a time.

The engines are pure Python and may compute for seconds; on the event loop they would stop every heartbeat of the
worker. A thread is enough: the interpreter's lock is handed over often enough for heartbeats and watches. A cancelled
wait stops its decision and waits for it to end, so that two never run side by side.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

ShouldStop = Callable[[], bool]


class DecisionThread:
    """One thread that decides."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decisions")
        self.busy = asyncio.Lock()

    async def run(self, decide: Callable[[ShouldStop], T]) -> T:
        """What `decide` returns. On a cancel it is asked to stop, and awaited."""
        async with self.busy:
            stop = threading.Event()
            future = asyncio.get_running_loop().run_in_executor(self.executor, decide, stop.is_set)
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                stop.set()
                await asyncio.wait([future])
                raise

    def close(self) -> None:
        """End the thread once it is idle."""
        self.executor.shutdown(wait=False, cancel_futures=True)
