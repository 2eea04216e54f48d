"""The API server's time, by the Date header of its answers.

Kept as a distance from the monotonic clock, so that a step of this machine's own clock changes nothing. A header is cut
to whole seconds and proves only that the server's clock was within one second at some time between question and answer;
the estimate is moved no further than that proves. So a machine with a correct clock keeps its own time.

One of several API servers may have a wrong clock, and drains, expiries and deadlines go by this one. So a leap counts
at once only if this machine's own clock has made it too, and else when several answers over some seconds agree on it
and none speaks against it.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from dovetail.ports.clock import NOTICED_SECONDS, difference
from dovetail.ports.failures import Failure

_log = logging.getLogger(__name__)

ASK_SECONDS: Final = 30.0  # without any answer for so long, the server is asked
DOUBT_SECONDS: Final = 5.0  # for so long answers must agree on a leap
DOUBT_ANSWERS: Final = 3  # and so many of them
_DOUBT_ASK_SECONDS: Final = 2.0


@dataclass(slots=True)
class _Doubt:
    """A leap that does not count yet."""

    distance: float
    since: float
    answers: int = 1


class ServerClock:
    """The port Clock. Fed by the client, read from any thread."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._distance = wall() - monotonic()  # until the first answer this machine's clock is believed
        self._trip = float("inf")  # how long the last answer took that was believed: the estimate is no better
        self._heard_at = float("-inf")
        self._doubt: _Doubt | None = None
        self._noticed = self._warned = False

    def now(self) -> float:
        return self._monotonic() + self._distance

    def ahead(self) -> float:
        return self._wall() - self.now()

    def heard(self, moment: float, seconds: float) -> None:
        """An answer with this time has just arrived, so many seconds after its question."""
        received = self._monotonic()
        earliest, latest = moment - received, moment + 1.0 - (received - seconds)
        proven = min(max(self._distance, earliest), latest)
        self._heard_at = received
        if self._is_believed(proven, received):
            self._distance, self._trip, self._doubt = proven, seconds, None
            self._notice()

    async def keep(self, ask: Callable[[], Awaitable[object]]) -> None:
        """Request an answer whenever none has arrived for a while, until cancelled."""
        while True:
            silent = self._monotonic() - self._heard_at
            if silent >= ASK_SECONDS or self._doubt is not None:
                try:
                    await ask()
                except Failure as failure:
                    _log.debug("cannot read the API server's clock: %s", failure)
                silent = 0.0
            await asyncio.sleep(ASK_SECONDS - silent if self._doubt is None else _DOUBT_ASK_SECONDS)

    def _is_believed(self, proven: float, received: float) -> bool:
        """Whether the time counts that an answer proves; a leap becomes a doubt first."""
        leap = proven - self._distance
        agrees = abs(proven - (self._wall() - received)) <= NOTICED_SECONDS  # this machine's clock, with the server's
        if agrees or abs(leap) <= NOTICED_SECONDS + self._trip:
            return True
        doubt = self._doubt
        if doubt is None or abs(proven - doubt.distance) > NOTICED_SECONDS:
            self._doubt = _Doubt(proven, received)
            self._warn(leap)
            return False
        doubt.answers += 1
        return doubt.answers >= DOUBT_ANSWERS and received - doubt.since >= DOUBT_SECONDS

    def _warn(self, leap: float) -> None:
        """Log once that the API server's answers do not agree."""
        if not self._warned:
            way = "later" if leap > 0 else "earlier"
            _log.warning(
                "an answer of the API server is of a time %.0f s %s than those before it; it counts once others agree, "
                "else the clock of one of its servers is to be set right (NTP)",
                abs(leap),
                way,
            )
        self._warned = True

    def _notice(self) -> None:
        """Log once that the clocks differ, and once that they agree again."""
        differs = abs(self.ahead()) > NOTICED_SECONDS
        if differs and not self._noticed:
            _log.warning("%s; set the wrong one right (NTP)", difference(self))
        elif self._noticed and not differs:
            _log.info("the clock of this worker agrees with the API server's again")
        self._noticed = differs
