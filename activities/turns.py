"""Lets callers pass so many a second, taking turns by group.

Asked before each eviction; one per process, shared by all drains. First come, first served would let one pool with
hundreds of blocked pods, each asking again and again, hold up the drains of every other pool; here each pool that waits
gets every n-th turn, and within a pool the oldest caller goes first.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Final

PER_SECOND: Final = 100.0  # upstream's eviction queue has the same limit (P-12)
BURST: Final = 100.0


class Turns:
    """A token bucket with one queue per group."""

    def __init__(
        self,
        now: Callable[[], float],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        per_second: float = PER_SECOND,
        burst: float = BURST,
    ) -> None:
        self._now, self._pause, self._per_second, self._burst = now, pause, per_second, burst
        self._tokens, self._filled = burst, now()
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._server: asyncio.Task[None] | None = None

    async def take(self, group: str) -> None:
        """Wait for a turn of that group."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(group, deque()).append(turn)
        if self._server is None or self._server.done():
            self._server = asyncio.create_task(self._serve())
        await turn

    async def _serve(self) -> None:
        while self._queues:
            group, waiting = next(iter(self._queues.items()))
            turn = waiting.popleft()
            if waiting:
                self._queues.move_to_end(group)
            else:
                del self._queues[group]
            if turn.cancelled():
                continue
            await self._token()
            if not turn.cancelled():
                turn.set_result(None)

    async def _token(self) -> None:
        self._fill()
        if self._tokens < 1:
            await self._pause((1 - self._tokens) / self._per_second)
            self._fill()
        self._tokens -= 1

    def _fill(self) -> None:
        now = self._now()
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._filled) * self._per_second)
        self._filled = now
