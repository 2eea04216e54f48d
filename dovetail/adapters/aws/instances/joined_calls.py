"""Concurrent requests for single instances share one call.

Three hundred terminations at once would otherwise be three hundred calls, of which AWS takes five a second. The next
call of a kind follows half a second later at the soonest, so that a long sequence also makes two calls a second at
most; a single request waits for nothing. Each caller gets the answer for its own instance, or the failure of the call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Generic, TypeVar

from dovetail.adapters.aws.meters import observe

T = TypeVar("T")

_TOGETHER_SECONDS: Final = 0.02  # requests of one burst; waiting longer would show in a termination
_APART_SECONDS: Final = 0.5  # between two calls of a kind
_MOST_IDS: Final = 500


class JoinedCalls(Generic[T]):
    """One kind of request. `ask`: the call for several ids; an id that its answer lacks is answered with None."""

    def __init__(self, batcher: str, ask: Callable[[list[str]], Awaitable[Mapping[str, T]]]) -> None:
        """`batcher`: the kind's name in the metrics."""
        self._batcher, self._ask = batcher, ask
        self._waiting: dict[str, list[asyncio.Future[T | None]]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._next_at = float("-inf")  # on the loop's clock

    async def answer(self, identity: str) -> T | None:
        """The answer for this id, from a call that begins after this request."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T | None] = loop.create_future()
        first = not self._waiting
        self._waiting.setdefault(identity, []).append(answer)
        if first:
            task = loop.create_task(self._answer_together())
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        return await answer

    async def _answer_together(self) -> None:
        clock = asyncio.get_running_loop().time
        together = max(_TOGETHER_SECONDS, self._next_at - clock())
        await asyncio.sleep(together)
        self._next_at = clock() + _APART_SECONDS
        waiting, self._waiting = self._waiting, {}
        ids = sorted(waiting)
        observe("cloudprovider_batcher_batch_time_seconds", together, {"batcher": self._batcher})
        observe("cloudprovider_batcher_batch_size", len(ids), {"batcher": self._batcher})
        for start in range(0, len(ids), _MOST_IDS):
            await self._answer(ids[start : start + _MOST_IDS], waiting)

    async def _answer(self, ids: list[str], waiting: dict[str, list[asyncio.Future[T | None]]]) -> None:
        futures = [(identity, future) for identity in ids for future in waiting[identity]]
        try:
            found = await self._ask(ids)
        except Exception as error:  # whatever it is, the callers that wait get it
            for _, future in futures:
                if not future.done():
                    future.set_exception(error)
            return
        for identity, future in futures:
            if not future.done():
                future.set_result(found.get(identity))
