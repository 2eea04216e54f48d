"""The budget of all questions to a worker: a fifth of one core, over time.

One answer is made at a time. It is kept, as is an error, for a few times the processor time that it took, but only as
long as people would still call it current; when answers have used up their share of the processor, questions wait.
However many people ask, no heartbeat and no step waits for them. Questions that wait for Temporal or other services
have turns of their own, and take the one turn only to compute: one that hangs there does not hold up questions that
the worker can answer itself. None is made for longer than a limit. Askers take turns, one question each, and an asker
who has used up half of the whole share waits alone: nobody's expensive questions keep the others out.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from temporalio.service import RPCError

from dovetail.answers.failures import CommandFailed
from dovetail.answers.serving.replies import ASKER
from dovetail.answers.turn import TURN
from dovetail.model.values.quoting import one_line
from dovetail.ports.failures import Failure
from dovetail.workflows.converter import UnreadablePayload

BUSY_SECONDS: Final = 20.0  # how long a question waits for its turn
MAKING_SECONDS: Final = 60.0  # how long an answer may be made, besides the time that it may plan
KEPT_SECONDS: Final = 1.0  # an answer is kept for at least this long,
KEPT_FACTOR: Final = 4.0  # for this many times the processor time that it took,
KEPT_MOST_SECONDS: Final = 5.0  # and for no longer than this
WAIT_AT_ONCE: Final = 8  # questions to others: waiting takes no processor time
OF_ONE: Final = 2  # of these at once for one asker
MOST_KEPT: Final = 64
SHARE: Final = 0.2  # of one core, for all that is asked, over time
AT_ONCE_SECONDS: Final = 20.0  # of processor time that questions may use before they are limited to their share
SHARE_OF_ONE: Final = 0.5  # of both of them, for one asker

OF_OTHERS: Final = (Failure, RPCError, UnreadablePayload, TimeoutError)  # that may answer again in a moment

_log = logging.getLogger(__name__)

Made = Any  # an answer, or the exception that says why there is none, which is kept as well
rest: Final = asyncio.sleep  # until the share allows another question


@dataclass(slots=True)
class Spent:
    """Processor seconds used beyond a share of one core, and as of when."""

    share: float
    seconds: float = 0.0
    at: float = 0.0

    def owed(self, now: float) -> float:
        """The used seconds that elapsed time has not paid for yet."""
        return max(0.0, self.seconds - self.share * (now - self.at))

    def pay(self, seconds: float, now: float) -> None:
        """Add used processor seconds."""
        self.seconds, self.at = self.owed(now) + seconds, now


@dataclass(slots=True)
class Asker:
    """An asker: their turns, and what they have spent."""

    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    waits: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(OF_ONE))
    spent: Spent = field(default_factory=lambda: Spent(SHARE * SHARE_OF_ONE))
    asks: int = 0  # open questions


@dataclass(slots=True)
class Budget:
    clock: Callable[[], float] = time.monotonic
    processor: Callable[[], float] = time.process_time
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    waits: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WAIT_AT_ONCE))  # for others
    spent: Spent = field(default_factory=lambda: Spent(SHARE))
    _askers: dict[str, Asker] = field(default_factory=dict)
    _kept: dict[Hashable, tuple[float, Made]] = field(default_factory=dict)
    _made: dict[Hashable, asyncio.Task[Made]] = field(default_factory=dict)  # answers being made, by asker

    async def answer(
        self, question: Hashable, make: Callable[[], Awaitable[Any]], *, waits: bool = False, plans: float = 0.0
    ) -> Any:
        """A kept answer, or one made now; equal questions asked at the same time share one answer. `waits`: the
        question waits for Temporal or another service, which may hang; `plans`: for how many seconds it may plan."""
        made = self._fresh(question)
        if made is None:
            asked = ASKER.get(), question
            making = self._made.get(asked)
            if making is None:
                making = self._made[asked] = asyncio.create_task(
                    self._made_in_turn(question, make, waits, MAKING_SECONDS + plans)
                )
                making.add_done_callback(lambda _: self._made.pop(asked, None))
            made = await asyncio.shield(making)
        if isinstance(made, Exception):
            raise made.with_traceback(None)
        return made

    async def _made_in_turn(
        self, question: Hashable, make: Callable[[], Awaitable[Any]], waits: bool, most: float
    ) -> Made:
        async with self._its_turn(waits) as asker:
            made = self._fresh(question)  # from another asker of the same meanwhile
            if made is not None:
                return made
            queued: list[tuple[float, float]] = []
            if waits:
                TURN.set(partial(self._computing, asker, queued))
            return await self._make(question, partial(_within, most, make), asker, queued)

    @asynccontextmanager
    async def _its_turn(self, waits: bool) -> AsyncIterator[Asker]:
        """Hold a turn to answer: a few questions at a time, one per asker, and none while a share is used up."""
        asker = self._asker()
        asker.asks += 1
        try:
            async with AsyncExitStack() as taken:
                async with _not_for_long():
                    await taken.enter_async_context(asker.waits if waits else asker.turn)
                    if wait := self._too_much(asker.spent):
                        await rest(wait)
                    await taken.enter_async_context(self.waits if waits else self.turn)
                    await rest(self._too_much(self.spent))
                yield asker
        finally:
            asker.asks -= 1

    @asynccontextmanager
    async def _computing(self, asker: Asker, queued: list[tuple[float, float]]) -> AsyncIterator[None]:
        """Hold the one turn besides. What passes until then is noted: others use it."""
        began, before = self.clock(), self.processor()
        async with AsyncExitStack() as taken:
            async with _not_for_long():
                await taken.enter_async_context(asker.turn)
                await taken.enter_async_context(self.turn)
            queued.append((self.clock() - began, self.processor() - before))
            yield

    def _asker(self) -> Asker:
        """The asker's account. Accounts without open questions or debts are dropped."""
        now = self.clock()
        self._askers = {name: one for name, one in self._askers.items() if one.asks or one.spent.owed(now)}
        return self._askers.setdefault(ASKER.get(), Asker())

    def _too_much(self, spent: Spent) -> float:
        """Seconds until the share allows another question."""
        return max(0.0, spent.owed(self.clock()) - AT_ONCE_SECONDS * spent.share / SHARE) / spent.share

    async def _make(
        self,
        question: Hashable,
        make: Callable[[], Awaitable[Any]],
        asker: Asker,
        queued: list[tuple[float, float]],
    ) -> Made:
        """Make it, pay for it and keep it, whatever the result: asking again costs nothing."""
        began, before = self.clock(), self.processor()
        made: Made
        try:
            made = await make()
        except Exception as error:
            if not isinstance(error, (CommandFailed, *OF_OTHERS)):
                _log.exception("a question to the API failed: %s", one_line(str(question)))
            made = error.with_traceback(None)  # its frames would keep the whole look in memory
        now = self.clock()
        # While a question waits for others it costs nothing, though the worker's other work meanwhile is counted for it
        # too.
        worked = min(
            now - began - sum(passed for passed, _ in queued),
            self.processor() - before - sum(used for _, used in queued),
        )
        for spent in (self.spent, asker.spent):
            spent.pay(worked, now)
        factor = 0.0 if isinstance(made, OF_OTHERS) else KEPT_FACTOR
        kept = min(KEPT_MOST_SECONDS, max(KEPT_SECONDS, factor * worked))
        self._kept = {key: kept for key, kept in self._kept.items() if kept[0] > now}
        if len(self._kept) < MOST_KEPT:
            self._kept[question] = (now + kept, made)
        return made

    def _fresh(self, question: Hashable) -> Made | None:
        until, made = self._kept.get(question, (0.0, None))
        return made if until > self.clock() else None


@asynccontextmanager
async def _not_for_long() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(BUSY_SECONDS):
            yield
    except TimeoutError:
        raise TimeoutError("the worker is busy with other questions; ask again") from None


async def _within(seconds: float, make: Callable[[], Awaitable[Any]]) -> Any:
    """Whatever it waits for, it leaves its turn to others then."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await make()
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeoutError(f"there was no answer within {seconds:.0f} s; ask again") from None
