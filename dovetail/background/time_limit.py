"""How long a decision may take: one of the worker, one for an answer, a part of a search."""

import time
from collections.abc import Callable

Clock = Callable[[], float]


class TimeLimit:
    """Whether the time is up; it begins when it is made."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self.seconds, self._clock = seconds, clock
        self._until = clock() + seconds

    def __call__(self) -> bool:
        return self._clock() >= self._until
