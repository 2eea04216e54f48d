"""Which Event a notice becomes: a new one, one more of an old one, or none (EVT-0).

As in the recorder that Karpenter uses: the same words about the same object increment the Event's count; from the tenth
different message of one reason within ten minutes on they share one Event, "(combined from similar events)"; and one
object gets 25 Events at once and then one in five minutes. Reasons for which each of thousands of pods would get an
Event are rate-limited as a whole (PLC-225). Kept in memory, bounded, and forgotten with the process.
"""

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from dovetail.notices.notice import Notice

SIMILAR: Final = 10  # different messages
SIMILAR_SECONDS: Final = 600.0
COMBINED: Final = "(combined from similar events): "
BURST: Final = 25.0
REFILL_SECONDS: Final = 300.0  # for one more
PACES: Final = {"Nominated": (10.0, 0.2)}  # reason → how many at once, and seconds for one more
_REMEMBERED: Final = 4096  # of each sort, as upstream

Key = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventState:
    """The desired Event. `count` above 1: it exists already, unless the API server has forgotten it."""

    key: Key
    name: str
    message: str
    count: int
    first: float


@dataclass(slots=True, kw_only=True)
class _Similar:
    last: float
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class _Bucket:
    """As many at once, and then one in so many seconds."""

    most: float
    refill: float
    left: float
    at: float

    def takes(self, now: float) -> bool:
        """Whether there is room for one more, which is then taken."""
        self.left = min(self.most, self.left + max(0.0, now - self.at) / self.refill)
        self.at = now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


class _Recent(Generic[T]):
    """The last of many by key."""

    def __init__(self) -> None:
        self._found: OrderedDict[Key, T] = OrderedDict()

    def get(self, key: Key) -> T | None:
        return self._found.get(key)

    def put(self, key: Key, value: T) -> T:
        self._found[key] = value
        self._found.move_to_end(key)
        if len(self._found) > _REMEMBERED:
            self._found.popitem(last=False)
        return value

    def drop(self, key: Key) -> None:
        self._found.pop(key, None)


class Correlator:
    """What one process has published."""

    def __init__(self) -> None:
        self._similar: _Recent[_Similar] = _Recent()
        self._published: _Recent[EventState] = _Recent()
        self._buckets: _Recent[_Bucket] = _Recent()
        self._paces: dict[str, _Bucket] = {}  # by reason

    def correlated(self, notice: Notice, now: float) -> EventState | None:
        """What to write; it then counts as written. None: its object, or its reason as a whole, had too many."""
        if not self._is_within_pace(notice, now):
            return None
        key, message = self._combined(notice, now)
        before = self._published.get(key)
        count, first = (1, now) if before is None else (before.count + 1, before.first)
        name = _new_name(notice) if before is None else before.name
        found = self._published.put(key, EventState(key=key, name=name, message=message, count=count, first=first))
        return found if self._has_room(notice, now) else None

    def renamed(self, notice: Notice, event: EventState) -> EventState:
        """The same as a new Event: the old one is gone, as every Event is after an hour."""
        anew = EventState(
            key=event.key, name=_new_name(notice), message=event.message, count=event.count, first=event.first
        )
        return self._published.put(event.key, anew)

    def failed(self, event: EventState) -> None:
        """It was not written: the next one is a new Event."""
        self._published.drop(event.key)

    def _combined(self, notice: Notice, now: float) -> tuple[Key, str]:
        shared = (*_about(notice), notice.type, notice.reason)
        similar = self._similar.get(shared)
        if similar is None or now - similar.last > SIMILAR_SECONDS:
            similar = _Similar(last=now)
        self._similar.put(shared, similar).last = now
        similar.messages.add(notice.message)
        if len(similar.messages) < SIMILAR:
            return (*shared, notice.message), notice.message
        similar.messages.discard(notice.message)
        return shared, COMBINED + notice.message

    def _has_room(self, notice: Notice, now: float) -> bool:
        """Warnings have a bucket of their own, so that nothing normal uses it up."""
        key = (*_about(notice), notice.type)
        known = self._buckets.get(key) or _Bucket(most=BURST, refill=REFILL_SECONDS, left=BURST, at=now)
        return self._buckets.put(key, known).takes(now)

    def _is_within_pace(self, notice: Notice, now: float) -> bool:
        if notice.reason not in PACES:
            return True
        most, refill = PACES[notice.reason]
        known = self._paces.setdefault(notice.reason, _Bucket(most=most, refill=refill, left=most, at=now))
        return known.takes(now)


def _about(notice: Notice) -> Key:
    return notice.kind, notice.namespace, notice.name, notice.uid


def _new_name(notice: Notice) -> str:
    return f"{notice.name[:200]}.{secrets.token_hex(8)}"
