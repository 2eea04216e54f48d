"""Which offerings AWS has refused, and until when they are not launched (AWS-72 to AWS-74).

A refusal is remembered for three minutes and shared: one ConfigMap, an entry per shortage with its end and one with
its first refusal, so that a restart forgets nothing and every worker plans around it. A subnet that is full for one
capacity type says nothing about the offerings of its zone.
"""

import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple, Protocol

from dovetail.ports.failures import Failure

_log = logging.getLogger(__name__)

SHORTAGE_SECONDS: Final = 180.0
ASKED_AGAIN_AFTER: Final = 45.0  # seconds; then one claim may find out whether it lasts (decision 240)
_REREAD_SECONDS: Final = 3.0  # one small read serves all plans of a burst; what another worker finds may wait
_JUST_WRITTEN_SECONDS: Final = 1.0  # a burst of warnings about one offering is one fact
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+\Z")
_SINCE: Final = "since__"  # before a key: an entry that versions without it take for none of theirs


class ShortFor(NamedTuple):
    """From the first refusal of a shortage until it is asked for again."""

    until: float
    since: float


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Shortage:
    """What is short. Empty parts stand for "any"; `scope` is a placement group or a partition of one (`group_scope`), a
    subnet, or a reservation, for all classes or for one (`class_scope`)."""

    capacity_type: str
    instance_type: str = ""
    zone: str = ""
    scope: str = ""

    @property
    def key(self) -> str:
        """As a ConfigMap key: no part contains two underscores."""
        return "__".join((self.capacity_type, self.instance_type, self.zone, self.scope)) + "__"

    @property
    def since_key(self) -> str:
        """The key of the moment of its first refusal."""
        return _SINCE + self.key


def group_scope(group: str, partition: str = "") -> str:
    """The scope of a placement group, or of one of its partitions."""
    return f"{group}.{partition}" if partition else group


def class_scope(reservation: str, node_class: str) -> str:
    """The scope of a reservation for the launches of one class, by its UID."""
    return f"{reservation}.{node_class}"


def read_key(key: str) -> Shortage | None:
    """The shortage of a key; None if the key is not one of ours."""
    parts = key.split("__")
    if len(parts) != 5 or not _KEY.match(key):
        return None
    return Shortage(capacity_type=parts[0], instance_type=parts[1], zone=parts[2], scope=parts[3])


class ShortageStore(Protocol):
    """Where shortages outlive a process."""

    async def read(self) -> dict[str, float]:
        """Key → moment."""

    async def write(self, changes: dict[str, float | None]) -> None:
        """Set entries, or remove them (None), leaving the others alone."""


class NoStore:
    """Memory only."""

    async def read(self) -> dict[str, float]:
        return {}

    async def write(self, changes: dict[str, float | None]) -> None:
        return None


class Shortages:
    """What is short now. `revision` rises with every change that a catalogue would show."""

    def __init__(self, store: ShortageStore | None, clock: Callable[[], float]) -> None:
        self._store: ShortageStore = store or NoStore()
        self._clock = clock
        self._until: dict[Shortage, float] = {}
        self._since: dict[Shortage, float] = {}
        self._stored: frozenset[str] = frozenset()  # keys that were read last
        self._read_at = float("-inf")
        self._revision = 0
        self._next_end = float("inf")

    @property
    def revision(self) -> int:
        """Also rises when a shortage has run out, or may be tried again."""
        if self._clock() >= self._next_end:
            self._take({}, {})
        return self._revision

    def pools(self, group: str = "", partition: str = "") -> dict[tuple[str, str, str], ShortFor]:
        """Short capacity pools as (capacity type, instance type, zone), type and zone empty if all of it is short;
        those of a placement group count only for launches into it, and those of a partition for it alone (AWS-73)."""
        scopes = {"", group, group_scope(group, partition)}
        found: dict[tuple[str, str, str], ShortFor] = {}
        for short, until in self.known().items():
            if short.scope in scopes:
                pool = (short.capacity_type, short.instance_type, short.zone)
                span = ShortFor(until, self._since[short])
                found[pool] = max(span, found.get(pool, span))
        return found

    def fresh_from(self) -> float:
        """A shortage with a later end may not be tried again yet."""
        return self._clock() + SHORTAGE_SECONDS - ASKED_AGAIN_AFTER

    def subnet_is_short(self, capacity_type: str, subnet: str) -> bool:
        """Whether a launch of this capacity type found the subnet full."""
        return self.holds(Shortage(capacity_type=capacity_type, scope=subnet))

    def holds(self, shortage: Shortage) -> bool:
        """Whether the shortage is known and has not run out."""
        return self._until.get(shortage, 0.0) > self._clock()

    def known(self) -> dict[Shortage, float]:
        """All that have not run out, with their ends."""
        now = self._clock()
        return {shortage: until for shortage, until in self._until.items() if until > now}

    async def remember(self, shortages: Iterable[Shortage], seconds: float = SHORTAGE_SECONDS) -> None:
        """From now on; a repeated refusal extends it. Other workers see it once this returns, unless it was just
        written."""
        now = self._clock()
        until = now + seconds
        marked = {s: until for s in shortages if not 0.0 <= until - self._until.get(s, 0.0) < _JUST_WRITTEN_SECONDS}
        if not marked:
            return
        self._take(marked, dict.fromkeys(marked, now))
        changes = {shortage.key: end for shortage, end in marked.items()}
        changes.update({shortage.since_key: self._since[shortage] for shortage in marked})
        try:
            await self._store.write({**_past(await self._store.read(), now), **changes})
        except Failure as failure:
            _log.warning("shortages are known to this worker only: %s", failure)

    async def reread(self) -> None:
        """Learn what the other workers have found, unless that was just done."""
        if self._clock() - self._read_at < _REREAD_SECONDS:
            return
        self._read_at = self._clock()
        try:
            stored = await self._store.read()
        except Failure as failure:
            _log.warning("shortages of other workers cannot be read: %s", failure)
            return
        gone, self._stored = self._stored - stored.keys(), frozenset(stored)
        for ended in [shortage for shortage in self._until if shortage.key in gone]:  # another worker has bought there
            del self._until[ended]
            self._revision += 1
        now = self._clock()
        found = {shortage: end for key, end in stored.items() if end > now and (shortage := read_key(key)) is not None}
        first = {shortage: stored.get(shortage.since_key, now) for shortage in found}
        self._take({s: end for s, end in found.items() if end > self._until.get(s, 0.0)}, first)

    async def forget(self, sold: Shortage) -> None:
        if self._until.pop(sold, None) is None:
            return
        self._revision += 1
        try:
            await self._store.write({sold.key: None, sold.since_key: None})
        except Failure as failure:
            _log.warning("the end of a shortage is known to this worker only: %s", failure)

    def _take(self, marked: dict[Shortage, float], first: dict[Shortage, float]) -> None:
        """Expired shortages are forgotten; a catalogue shows more of an old shortage than of a new one. `first`: when
        they began, as just learnt."""
        now = self._clock()
        if now >= self._next_end:
            self._revision += 1
        again = now + SHORTAGE_SECONDS - ASKED_AGAIN_AFTER
        for shortage, end in marked.items():
            before = self._until.get(shortage, 0.0)
            if before <= now or before <= again < end:
                self._revision += 1
        known = self.known()
        began = [*first.items(), *((shortage, self._since[shortage]) for shortage in known)]
        held = known.keys() | marked
        self._since = {s: since for s, since in sorted(began, key=itemgetter(1), reverse=True) if s in held}
        self._until = {**known, **marked}
        moments = [
            moment for end in self._until.values() for moment in (end, end - SHORTAGE_SECONDS + ASKED_AGAIN_AFTER)
        ]
        self._next_end = min((moment for moment in moments if moment > now), default=float("inf"))


def _past(stored: dict[str, float], now: float) -> dict[str, float | None]:
    """What has ended is removed, wherever it was found: nobody else would, and a ConfigMap has 1 MiB. Judged by what
    was read just now, as another worker may have found it short again."""
    known = {key: read_key(key.removeprefix(_SINCE)) for key in stored}
    return {key: None for key, each in known.items() if each is not None and stored.get(each.key, 0.0) <= now}
