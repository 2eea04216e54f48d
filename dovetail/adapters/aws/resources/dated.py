"""An answer of AWS and its moment: when it was given, or until when it is valid."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, NamedTuple, TypeVar

from dovetail.ports.failures import Retryable, Unreachable

_log = logging.getLogger(__name__)

KEEP_SECONDS: Final = 24 * 3600.0  # while AWS does not answer
_AGAIN_SECONDS: Final = 10.0
_WAIT_SECONDS: Final = 10.0  # for an answer; the SDK itself waits three minutes

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Dated(NamedTuple, Generic[Value]):
    """A value and its moment, as epoch seconds."""

    at: float
    value: Value
    vain: float = float("-inf")  # when it was last asked for anew without an answer


class Renewed(Generic[Key, Value]):
    """Answers, each asked for anew after `seconds`. While AWS gives none, the one of the last day: launches of an
    unchanged class do not stop because one question is throttled. A question that hangs is one call, whose answer all
    who ask wait for, but not for long: calls that hang would take every thread that the others need."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._kept: dict[Key, Dated[Value]] = {}
        self._asking: dict[Key, asyncio.Task[Value]] = {}

    async def of(self, key: Key, ask: Callable[[], Awaitable[Value]]) -> Value:
        """The answer of the last `seconds`, else a new one."""
        before, now, asking = self._kept.get(key), self._clock(), self._asking.get(key)
        if before is not None:
            hangs = asking is not None and before.vain > before.at
            if hangs or now - before.at < self._seconds or now - before.vain < _AGAIN_SECONDS:
                return before.value
        if asking is None:
            asking = self._asking[key] = asyncio.create_task(self._renew(key, ask))
            asking.add_done_callback(lambda done: self._ended(key, done))
        await asyncio.wait([asking], timeout=_WAIT_SECONDS)
        try:
            if not asking.done():
                raise Unreachable("AWS", f"no answer within {_WAIT_SECONDS:.0f} s")
            return asking.result()
        except Retryable as failure:
            return self._former(key, failure)

    def known(self, key: Key) -> Value | None:
        """What was answered within the last day."""
        before = self._kept.get(key)
        return before.value if before is not None and self._clock() - before.at < KEEP_SECONDS else None

    def clear(self) -> None:
        """All is asked for anew."""
        self._kept.clear()

    async def _renew(self, key: Key, ask: Callable[[], Awaitable[Value]]) -> Value:
        value = await ask()
        self._kept[key] = Dated(self._clock(), value)
        return value

    def _ended(self, key: Key, asking: asyncio.Task[Value]) -> None:
        """The failure is taken note of, although nobody may wait for it any more."""
        del self._asking[key]
        if not asking.cancelled():
            asking.exception()

    def _former(self, key: Key, failure: Retryable) -> Value:
        before, now = self._kept.get(key), self._clock()
        if before is None or now - before.at >= KEEP_SECONDS:
            raise failure
        if now - before.vain >= _AGAIN_SECONDS:
            self._kept[key] = before._replace(vain=now)
            _log.warning("%s; what AWS said %.0f s ago is used", failure, now - before.at)
        return before.value
