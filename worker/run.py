"""The worker's entry point: serve the task queues until it is stopped.

Started by `dovetail worker`. A worker that is stopped finishes what it is doing (evictions above all) within the grace
that it was given; after a worker was killed, another retries what acts within 11 s, what waits within 14 s, and what
idles within a minute; where it starts in the killed one's place, all of it at once. The process leaves with
os._exit, because Python 3.11 now and then aborts at interpreter exit with the SDK loaded.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.worker import Interceptor, Worker, WorkerDeploymentConfig, WorkerDeploymentVersion

from dovetail.activities.shared.answer_size import AnswerSizeGuard
from dovetail.activities.shared.heartbeats import HeartbeatInterceptor
from dovetail.activities.shared.step_guard import StepGuard
from dovetail.activities.shared.step_notices import StepNotices
from dovetail.background.notice_queue import NoticeQueue
from dovetail.background.supervised import stop as stop_tasks
from dovetail.background.supervised import supervised
from dovetail.messages.inputs import CaretakerInput
from dovetail.messages.interruptions import InterruptionsInput
from dovetail.messages.plans import nomination_seconds
from dovetail.messages.states import fresh_state
from dovetail.messages.workflow_ids import caretaker_id, interruptions_id, scheduler_id, task_queue
from dovetail.messages.workflow_types import CARETAKER, INTERRUPTIONS, SCHEDULER
from dovetail.model.watched_kinds import CLAIMS
from dovetail.worker.endpoints import endpoints_of
from dovetail.worker.fitness import keep_telling
from dovetail.worker.predecessors import end_lost_steps, take_over
from dovetail.worker.sandbox import runner
from dovetail.worker.self_watch import SelfWatch
from dovetail.worker.settings import Settings
from dovetail.worker.steps import Step, Wiring
from dovetail.worker.telemetry import product_version, start_logging
from dovetail.worker.temporal import connect, register_search_attributes
from dovetail.worker.wiring import open_world
from dovetail.workflows.caretaker import Caretaker
from dovetail.workflows.disrupt_nodes import DisruptNodes
from dovetail.workflows.interruptions import AnswerInterruption, Interruptions
from dovetail.workflows.launch_node import LaunchNode
from dovetail.workflows.release_node import ReleaseNode
from dovetail.workflows.scheduler import Scheduler
from dovetail.workflows.task_size import TaskSizeGuard
from dovetail.workflows.terminate_node import TerminateNode

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
]

# What a step may take to finish once the worker is to stop. Waits have nothing to finish but an eviction that is under
# way: another worker goes on with them at once.
GRACE = {"control": 20.0, "waits": 2.0, "watches": 1.0, "plan": 1.0, "cloud": 20.0}
SINGLETON_SECONDS = 60.0

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
    build = settings.build or product_version()
    return Worker(
        client,
        task_queue=task_queue(settings.cluster, queue),
        workflows=WORKFLOWS if queue == "control" else [],
        activities=list(activities),
        workflow_runner=runner(),
        interceptors=interceptors,
        max_concurrent_activities=SLOTS[queue],
        max_cached_workflows=WORKFLOWS_KEPT,
        sticky_queue_schedule_to_start_timeout=STICKY,
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        graceful_shutdown_timeout=timedelta(seconds=GRACE[queue]),
        deployment_config=WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(settings.deployment or "dovetail", build),
            use_worker_versioning=bool(settings.deployment and settings.build),
        ),
    )


async def keep_singletons(client: Client, settings: Settings, wiring: Wiring) -> None:
    """Start the Scheduler and the Caretaker where they do not run. One that was terminated by hand comes back."""
    cluster = settings.cluster
    state = fresh_state(cluster, wiring.now(), settings.max_history, nomination_seconds(settings.batch_max))
    if not wiring.world.view.snapshot(CLAIMS).claims:
        state = replace(state, quiet_until=0.0)  # no claims: no nominations can have been lost
    history = settings.max_history
    singletons: list[tuple[str, str, object]] = [
        (SCHEDULER, scheduler_id(cluster), state),
        (CARETAKER, caretaker_id(cluster), CaretakerInput(cluster=cluster, max_history=history)),
    ]
    if wiring.world.interruptions is not None:
        reading = InterruptionsInput(cluster=cluster, max_history=history)
        singletons.append((INTERRUPTIONS, interruptions_id(cluster), reading))
    for name, identity, given in singletons:
        await client.start_workflow(
            name,
            given,
            id=identity,
            task_queue=task_queue(cluster, "control"),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            static_summary=f"{name} of {cluster}",
        )


async def watch_singletons(client: Client, settings: Settings, wiring: Wiring) -> None:
    """Every minute, for as long as the worker runs; what a killed predecessor waited in is taken up at once."""
    cluster = settings.cluster
    while True:
        try:
            await take_over(client, [scheduler_id(cluster), caretaker_id(cluster), interruptions_id(cluster)])
            await keep_singletons(client, settings, wiring)
        except Exception as error:
            _log.warning("cannot start the Scheduler and the Caretaker now: %s", error)
        await asyncio.sleep(SINGLETON_SECONDS)


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Connect, serve until `stop`, shut down."""
    client = await connect()
    await register_search_attributes(client)
    world = await open_world(settings)
    notices = NoticeQueue(world.notices)
    world = replace(world, notices=notices)
    wiring = Wiring(settings=settings, world=world, now=world.clock.now)
    watch = SelfWatch(view=world.view, why_unfit=world.why_unfit, client=client)
    endpoints = endpoints_of(settings, world, wiring.times, watch, wiring.faults)
    try:
        for endpoint in endpoints:
            await endpoint.start()
        await world.ready()
        queues = wiring.activities(settings.roles)
        beats = HeartbeatInterceptor(watch.steps, StepNotices(world.notices, world.view))
        interceptors = [beats, StepGuard(world.why_unfit), AnswerSizeGuard(), TaskSizeGuard()]
        workers = [queue_worker(client, settings, queue, steps, interceptors) for queue, steps in queues.items()]
        await end_lost_steps(client, settings.cluster, world.view)
        running = [asyncio.create_task(worker.run()) for worker in workers]
        watch.workers = workers
        telling = supervised("fitness", partial(keep_telling, world))
        singletons = supervised("singletons", partial(watch_singletons, client, settings, wiring))
        print(f"dovetail {product_version()}: serving cluster {settings.cluster}", flush=True)
        await _until_stopped(stop, running)
        await stop_tasks(singletons, telling)
        await asyncio.gather(*[worker.shutdown() for worker in workers])
        await asyncio.gather(*running)
    finally:
        await notices.close()
        for endpoint in endpoints:
            await endpoint.stop()
        await world.close()


async def _until_stopped(stop: asyncio.Event, running: Sequence[asyncio.Task[None]]) -> None:
    """Until the process is to stop, or a worker has ended by itself, which is fatal."""
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait([stopped, *running], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()


async def run_worker(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    start_logging(settings.log_level)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(settings, stop)
    sys.stdout.flush()
