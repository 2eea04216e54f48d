"""The worker's entry point: open the world, serve until it is stopped, close everything.

Started by `dovetail worker`. The process exits with os._exit, because Python 3.11 sometimes aborts at interpreter exit
with the SDK loaded.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from temporalio.client import Client
from temporalio.runtime import Runtime

from dovetail.activities.shared.every_step.step_health import StepHealth
from dovetail.activities.shared.looks.flights import NoFlights
from dovetail.answers.record.trend import Trend
from dovetail.answers.serving.duties import count_savings, duties, keep_trend, report_cluster
from dovetail.answers.serving.gate import findings
from dovetail.answers.serving.pages import Known, pages
from dovetail.background.loop_watch import watch_loop
from dovetail.background.notice_queue import NoticeQueue
from dovetail.background.supervised import stop as stop_tasks
from dovetail.background.supervised import supervised
from dovetail.connection.owner import check_owner, client_of
from dovetail.connection.presence import TemporalPresence
from dovetail.connection.temporal import connect
from dovetail.settings.settings import Settings
from dovetail.telemetry.log.start import start_logging
from dovetail.telemetry.metrics.duties import UPKEEP
from dovetail.wiring.world import open_kept_objects
from dovetail.worker.absence.connecting import until_connected
from dovetail.worker.absence.opening import until_opened, until_ready
from dovetail.worker.beside import look_on
from dovetail.worker.endpoints import open_endpoints
from dovetail.worker.fitness import keep_publishing
from dovetail.worker.garbage import leave_alone_what_stands, look_rarely
from dovetail.worker.otlp.observing import Observed, observed_by
from dovetail.worker.sdk_metrics import counting_runtime
from dovetail.worker.self_watch import SelfWatch
from dovetail.worker.singletons import Refused
from dovetail.worker.start_report import start_report
from dovetail.worker.steps import Wiring, stand_in_of, times_of
from dovetail.worker.task_queues import serve_tasks

if TYPE_CHECKING:
    from dovetail.answers.replay.recorder import FlightRecorder

_log = logging.getLogger(__name__)


async def serve(settings: Settings, stop: asyncio.Event, observed: Observed | None = None) -> None:
    """Open the world, serve until `stop` for as long as Temporal accepts this worker, shut down."""
    if settings.beside_karpenter:
        await look_on(settings, stop)
        return
    world = await until_opened(settings, stop)
    if world is None:
        return
    notices = NoticeQueue(world.notices)
    world = replace(world, notices=notices)
    presence, steps, flights = TemporalPresence(settings.cluster), StepHealth(), flight_recorder(settings)
    wiring = Wiring(
        settings=settings,
        world=world,
        client=presence.connected,
        is_away=lambda: presence.is_away,
        observed=observed or Observed(),
        flights=flights or NoFlights(),
        findings=findings(settings, world, presence),
        times=times_of(steps, presence),
    )
    stand_in = stand_in_of(wiring, presence, steps) if "control" in settings.roles else None
    watch = SelfWatch(view=world.view, why_unfit=world.why_unfit, steps=steps, presence=presence, stand_in=stand_in)
    known = Known(fails=watch.failures, past=Trend())
    endpoints = open_endpoints(settings, wiring, watch, pages(settings, world, presence, known))
    async with AsyncExitStack() as closing:  # the last is closed first
        closing.push_async_callback(world.close)
        for endpoint in endpoints:
            closing.push_async_callback(endpoint.stop)
        if flights is not None:
            closing.push_async_callback(flights.close)
        closing.push_async_callback(notices.close)
        for endpoint in endpoints:
            await endpoint.start()
        if not await until_ready(world, settings, stop):
            return
        leave_alone_what_stands()
        background = supervised_work(wiring, watch, known.past)
        closing.push_async_callback(partial(stop_tasks, *background))
        await serve_connections(wiring, watch, stop)


def supervised_work(wiring: Wiring, watch: SelfWatch, past: Trend) -> list[asyncio.Task[None]]:
    """Start what runs beside the steps for as long as this worker lives, whether Temporal answers or not."""
    settings, world, presence = wiring.settings, wiring.world, watch.presence
    speaks = partial(watch.steps.works_on, UPKEEP)
    work: dict[str, Callable[[], Awaitable[None]]] = {
        "fitness": partial(keep_publishing, world),
        "presence of Temporal": presence.watch,
        **duties(settings, presence),
        "what was saved": partial(count_savings, settings, world, presence, speaks, wiring.last_day),
        "trend": partial(keep_trend, settings, world, presence, past),
        "report": partial(report_cluster, settings, world, presence, watch.failures, speaks),
    }
    if world.prove_moves is not None:
        work["proof of the policy of moves"] = world.prove_moves
    if watch.stand_in is not None:
        work["stand-in for Temporal"] = watch.stand_in.run
    return [supervised(name, each) for name, each in work.items()]


async def serve_connections(wiring: Wiring, watch: SelfWatch, stop: asyncio.Event) -> None:
    """Connect and serve until `stop`, again after each end; raises Temporal's refusal of this worker."""
    refused: Refused = asyncio.get_running_loop().create_future()
    connecting = partial(connect_as, wiring.settings, wiring.world.cluster_uid)
    while not refused.done() and (client := await until_connected(connecting, watch.presence, stop)) is not None:
        await serve_tasks(client, wiring, watch, stop, refused)
    if refused.done():
        raise refused.result()


def flight_recorder(settings: Settings) -> "FlightRecorder | None":
    """The recorder of decisions' inputs, if a setting says where to."""
    objects = open_kept_objects(settings, settings.flights)
    if objects is None:
        return None
    from dovetail.answers.replay.recorder import FlightRecorder, FlightStore  # its adapters take a while to make

    return FlightRecorder(FlightStore(objects, settings.cluster), settings)


async def connect_as(settings: Settings, cluster_uid: str) -> Client:
    """A client whose workflows carry this cluster's UID; OtherCluster if the cluster's name belongs to another one."""
    client = await connect(settings)
    await check_owner(client, settings.cluster, cluster_uid)
    return client_of(client, cluster_uid)


async def run_worker(settings: Settings, source: Mapping[str, str]) -> None:
    """Serve until SIGTERM or SIGINT. `source`: where the settings were read from."""
    start_logging(settings.log_level, settings.log_format)
    if settings.cluster:  # without a name nothing starts, and that alone is said
        for level, text in start_report(settings, source):
            _log.log(level, "%s", text)
    if settings.metrics_port:
        Runtime.set_default(counting_runtime())
    look_rarely()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    observed = observed_by(settings)
    watching = supervised("watch over the event loop", watch_loop)
    try:
        await serve(settings, stop, observed)
    finally:
        await stop_tasks(watching)
        await asyncio.to_thread(observed.close)
    sys.stdout.flush()
