"""An event loop whose clock jumps to the next moment that something waits for, so that a day passes in no time.

Only for what waits by the loop alone: the clock would run away from a thread or a server.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Value = TypeVar("Value")


class _Skipping(selectors.SelectSelector):
    """Waits for nothing: the time that a wait would take has passed at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """`time()` is seconds since the epoch of nowhere."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        """The simulated moment."""
        return self._skipping.now


def now() -> float:
    """The simulated moment, where a clock is asked for."""
    return asyncio.get_running_loop().time()


def played(story: Coroutine[Any, Any, Value]) -> Value:
    """What the coroutine gives, played on a simulated clock."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(story)


async def for_seconds(seconds: float, *going_on: Coroutine[Any, Any, None]) -> None:
    """Let these go on for so long."""
    tasks = [asyncio.ensure_future(each) for each in going_on]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    for each in done:
        if isinstance(each, Exception):
            raise each
