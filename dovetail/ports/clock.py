"""What time it is for a decision: the cluster's time, not this machine's.

Creation times, deadlines and grace periods are written by the API server. A worker whose own clock is minutes off would
find every fresh claim overdue and delete pods by force before their time.
"""

import time
from typing import Final, Protocol

from dovetail.ports.failures import NotSeenYet

NOTICED_SECONDS: Final = 2.0  # a difference that a person should hear of
UNFIT_SECONDS: Final = 30.0  # beyond this a worker takes no step: the cloud refuses its signatures as well


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, as the API server counts them."""

    def ahead(self) -> float:
        """How many seconds this machine's clock is ahead of it; negative: behind."""


class SameClock:
    """Where the cluster is on this machine: one clock."""

    def now(self) -> float:
        return time.time()

    def ahead(self) -> float:
        return 0.0


def unfit_clock(clock: Clock) -> str:
    """Why this machine's clock lets no step be taken now; empty where it is good enough."""
    return difference(clock) if abs(clock.ahead()) > UNFIT_SECONDS else ""


def believed_time(clock: Clock) -> float:
    """Its time; NotSeenYet while it is not good enough to act by."""
    unfit = unfit_clock(clock)
    if unfit:
        raise NotSeenYet("time", unfit)
    return clock.now()


def difference(clock: Clock) -> str:
    ahead = clock.ahead()
    way = "ahead of" if ahead >= 0 else "behind"
    return f"the clock of this worker is {abs(ahead):.0f} s {way} the API server's"
