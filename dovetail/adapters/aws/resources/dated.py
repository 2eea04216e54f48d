"""An answer of AWS and its moment: when it was given, or until when it is valid."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Generic, NamedTuple, TypeVar

from dovetail.ports.failures import Retryable

_log = logging.getLogger(__name__)

KEEP_SECONDS: Final = 24 * 3600.0  # while AWS does not answer
_AGAIN_SECONDS: Final = 10.0

Value = TypeVar("Value")


class Dated(NamedTuple, Generic[Value]):
    """A value and its moment, as epoch seconds."""

    at: float
    value: Value
    vain: float = float("-inf")  # when it was last asked for anew without an answer


async def renewed(
    before: Dated[Value] | None, ask: Callable[[], Awaitable[Value]], seconds: float, clock: Callable[[], float]
) -> Dated[Value]:
    """The answer of the last `seconds`, else a new one. While AWS gives none, the one of the last day: launches of an
    unchanged class do not stop because one question is throttled."""
    now = clock()
    if before is not None and (now - before.at < seconds or now - before.vain < _AGAIN_SECONDS):
        return before
    try:
        value = await ask()
    except Retryable as failure:
        if before is None or clock() - before.at >= KEEP_SECONDS:
            raise
        _log.warning("%s; what AWS said %.0f s ago is used", failure, clock() - before.at)
        return before._replace(vain=clock())
    return Dated(clock(), value)
