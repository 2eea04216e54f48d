"""How fast pods are evicted: at most a fixed number a second, and in a fair order.

Each eviction waits for it; there is one per process, shared by all drains. First come, first served would let one pool
with hundreds of blocked pods, each retried again and again, hold up the drains of every other pool. So the waiting
groups are served in turn, the oldest caller of each first; repeated requests get one eviction in ten, or those that no
first request waits for (without that, 450 drains beside 50 blocked ones took 34 s instead of 18 s).
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable

from dovetail.termination import timing


class _Queue:
    """Waiting callers by group; the groups are served one after the other."""

    def __init__(self) -> None:
        self.groups: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    def add(self, group: str, caller: asyncio.Future[None]) -> None:
        self.groups.setdefault(group, deque()).append(caller)

    def next(self) -> asyncio.Future[None] | None:
        """The next caller who has not given up."""
        while self.groups:
            group, waiting = next(iter(self.groups.items()))
            caller = waiting.popleft()
            if waiting:
                self.groups.move_to_end(group)
            else:
                del self.groups[group]
            if not caller.cancelled():
                return caller
        return None


class EvictionPace:
    """A token bucket with two queues: first requests, and repeated ones."""

    def __init__(
        self,
        now: Callable[[], float],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        per_second: float = timing.EVICTIONS_PER_SECOND,
        burst: float = timing.EVICTIONS_AT_ONCE,
    ) -> None:
        self._now, self._pause, self._per_second, self._burst = now, pause, per_second, burst
        self._tokens, self._filled = burst, now()
        self._first, self._repeated, self._served = _Queue(), _Queue(), 0
        self._server: asyncio.Task[None] | None = None

    async def wait(self, group: str, *, repeated: bool = False) -> None:
        """Until an eviction of that group may be asked for."""
        caller: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._repeated if repeated else self._first).add(group, caller)
        if self._server is None or self._server.done():
            self._server = asyncio.create_task(self._serve())
        await caller

    async def _serve(self) -> None:
        while self._first.groups or self._repeated.groups:
            await self._take_token()
            caller = self._next()
            if caller is None:
                self._tokens += 1  # all callers have given up meanwhile
            else:
                caller.set_result(None)

    def _next(self) -> asyncio.Future[None] | None:
        self._served += 1
        if self._served % timing.REPEATED_SHARE == 0:
            return self._repeated.next() or self._first.next()
        return self._first.next() or self._repeated.next()

    async def _take_token(self) -> None:
        self._fill()
        if self._tokens < 1:
            await self._pause((1 - self._tokens) / self._per_second)
            self._fill()
        self._tokens -= 1

    def _fill(self) -> None:
        now = self._now()
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._filled) * self._per_second)
        self._filled = now
