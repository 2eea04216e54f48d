"""The budget of all questions to a worker: a fifth of one core, over time.

One answer is made at a time and kept for a few times the processor's time that it took, as is an error, and never for
longer than a person takes for now; when the making has used up its share of the processor, questions wait. However many
people ask, no heartbeat and no step waits for them. Questions that wait for Temporal have turns of their own: one that
hangs there holds up nobody who asks for what the worker knows by itself.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from temporalio.service import RPCError

from dovetail.answers.failures import CommandFailed
from dovetail.model.quoting import one_line
from dovetail.ports.failures import Failure
from dovetail.workflows.converter import UnreadablePayload

BUSY_SECONDS: Final = 20.0  # how long a question waits for its turn
KEPT_SECONDS: Final = 1.0  # an answer is kept for at least this long,
KEPT_FACTOR: Final = 4.0  # for this many times the processor's time that it took,
KEPT_MOST_SECONDS: Final = 5.0  # and for no longer than this
WAIT_AT_ONCE: Final = 8  # questions to Temporal: waiting takes nothing of the processor
MOST_KEPT: Final = 64
SHARE: Final = 0.2  # of one core, for all that is asked, over time
AT_ONCE_SECONDS: Final = 20.0  # of processor time that questions may use up before they are held to their share

OF_OTHERS: Final = (Failure, RPCError, UnreadablePayload, TimeoutError)  # that may answer again in a moment

_log = logging.getLogger(__name__)

Made = Any  # an answer, or the exception that says why there is none: that is kept as well
rest: Final = asyncio.sleep  # until the share allows another question


@dataclass(slots=True)
class Budget:
    """Of one worker."""

    clock: Callable[[], float] = time.monotonic
    processor: Callable[[], float] = time.process_time
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    waits: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WAIT_AT_ONCE))  # for Temporal
    spent: tuple[float, float] = (0.0, 0.0)  # seconds of the processor beyond the share, and when that was so
    _kept: dict[Hashable, tuple[float, Made]] = field(default_factory=dict)
    _made: dict[Hashable, asyncio.Task[Made]] = field(default_factory=dict)  # those that are being answered

    async def answer(self, question: Hashable, make: Callable[[], Awaitable[Any]], *, waits: bool = False) -> Any:
        """From what is kept, or made now; those who ask the same at the same time wait for one answer. `waits`: for
        Temporal, which may hang."""
        made = self._fresh(question)
        if made is None:
            making = self._made.get(question)
            if making is None:
                making = self._made[question] = asyncio.create_task(self._made_in_turn(question, make, waits))
                making.add_done_callback(lambda _: self._made.pop(question, None))
            made = await asyncio.shield(making)
        if isinstance(made, Exception):
            raise made.with_traceback(None)
        return made

    async def _made_in_turn(self, question: Hashable, make: Callable[[], Awaitable[Any]], waits: bool) -> Made:
        async with self._its_turn(self.waits if waits else self.turn):
            return await self._make(question, make)

    @asynccontextmanager
    async def _its_turn(self, turn: asyncio.Semaphore) -> AsyncIterator[None]:
        """So many questions at a time, and none while the share of all of them is used up."""
        taken = False
        try:
            async with asyncio.timeout(BUSY_SECONDS):
                taken = await turn.acquire()
                await rest(max(0.0, self.owed() - AT_ONCE_SECONDS) / SHARE)
        except BaseException as error:
            if taken:
                turn.release()
            if isinstance(error, TimeoutError):
                raise TimeoutError("the worker is busy with other questions; ask again") from None
            raise
        try:
            yield
        finally:
            turn.release()

    def owed(self) -> float:
        """Seconds of the processor that were spent and are not paid for yet by the time that has passed."""
        spent, at = self.spent
        return max(0.0, spent - SHARE * (self.clock() - at))

    async def _make(self, question: Hashable, make: Callable[[], Awaitable[Any]]) -> Made:
        """Make it, pay for it and keep it, whatever it came to: the same question again costs nothing."""
        began, before = self.clock(), self.processor()
        made: Made
        try:
            made = await make()
        except Exception as error:
            if not isinstance(error, (CommandFailed, *OF_OTHERS)):
                _log.exception("a question to the API came to nothing: %s", one_line(str(question)))
            made = error.with_traceback(None)  # whose frames hold the whole look
        now = self.clock()
        # While a question waits for others it costs nothing; what the worker does meanwhile is counted for it too.
        worked = min(now - began, self.processor() - before)
        self.spent = (self.owed() + worked, now)
        factor = 0.0 if isinstance(made, OF_OTHERS) else KEPT_FACTOR
        kept = min(KEPT_MOST_SECONDS, max(KEPT_SECONDS, factor * worked))
        self._kept = {key: kept for key, kept in self._kept.items() if kept[0] > now}
        if len(self._kept) < MOST_KEPT:
            self._kept[question] = (now + kept, made)
        return made

    def _fresh(self, question: Hashable) -> Made | None:
        until, made = self._kept.get(question, (0.0, None))
        return made if until > self.clock() else None
