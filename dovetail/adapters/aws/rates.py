"""How long a call must wait before it is made: a token bucket per operation.

AWS throttles an account, not a process, and raises an account's rates on request, so its rates are unknown here. A
bucket starts with what every account has and is refilled faster than that until AWS throttles: that empties it, and for
the next minute it is refilled only at AWS's rate for an account that was never raised. All callers wait for it;
otherwise every worker's retries would be refused because of the others' retries.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from dovetail.adapters.aws.settings import RateLimit

UNTHROTTLED: Final = 6.0  # so many times AWS's own rate while AWS does not object
SLOW_SECONDS: Final = 60.0  # how long AWS's word "throttled" counts
LONGEST_WAIT: Final = 30.0  # a call that would wait longer is given back to its workflow, which waits without a worker


class Bucket:
    def __init__(self, burst: float, per_second: float, clock: Callable[[], float]) -> None:
        self._burst, self._per_second, self._clock = burst, per_second, clock
        self._left, self._since = burst, clock()
        self._slow_until = float("-inf")

    def take(self) -> float:
        """Take a token; returns the seconds to wait before the call."""
        self._fill()
        self._left -= 1.0
        return max(0.0, -self._left / self._rate())

    def give_back(self) -> None:
        """Return the token of a call that was not made."""
        self._left = min(self._burst, self._left + 1.0)

    def drain(self) -> None:
        """AWS has throttled: nothing more for as long as one token takes, and slowly for a minute."""
        self._fill()
        self._left = min(self._left, 0.0)
        self._slow_until = self._clock() + SLOW_SECONDS

    def _rate(self) -> float:
        return self._per_second * (1.0 if self._clock() < self._slow_until else UNTHROTTLED)

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._since) * self._rate())
        self._since = now


class Rates:
    """The buckets; operations without one are not limited."""

    def __init__(self, limits: Iterable[RateLimit], clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets = {each.operation: Bucket(each.burst, each.per_second, clock) for each in limits}

    async def pass_through(self, operation: str) -> bool:
        """Wait until this operation may be called; False if the wait would be too long."""
        bucket = self._buckets.get(operation)
        if bucket is None:
            return True
        wait = bucket.take()
        if wait > LONGEST_WAIT:
            bucket.give_back()
            return False
        if wait > 0.0:
            await asyncio.sleep(wait)
        return True

    def throttled(self, operation: str) -> None:
        bucket = self._buckets.get(operation)
        if bucket is not None:
            bucket.drain()
