"""One writer of an object at a time, and each on the newest version that this process knows.

Launch, join, tagging and upkeep all write to one NodeClaim within seconds. Each decides on what the watch has
delivered, which is older than what another of them has just written: at three hundred nodes one request in five met a
conflict, and each conflict cost two reads. Here they take turns per object, and a change that was decided on a version
older than our own last answer is rejected without a request, with the newer object at hand.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from dovetail.ports.objects import Versioned

Object = TypeVar("Object", bound=Versioned)

KEPT_SECONDS: Final = 60.0  # by then the watch has long delivered it
MOST_KEPT: Final = 5_000


class _Answer(NamedTuple):
    at: float
    value: Versioned


class LatestAnswers(Generic[Object]):
    """The objects of one kind as the API server last answered our own requests."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers: dict[str, _Answer] = {}  # the oldest first
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def turn(self, name: str) -> asyncio.Lock:
        """To be held while the object of that name is changed."""
        lock = self._turns.get(name)
        if lock is None:
            lock = self._turns[name] = asyncio.Lock()
        return lock

    def remember(self, value: Object) -> Object:
        """What the server has just answered; an answer older than the known one changes nothing."""
        if self.newer_than(value) is None:
            self.replace(value)
        return value

    def replace(self, value: Object) -> Object:
        """What the server holds now, whatever it answered before: it may have been restored from a backup."""
        self._answers.pop(value.name, None)
        self._answers[value.name] = _Answer(self._clock(), value)
        self._forget()
        return value

    def of(self, name: str) -> Object | None:
        """The object of that name as last answered, for a while: a restored server may hold an older one, which is then
        the truth."""
        answer = self._answers.get(name)
        if answer is None or answer.at < self._clock() - KEPT_SECONDS:
            return None
        known: Object = answer.value  # type: ignore[assignment]  # as in newer_than
        return known

    def newer_than(self, value: Versioned) -> Object | None:
        """The same object at a newer version, if one is known."""
        answer = self._answers.get(value.name)
        if answer is None or answer.value.uid != value.uid:
            return None
        newer: Object = answer.value  # type: ignore[assignment]  # one kind in, the same kind out
        return newer if version_of(newer) > version_of(value) else None

    def drop(self, name: str) -> None:
        self._answers.pop(name, None)

    def _forget(self) -> None:
        limit = self._clock() - KEPT_SECONDS
        while self._answers:
            oldest = next(iter(self._answers))
            if len(self._answers) <= MOST_KEPT and self._answers[oldest].at > limit:
                return
            del self._answers[oldest]


def version_of(value: Versioned) -> int:
    """The resourceVersion as a number; 0 if it is not one."""
    return int(value.resource_version) if value.resource_version.isdigit() else 0
