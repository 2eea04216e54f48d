"""The record beyond Temporal's retention: hour by hour, copied once the hour is over.

The content of an hour's object follows from Temporal alone: the entries of all workflows that ended in it. So any
worker may write it, two may write it at once, and a killed one loses nothing: the next look finds the hour missing and
writes it, as long as Temporal has it. An hour is written a second time only where a newer version reads the same
histories otherwise. Reading joins both: kept hours from here, everything else from Temporal.
"""

import asyncio
import gzip
import logging
import re
import time
import zlib
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from dovetail.answers.record.entries import (
    MOST,
    Entries,
    Entry,
    Period,
    moment_text,
    read_matching,
)
from dovetail.answers.record.lives import joined
from dovetail.background.garbage import uncollected
from dovetail.messages.plans import Share
from dovetail.ports.kept_objects import KeptObjects
from dovetail.settings.settings import Settings
from dovetail.wiring.world import open_kept_objects

FORMAT: Final = "dovetail-record/1"
# Of histories: what was made of them by a lower number is made anew. 1 took holds for the instance's end, 2 gave a move
# to one NodePool whose nodes were of several, 3 took a reboot for the departure of no node.
READING: Final = 4
HOUR: Final = 3600
SETTLE_SECONDS: Final = 600.0  # after the end of an hour, until the visibility list has all of it
LONGEST_BACK: Final = 90 * 86400.0  # how far back missing hours are looked for
SHORT_BACK: Final = 3 * 86400.0  # if Temporal does not say how long it keeps
MOST_AT_ONCE: Final = 20_000  # workflows; of a day that has more each hour is read by itself
_GZIP: Final = zlib.MAX_WBITS | 16  # of one object in one piece, which gzip's own reader takes apart
_HOUR: Final = re.compile(r"(\d{4}-\d\d-\d\d)/(\d\d)\.json\.gz\Z")  # the end of its object's name
_RUNNING: Final = "ExecutionStatus = 'Running'"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Archive:
    objects: KeptObjects
    cluster: str
    _current: set[int] = field(default_factory=set, compare=False)  # hours that need not be looked at again

    async def hours(self) -> frozenset[int]:
        """The kept hours, each as the second at which it begins."""
        found = [_hour_in(name) for name in await self.objects.names(self._prefix)]
        return frozenset(hour for hour in found if hour is not None)

    async def put(self, hour: int, entries: Iterable[Entry], forgotten: int = 0) -> None:
        """Everything that ended within that hour."""
        kept = sorted(entries, key=lambda entry: (entry.workflow, entry.run))
        body = {
            "format": FORMAT,
            "cluster": self.cluster,
            "hour": moment_text(hour),
            "reading": READING,
            "entries": [_raw(entry) for entry in kept],
            "forgotten": forgotten,
        }
        await self.objects.put(self._name(hour), gzip.compress(orjson.dumps(body), mtime=hour))

    async def read(self, hours: Iterable[int]) -> Entries:
        """What ended within these hours; an unreadable hour counts as missing histories."""
        found = await self.objects.get_all([self._name(hour) for hour in sorted(hours)])
        with uncollected():  # of months of a record nothing is garbage, and each look through it takes as long
            bodies = [_body(data) for data in found if data is not None]
            entries = tuple(_entry(raw) for body in bodies for raw in body["entries"])
        return Entries(entries=entries, forgotten=sum(int(body["forgotten"]) for body in bodies))

    async def outdated(self, hours: Iterable[int]) -> dict[int, Entries]:
        """What an older version made of these hours."""
        looked = [hour for hour in hours if hour not in self._current]
        found = await self.objects.get_all([self._name(hour) for hour in looked])
        bodies = {hour: _body(data) for hour, data in zip(looked, found, strict=True) if data is not None}
        old = [hour for hour, body in bodies.items() if body.get("reading", 1) < READING]
        self._current.update(set(looked) - set(old))
        return {hour: await self.read([hour]) for hour in old}

    @property
    def _prefix(self) -> str:
        return f"{self.cluster}/record/v1/"

    def _name(self, hour: int) -> str:
        return f"{self._prefix}{datetime.fromtimestamp(hour, UTC):%Y-%m-%d/%H}.json.gz"


async def keep_up(client: Client, archive: Archive, now: float) -> int:
    """Write the missing hours, oldest first, and anew what an older version made of histories that Temporal still has;
    returns how many."""
    kept = await archive.hours()
    last = int((now - SETTLE_SECONDS) // HOUR) * HOUR  # this hour is not over, or not settled
    first = int((now - min(await _reach(client), LONGEST_BACK)) // HOUR + 1) * HOUR
    known = await archive.outdated(hour for hour in range(first, last, HOUR) if hour in kept)
    wanted = [hour for hour in range(first, last, HOUR) if hour not in kept or hour in known]
    return sum([await _keep(client, archive, day, known) for day in _by_day(wanted)])


async def _keep(client: Client, archive: Archive, hours: list[int], known: Mapping[int, Entries]) -> int:
    """Write hours of one day; returns how many. `known`: what is kept of them, of which Temporal may have forgotten a
    part."""
    since, until = moment_text(hours[0]), moment_text(hours[-1] + HOUR)
    within = f"CloseTime >= '{since}' AND CloseTime < '{until}'"
    found = await read_matching(client, archive.cluster, within, MOST_AT_ONCE)
    if found.cut and len(hours) > 1:
        return sum([await _keep(client, archive, [hour], known) for hour in hours])
    if found.cut:
        _log.error("the record of %s to %s was not saved: it has more than %d workflows", since, until, MOST_AT_ONCE)
        return 0
    by_hour = {hour: {(e.workflow, e.run): e for e in known[hour].entries} if hour in known else {} for hour in hours}
    for entry in found.entries:
        hour = int((entry.ended or 0.0) // HOUR) * HOUR
        if hour in by_hour:
            by_hour[hour][entry.workflow, entry.run] = entry
    for number, (hour, entries) in enumerate(sorted(by_hour.items())):
        forgotten = known[hour].forgotten if hour in known else 0 if number else found.forgotten
        await archive.put(hour, entries.values(), forgotten)
    return len(hours)


async def read_whole(client: Client, archive: Archive, period: Period, most: int = MOST) -> Entries:
    """Everything of that period: kept hours from the archive, the rest from Temporal."""
    first = int(period.since // HOUR) * HOUR
    hours = await archive.hours()
    kept = sorted(hour for hour in hours if hour >= first)
    open_from = _first_gap(hours, first)
    beyond = f"CloseTime >= '{moment_text(open_from)}'"
    missing, old, running, ended = await asyncio.gather(
        _missing(client, hours, open_from, period),
        archive.read(kept),
        read_matching(client, archive.cluster, f"{period.query} AND {_RUNNING}", most),
        read_matching(client, archive.cluster, f"{period.query} AND {beyond}", most),
    )
    found: dict[tuple[str, str], Entry] = {}
    for entry in (*old.entries, *running.entries, *ended.entries):
        if period.has(entry) or (period.ends and entry.kind == "termination"):
            found[entry.workflow, entry.run] = entry
    whole = Entries(
        entries=tuple(found.values()),
        cut=running.cut or ended.cut,
        forgotten=old.forgotten + running.forgotten + ended.forgotten,
        missing_hours=missing,
    )
    return _in_order(whole, period)


async def read_entries(client: Client, cluster: str, period: Period, most: int = MOST) -> Entries:
    """Everything of that period, of at most `most` workflows."""
    return _in_order(await read_matching(client, cluster, period.query, most), period)


def _in_order(found: Entries, period: Period) -> Entries:
    with uncollected():
        entries = joined(found.entries)
    began = tuple(entry for entry in entries if period.has(entry))
    return replace(found, entries=began, ends=tuple(entry for entry in entries if not period.has(entry)))


@asynccontextmanager
async def kept_objects(settings: Settings) -> AsyncIterator[KeptObjects | None]:
    """Where the record is kept, open for as long as the block lasts; None if no record is kept."""
    objects = open_kept_objects(settings, settings.record)
    try:
        yield objects
    finally:
        if objects is not None:
            await objects.close()


async def entries_of(
    client: Client, settings: Settings, kept: KeptObjects | None, period: Period, most: int = MOST
) -> Entries:
    """The whole record of that period, from both places."""
    if kept is None:
        return await read_entries(client, settings.cluster, period, most)
    return await read_whole(client, Archive(kept, settings.cluster), period, most)


async def kept_about(archive: Archive, name: str, now: float) -> tuple[Entry, ...]:
    """The kept record of a Node, a NodeClaim, a pod or a workflow."""
    hours = [hour for hour in await archive.hours() if hour >= now - LONGEST_BACK]
    entries = joined((await archive.read(hours)).entries)
    return tuple(
        e for e in entries if name == e.workflow or name in (*e.nodes, *e.claims, *e.replacements, *e.pod_names)
    )


def _first_gap(hours: frozenset[int], first: int) -> int:
    """The moment from which Temporal must be asked. It has nothing from before the first kept hour, because its oldest
    hour was kept first."""
    hour = max(first, min(hours, default=first))
    while hour in hours:
        hour += HOUR
    return hour


async def _missing(client: Client, hours: frozenset[int], open_from: int, period: Period) -> int:
    """How many hours of the period were not kept before Temporal forgot them; none if nothing has been kept yet."""
    now = time.time()
    last = int(min(now - SETTLE_SECONDS, now if period.until is None else period.until) // HOUR) * HOUR
    gaps = [hour for hour in range(open_from, last, HOUR) if hour not in hours] if hours else []
    oldest = now - await _reach(client) if gaps else now
    return sum(hour < oldest for hour in gaps)


async def _reach(client: Client) -> float:
    """How long Temporal keeps what has ended."""
    try:
        request = DescribeNamespaceRequest(namespace=client.namespace)
        found = await client.workflow_service.describe_namespace(request)
    except RPCError as error:
        _log.warning("cannot read how long Temporal keeps ended workflows: %s", error)
        return SHORT_BACK
    seconds = float(found.config.workflow_execution_retention_ttl.ToSeconds())
    return seconds or SHORT_BACK


def _by_day(hours: list[int]) -> list[list[int]]:
    days: dict[int, list[int]] = {}
    for hour in hours:
        days.setdefault(hour // 86400, []).append(hour)
    return [days[day] for day in sorted(days)]


def _hour_in(name: str) -> int | None:
    found = _HOUR.search(name)
    try:
        return int(datetime.fromisoformat(f"{found[1]}T{found[2]}:00+00:00").timestamp()) if found else None
    except ValueError:
        return None


def _body(data: bytes) -> dict[str, Any]:
    try:
        body: dict[str, Any] = orjson.loads(zlib.decompress(data, _GZIP))
        if body["format"] == FORMAT:
            return body
    except (zlib.error, orjson.JSONDecodeError, LookupError, TypeError):
        _log.warning("an hour of the kept record cannot be read")
    return {"entries": [], "forgotten": 1, "reading": READING}  # and is never written over


_DEFAULTS: Final = {name: field.default for name, field in Entry.__dataclass_fields__.items()}
_NAMES: Final = frozenset(_DEFAULTS) - {"saved_dollars"}
_LISTS: Final = frozenset(name for name, default in _DEFAULTS.items() if default == ())


def _raw(entry: Entry) -> dict[str, Any]:
    """The entry without its default values: half of a year's fields say nothing, and each takes time to read."""
    return {name: value for name, value in asdict(entry).items() if name in _NAMES and value != _DEFAULTS[name]}


def _entry(raw: dict[str, Any]) -> Entry:
    """The entry that was written, without fields of a later version. Ninety days have tens of thousands of entries."""
    for name in _LISTS & raw.keys():
        raw[name] = tuple(raw[name])
    if "shares" in raw:
        raw["shares"] = tuple(Share(namespace=each["namespace"], share=each["share"]) for each in raw["shares"])
    if not raw.keys() <= _NAMES:
        raw = {name: value for name, value in raw.items() if name in _NAMES}
    return Entry(**raw)
