"""The worker's entry point: serve the task queues until it is stopped.

Started by `dovetail worker`. A worker that is stopped finishes what it is doing (evictions above all) within the grace
that it was given, and gives up at once what only waits. After a worker was killed, another retries what acts within
11 s, what waits within 14 s, and what idles within a minute; within seconds where somebody waits for that (see
unanswered.py), and all of it at once where it starts in the killed one's place. The process leaves with
os._exit, because Python 3.11 now and then aborts at interpreter exit with the SDK loaded.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.worker import Interceptor, Worker

from dovetail.activities.identity.cluster_guard import ClusterGuard
from dovetail.activities.shared.every_step.answer_size import AnswerSizeGuard
from dovetail.activities.shared.every_step.ending import EndingWaits
from dovetail.activities.shared.every_step.heartbeats import HeartbeatInterceptor
from dovetail.activities.shared.every_step.step_guard import StepGuard
from dovetail.activities.shared.every_step.step_health import StepHealth
from dovetail.activities.shared.every_step.step_lines import StepLines
from dovetail.activities.shared.every_step.step_notices import StepNotices
from dovetail.activities.shared.looks.flights import NoFlights
from dovetail.answers.record.trend import Trend
from dovetail.answers.serving.duties import count_savings, duties, keep_trend, report_cluster
from dovetail.answers.serving.gate import findings
from dovetail.answers.serving.pages import Known, pages
from dovetail.background.loop_watch import watch_loop
from dovetail.background.notice_queue import NoticeQueue
from dovetail.background.supervised import stop as stop_tasks
from dovetail.background.supervised import supervised
from dovetail.connection.link import Link
from dovetail.connection.owner import check_owner, client_of
from dovetail.connection.presence import TemporalPresence
from dovetail.connection.temporal import connect
from dovetail.messages.workflow_ids import task_queue
from dovetail.settings.settings import Settings
from dovetail.telemetry.log.start import product_version, start_logging
from dovetail.telemetry.metrics.duties import UPKEEP
from dovetail.wiring.world import open_kept_objects, open_world
from dovetail.worker.absence.connecting import until_connected
from dovetail.worker.beside import look_on
from dovetail.worker.elsewhere import Elsewhere
from dovetail.worker.endpoints import endpoints_of
from dovetail.worker.fitness import keep_publishing
from dovetail.worker.garbage import leave_alone_what_stands, look_rarely
from dovetail.worker.otlp.observing import Observed, observed_by
from dovetail.worker.predecessors import end_lost_steps
from dovetail.worker.sandbox import runner
from dovetail.worker.sdk_metrics import counting_runtime
from dovetail.worker.self_watch import SelfWatch
from dovetail.worker.singletons import Refused, Singletons
from dovetail.worker.start_report import start_report
from dovetail.worker.steps import Step, Wiring, stand_in_of, times_of
from dovetail.worker.unanswered import unanswered_of
from dovetail.worker.versions import deployment_of
from dovetail.worker.way_back import changes_begun
from dovetail.workflows.caretaker import Caretaker
from dovetail.workflows.cluster_identity import ClusterIdentity
from dovetail.workflows.disrupt_nodes import DisruptNodes
from dovetail.workflows.gate import Gate
from dovetail.workflows.heartbeat_profile import HeartbeatProfile
from dovetail.workflows.interruptions import AnswerInterruption, Interruptions
from dovetail.workflows.launch_node import LaunchNode
from dovetail.workflows.release_node import ReleaseNode
from dovetail.workflows.scheduler import Scheduler
from dovetail.workflows.task_size import TaskSizeGuard
from dovetail.workflows.terminate_node import TerminateNode

if TYPE_CHECKING:
    from dovetail.answers.replay.recorder import FlightRecorder

_log = logging.getLogger(__name__)

WORKFLOWS = [
    Scheduler,
    Caretaker,
    LaunchNode,
    DisruptNodes,
    TerminateNode,
    ReleaseNode,
    Interruptions,
    AnswerInterruption,
    Gate,
]

# What a step may take to finish once the worker is to stop. Waits have nothing to finish but an eviction that is under
# way: another worker takes them at once. What only looks ends by itself: activities/shared/every_step/ending.py.
GRACE = {"control": 20.0, "waits": 2.0, "watches": 1.0, "plan": 1.0, "cloud": 20.0}
FLUSH_SECONDS = 5.0  # for answers that are on their way when the grace is over

# A workflow whose worker was killed is taken up by another after this; its own worker answers within milliseconds.
STICKY = timedelta(seconds=2)

# How many steps of each queue run at once. A wait costs memory only, and hundreds of them must not stop the rest. Four
# loops plan; the other slots are for waits that were called off and have not heard of it yet.
SLOTS = {"control": 200, "waits": 5000, "watches": 5000, "plan": 8, "cloud": 100}

# Workflows kept in memory, 90 KB each: a thousand that leave, their disruptions, and the singletons among them.
WORKFLOWS_KEPT = 3000


def queue_worker(
    client: Client, settings: Settings, queue: str, activities: Sequence[Step], interceptors: Sequence[Interceptor]
) -> Worker:
    """The worker of one task queue; the workflows are served on `control`."""
    return Worker(
        client,
        task_queue=task_queue(settings.cluster, queue),
        workflows=WORKFLOWS if queue == "control" else [],
        activities=list(activities),
        workflow_runner=runner(),
        patch_activation_callback=changes_begun(keep_way_back=settings.keep_way_back),
        interceptors=interceptors,
        max_concurrent_activities=SLOTS[queue],
        max_cached_workflows=WORKFLOWS_KEPT,
        sticky_queue_schedule_to_start_timeout=STICKY,
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        graceful_shutdown_timeout=timedelta(seconds=GRACE[queue]),
        deployment_config=deployment_of(settings),
    )


async def serve(
    settings: Settings,
    stop: asyncio.Event,
    observed: Observed | None = None,
) -> None:
    """Open the world, serve until `stop` as often as Temporal lets us, shut down."""
    if settings.beside_karpenter:
        await look_on(settings, stop)
        return
    world = await open_world(settings)
    refused: Refused = asyncio.get_running_loop().create_future()
    notices = NoticeQueue(world.notices)
    world = replace(world, notices=notices)
    presence, steps = TemporalPresence(settings.cluster), StepHealth()
    speaks = partial(steps.works_on, UPKEEP)
    flights = flight_recorder(settings)
    wiring = Wiring(
        settings=settings,
        world=world,
        now=world.clock.now,
        client=presence.connected,
        is_away=lambda: presence.is_away,
        observed=observed or Observed(),
        flights=flights or NoFlights(),
        findings=findings(settings, world, presence),
        times=times_of(steps, presence),
    )
    stand_in = stand_in_of(wiring, presence, steps) if "control" in settings.roles else None
    watch = SelfWatch(view=world.view, why_unfit=world.why_unfit, steps=steps, presence=presence, stand_in=stand_in)
    past = Trend()
    known = Known(fails=watch.failures, past=past)
    endpoints = endpoints_of(settings, wiring, watch, pages(settings, world, presence, known))
    try:
        for endpoint in endpoints:
            await endpoint.start()
        await world.ready()
        leave_alone_what_stands()
        background = [
            supervised("fitness", partial(keep_publishing, world)),
            supervised("presence of Temporal", presence.watch),
            *[supervised(name, work) for name, work in duties(settings, presence).items()],
            supervised("what was saved", partial(count_savings, settings, world, presence, speaks, wiring.last_day)),
            supervised("trend", partial(keep_trend, settings, world, presence, past)),
            supervised("report", partial(report_cluster, settings, world, presence, watch.failures, speaks)),
        ]
        if stand_in is not None:
            background.append(supervised("stand-in for Temporal", stand_in.run))
        connecting = partial(connect_as, settings, world.cluster_uid)
        try:
            while not refused.done() and (client := await until_connected(connecting, presence, stop)) is not None:
                await serve_tasks(client, wiring, watch, stop, refused)
        finally:
            await stop_tasks(*background)
    finally:
        await notices.close()
        if flights is not None:
            await flights.close()
        for endpoint in endpoints:
            await endpoint.stop()
        await world.close()
    if refused.done():
        raise refused.result()


def flight_recorder(settings: Settings) -> "FlightRecorder | None":
    """What keeps the inputs of decisions, where a setting says where."""
    objects = open_kept_objects(settings, settings.flights)
    if objects is None:
        return None
    from dovetail.answers.replay.recorder import FlightRecorder, FlightStore  # its adapters take a while to make

    return FlightRecorder(FlightStore(objects, settings.cluster), settings)


async def connect_as(settings: Settings, cluster_uid: str) -> Client:
    """A client that says in all that it starts of which cluster it is; OtherCluster where the name is another's."""
    client = await connect(settings)
    await check_owner(client, settings.cluster, cluster_uid)
    return client_of(client, cluster_uid)


async def serve_tasks(client: Client, wiring: Wiring, watch: SelfWatch, stop: asyncio.Event, refused: Refused) -> None:
    """Serve the task queues until `stop`, until Temporal refuses this worker for good, or until the cluster's name is
    found to be another's."""
    settings, world, presence = wiring.settings, wiring.world, watch.presence
    link = Link(client, settings)
    beats = HeartbeatInterceptor(watch.steps, StepNotices(world.notices, world.view))
    of_steps, of_workflows = wiring.observed.interceptors(world.clock.now, wiring.times.since)
    guards = [
        StepLines(),
        ClusterGuard(settings.cluster, world.cluster_uid),
        *of_steps,
        beats,
        EndingWaits(),
        StepGuard(world.why_unfit),
        AnswerSizeGuard(),
    ]
    interceptors = [*guards, HeartbeatProfile(settings.heartbeats), ClusterIdentity(), *of_workflows, TaskSizeGuard()]
    queues = wiring.activities(settings.roles)
    workers = [queue_worker(client, settings, queue, steps, interceptors) for queue, steps in queues.items()]
    await end_lost_steps(client, settings.cluster, world.view, settings.pod)
    running = [asyncio.create_task(worker.run()) for worker in workers]
    watch.polls_with(workers)
    link.add_follower(partial(_use, workers, presence))
    singletons = Singletons(link, wiring, presence)
    background = [
        supervised("singletons", partial(singletons.watch, refused)),
        supervised("link to Temporal", link.keep_fresh),
        supervised(
            "steps elsewhere",
            Elsewhere(steps=watch.steps, client=link.current, silent=lambda: presence.is_away).watch,
        ),
    ]
    if "plan" in settings.roles:
        unanswered = unanswered_of(wiring, link.current, presence, watch.steps.runs)
        background.append(supervised("waits of others", unanswered.watch))
    print(f"dovetail {product_version()}: serving cluster {settings.cluster}", flush=True)
    await _until_stopped(stop, refused, running)
    await stop_tasks(*background)
    await _shut_down(workers, running)
    ended = [task for task in running if task.done() and not task.cancelled()]
    failed = [error for task in ended if (error := task.exception()) is not None]
    if failed and not stop.is_set() and await presence.look():
        raise failed[0]  # Temporal is there, so it is this worker that cannot go on
    for error in failed:
        _log.warning("a worker has ended: %s", error)


def _use(workers: Sequence[Worker], presence: TemporalPresence, client: Client) -> None:
    """Everything that speaks with Temporal speaks through this client from now on."""
    for worker in workers:
        worker.client = client
    presence.use(client)


async def _until_stopped(stop: asyncio.Event, refused: Refused, running: Sequence[asyncio.Task[None]]) -> None:
    """Until the process is to stop, must not serve this cluster, or a worker has ended by itself."""
    stopped = asyncio.create_task(stop.wait())
    ends: list[asyncio.Future[Any]] = [stopped, refused, *running]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()


async def _shut_down(workers: Sequence[Worker], running: Sequence[asyncio.Task[None]]) -> None:
    """Each within its grace, and no longer: while Temporal is away nobody takes what a worker still has to say."""
    ending = [asyncio.create_task(worker.shutdown()) for worker in workers]
    await asyncio.wait([*ending, *running], timeout=max(GRACE.values()) + FLUSH_SECONDS)
    left = [task for task in (*ending, *running) if not task.done()]
    if left:
        _log.warning("the worker exits with %d answers that Temporal did not accept", len(left))
        await stop_tasks(*left)


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
