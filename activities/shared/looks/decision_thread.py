"""Runs decisions beside the event loop, one at a time.

The engines are pure Python and may compute for seconds; on the event loop they would stop every heartbeat of the
worker. A thread is enough: the interpreter's lock is handed over often enough for heartbeats and watches. A cancelled
wait stops its decision and waits for it to end, so that two never run side by side. What is decided is pure: the clock
that limits it is read here.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from dovetail.background.time_limit import Clock, TimeLimit

T = TypeVar("T")

ShouldStop = Callable[[], bool]

REST_FACTOR = 5.0  # times as long as a decision took, until the next
SHORT_REST_FACTOR = 9.0  # the same where the rest stays short, and once more for each decision in vain before it
MOST_IN_VAIN = 5
SHORT_REST_SECONDS = 5.0


class DecisionThread:
    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        """`seconds`: how long one decision may take before it is asked to answer with what it has."""
        self.seconds, self.clock = seconds, clock
        self.executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decisions")
        self.busy = asyncio.Lock()

    async def run(self, decide: Callable[[ShouldStop], T]) -> T:
        """What `decide` returns. When its time is up it is asked to stop; on a cancel too, and then it is awaited."""
        async with self.busy:
            stop, is_late = threading.Event(), TimeLimit(self.seconds, self.clock)
            future = asyncio.get_running_loop().run_in_executor(
                self.executor, decide, lambda: stop.is_set() or is_late()
            )
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                stop.set()
                await asyncio.wait([future])
                raise

    def close(self) -> None:
        """End the thread once it is idle."""
        self.executor.shutdown(wait=False, cancel_futures=True)


def rest_after(took: float, in_vain: int = 1) -> float:
    """For how long nothing is decided after a decision that took so long, however much changes. `in_vain`: how many in
    a row have found nothing, this one counted: where pods come and go all day, few of very many find something."""
    factor = SHORT_REST_FACTOR * min(in_vain, MOST_IN_VAIN)
    return max(took * REST_FACTOR, min(took * factor, SHORT_REST_SECONDS))
