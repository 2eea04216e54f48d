"""Runs a decision beside the event loop, one at a time, and stops it when nobody waits for it any more.

The engines are pure Python and may compute for seconds; on the event loop they would stop every heartbeat of the
worker. A thread is enough: the interpreter's lock is handed over often enough for beats and watches. A cancelled wait
stops its decision and waits for it to end, so that two never run side by side.
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
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="solver")
        self.turn = asyncio.Lock()

    async def solve(self, decide: Callable[[ShouldStop], T]) -> T:
        """The decision's answer. On a cancel, `decide` is told to stop and awaited."""
        async with self.turn:
            stop = threading.Event()
            future = asyncio.get_running_loop().run_in_executor(self.thread, decide, stop.is_set)
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                stop.set()
                await asyncio.wait([future])
                raise

    def close(self) -> None:
        """End the thread once it is idle."""
        self.thread.shutdown(wait=False, cancel_futures=True)
