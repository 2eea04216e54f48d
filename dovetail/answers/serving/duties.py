"""A worker's side tasks: it keeps the record beyond Temporal's retention if a setting asks for it, counts what the last
day has saved, and reports its cluster's state to those who look at all clusters of the namespace.

All workers keep the record. Each looks every ten minutes, at a moment of its own, for what is missing, and mostly finds
nothing. Only the worker that speaks for the cluster counts and reports.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from zlib import crc32

from temporalio.service import RPCError

from dovetail.background.supervised import Work
from dovetail.connection.identity import own_identity
from dovetail.connection.presence import TemporalPresence
from dovetail.ports.failures import Failure
from dovetail.settings.settings import Settings
from dovetail.telemetry.metrics.ours.last_day import LastDay, PoolDay

if TYPE_CHECKING:
    from dovetail.answers.questions.asking import Source
    from dovetail.answers.record.trend import Trend
    from dovetail.answers.serving.worker_source import WorkerSource
    from dovetail.wiring.world import World

LOOK_SECONDS: Final = 600.0
REPORT_SECONDS: Final = 300.0
FIRST_SECONDS: Final = 60.0  # a worker that starts has other things to do
COUNTED: Final = "24h"  # the period whose dollars `top` shows too
REST_FACTOR: Final = 20.0  # times as long as reading the record of that period took

_log = logging.getLogger(__name__)


def duties(settings: Settings, presence: TemporalPresence) -> Mapping[str, Work]:
    if not settings.record or "control" not in settings.roles:
        return {}
    return {"the kept record": partial(keep_record, settings, presence)}


def first_look(identity: str) -> float:
    """How long after its start a worker first looks: different for each."""
    return FIRST_SECONDS + crc32(identity.encode()) % int(LOOK_SECONDS)


async def keep_record(settings: Settings, presence: TemporalPresence) -> None:
    """Copy each hour once it is over, until cancelled."""
    from dovetail.answers.record.kept import Archive, keep_up
    from dovetail.wiring.world import open_kept_objects

    objects = open_kept_objects(settings, settings.record)
    assert objects is not None
    archive = Archive(objects, settings.cluster)
    await asyncio.sleep(first_look(own_identity(settings.pod)))
    try:
        while True:
            if presence.client is not None and not presence.is_away:
                count = await keep_up(presence.client, archive, time.time())
                if count:
                    _log.info("saved the record of %d hours in %s", count, settings.record)
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        await objects.close()


async def count_savings(
    settings: Settings, world: "World", presence: TemporalPresence, speaks: Callable[[], bool], last_day: LastDay
) -> None:
    """Publish the last day of `dovetail savings` as metrics, until cancelled; only while `speaks`."""
    from dovetail.answers.serving.worker_source import WorkerSource

    source = WorkerSource(settings, world, presence)
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        rest = FIRST_SECONDS  # a worker that starts to speak has not counted yet
        if not presence.is_away and presence.client is not None:
            if speaks():
                began = time.monotonic()
                await say_savings(source, last_day)
                rest = max(LOOK_SECONDS, REST_FACTOR * (time.monotonic() - began))
            else:
                last_day.forget()
        await asyncio.sleep(rest)


async def keep_trend(settings: Settings, world: "World", presence: TemporalPresence, past: "Trend") -> None:
    """Look at what all nodes cost, until cancelled; once the record can be read, add the time before the first look."""
    from dovetail.answers.record.trend import STEP_SECONDS
    from dovetail.answers.serving.worker_source import WorkerSource

    source = WorkerSource(settings, world, presence)
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        await look_at_trend(source, past)
        await asyncio.sleep(STEP_SECONDS)


async def look_at_trend(source: "Source", past: "Trend") -> None:
    fleet = await source.priced()
    if fleet is None:
        return
    await asyncio.to_thread(past.look, fleet)
    if past.is_filled or not source.settings.cluster:
        return
    from dovetail.answers.record.entries import Period
    from dovetail.answers.record.kept import entries_of, kept_objects
    from dovetail.model.values.durations import DAY

    try:
        client, day = await source.temporal(), Period(since=fleet.now - DAY, ends=True)
        async with kept_objects(source.settings) as kept:
            found = await entries_of(client, source.settings, kept, day, source.most_entries)
    except (RPCError, TimeoutError, Failure) as error:
        _log.info("cannot read yet what nodes cost before this worker's start: %s", error)
        return
    await asyncio.to_thread(past.fill, found, fleet)


async def report_cluster(
    settings: Settings,
    world: "World",
    presence: TemporalPresence,
    fails: Callable[[], Sequence[str]],
    speaks: Callable[[], bool],
) -> None:
    """Write the report that `dovetail fleet` reads; only while `speaks`, and not while Temporal is silent. Nothing is
    written while a way back to the former version is kept: a Caretaker that has written its memo does not continue
    under a version that does not know it."""
    from dovetail.answers.serving.worker_source import WorkerSource

    source = WorkerSource(settings, world, presence, fails=fails)
    await asyncio.sleep(FIRST_SECONDS)
    while not settings.keep_way_back:
        began = time.monotonic()
        if speaks() and presence.client is not None and not presence.silent_seconds:
            await try_report(source)
        await asyncio.sleep(max(REPORT_SECONDS, REST_FACTOR * (time.monotonic() - began)))


async def try_report(source: "WorkerSource") -> None:
    """Report once; a failed report is repeated at the next look."""
    from dovetail.answers.serving.reporting import say_report

    try:
        await say_report(source, time.time())
    except (RPCError, TimeoutError, Failure) as error:
        _log.warning("the cluster's report could not be sent: %s", error)


async def say_savings(source: "Source", last_day: LastDay) -> None:
    """Publish the question's own figures: nothing is counted twice."""
    from dovetail.answers.questions.asking import Asked
    from dovetail.answers.questions.table import question
    from dovetail.answers.record.savings import SavingsAnswer

    try:
        found = (await question("savings")(source, Asked(words=(("since", COUNTED),)))).answer
    except (RPCError, TimeoutError, Failure) as error:
        _log.warning("cannot work out what the last day has saved: %s", error)
        return
    assert isinstance(found, SavingsAnswer)
    last_day.keep(
        {each.pool: PoolDay(each.saved, each.bill, each.moves, each.back) for each in found.pools},
        {(each.whose, each.namespace): each.saved for each in found.namespaces},
    )
