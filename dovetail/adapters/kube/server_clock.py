"""The API server's time, by the Date header of its answers.

Kept as a distance from the monotonic clock, so that a step of this machine's own clock changes nothing. A header is cut
to whole seconds and proves only that the server's clock was within one second at some time between question and answer;
the estimate is moved no further than that proves. So a machine with a correct clock keeps its own time.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from dovetail.ports.clock import NOTICED_SECONDS, difference
from dovetail.ports.failures import Failure

_log = logging.getLogger(__name__)

ASK_SECONDS: Final = 30.0  # without any answer for so long, the server is asked


class ServerClock:
    """The port Clock. Fed by the client, read from any thread."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._distance = wall() - monotonic()  # until the first answer this machine's clock is believed
        self._heard_at = float("-inf")
        self._noticed = False

    def now(self) -> float:
        return self._monotonic() + self._distance

    def ahead(self) -> float:
        return self._wall() - self.now()

    def heard(self, moment: float, seconds: float) -> None:
        """An answer with this time has just arrived, so many seconds after its question."""
        received = self._monotonic()
        earliest, latest = moment - received, moment + 1.0 - (received - seconds)
        self._distance = min(max(self._distance, earliest), latest)
        self._heard_at = received
        self._notice()

    async def keep(self, ask: Callable[[], Awaitable[object]]) -> None:
        """Request an answer whenever none has arrived for a while, until cancelled."""
        while True:
            silent = self._monotonic() - self._heard_at
            if silent >= ASK_SECONDS:
                try:
                    await ask()
                except Failure as failure:
                    _log.debug("cannot read the API server's clock: %s", failure)
                silent = 0.0
            await asyncio.sleep(ASK_SECONDS - silent)

    def _notice(self) -> None:
        """Log once that the clocks differ, and once that they agree again."""
        differs = abs(self.ahead()) > NOTICED_SECONDS
        if differs and not self._noticed:
            _log.warning("%s; set it right (NTP)", difference(self))
        elif self._noticed and not differs:
            _log.info("the clock of this worker agrees with the API server's again")
        self._noticed = differs
