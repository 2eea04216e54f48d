"""Serves the task queues of Temporal over one connection: workflows and steps.

A worker that stops finishes what it is doing (evictions above all) within the grace of each queue, and gives up at once
what only waits. After a worker was killed, another one retries what acts within 11 s, what waits within 14 s, and what
idles within a minute: within seconds if somebody waits for it (unanswered.py), and at once if the other one is started
in the killed one's place (predecessors.py).
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from temporalio.client import Client
from temporalio.worker import Interceptor, PollerBehaviorAutoscaling, Worker

from dovetail.activities.identity.cluster_guard import ClusterGuard
from dovetail.activities.shared.every_step.answer_size import AnswerSizeGuard
from dovetail.activities.shared.every_step.ending import EndingWaits
from dovetail.activities.shared.every_step.heartbeats import HeartbeatInterceptor
from dovetail.activities.shared.every_step.step_guard import StepGuard
from dovetail.activities.shared.every_step.step_lines import StepLines
from dovetail.activities.shared.every_step.step_notices import StepNotices
from dovetail.background.supervised import stop as stop_tasks
from dovetail.background.supervised import supervised
from dovetail.connection.link import Link
from dovetail.connection.presence import TemporalPresence
from dovetail.messages.workflow_ids import task_queue
from dovetail.settings.settings import Settings
from dovetail.telemetry.log.start import product_version
from dovetail.worker.elsewhere import Elsewhere
from dovetail.worker.predecessors import end_lost_steps
from dovetail.worker.sandbox import runner
from dovetail.worker.self_watch import SelfWatch
from dovetail.worker.singletons import Refused, Singletons
from dovetail.worker.steps import Step, Wiring
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

# Seconds that a step has to finish once the worker stops. Waits have nothing to finish but an eviction that is under
# way: another worker takes them at once. What only looks ends by itself: activities/shared/every_step/ending.py.
GRACE = {"control": 20.0, "waits": 2.0, "watches": 1.0, "plan": 1.0, "cloud": 20.0}
FLUSH_SECONDS = 5.0  # for answers that are being sent when the grace is over

# A workflow whose worker was killed is taken up by another after this; its own worker answers within milliseconds.
STICKY = timedelta(seconds=2)

# How many steps of each queue run at once. A wait costs memory only, and hundreds of them must not stop the rest. Four
# loops plan; the other slots are for cancelled waits that have not noticed it yet.
SLOTS = {"control": 200, "waits": 5000, "watches": 5000, "plan": 8, "cloud": 100}

# How many calls ask for the tasks of a queue: one while nothing comes, more as the server says that tasks wait. Each
# makes a call a minute, and many clusters share a namespace.
POLLERS = PollerBehaviorAutoscaling(minimum=1, maximum=10, initial=1)

# Workflows kept in memory, 90 KB each: those of a thousand leaving nodes, their disruptions, and the singletons.
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
        workflow_task_poller_behavior=POLLERS,
        activity_task_poller_behavior=POLLERS,
        max_cached_workflows=WORKFLOWS_KEPT,
        sticky_queue_schedule_to_start_timeout=STICKY,
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        graceful_shutdown_timeout=timedelta(seconds=GRACE[queue]),
        deployment_config=deployment_of(settings),
    )


async def serve_tasks(client: Client, wiring: Wiring, watch: SelfWatch, stop: asyncio.Event, refused: Refused) -> None:
    """Serve the task queues until `stop`, until Temporal refuses this worker for good, or until the cluster's name
    turns out to be another's."""
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
    """From now on, everything that talks to Temporal uses this client."""
    for worker in workers:
        worker.client = client
    presence.use(client)


async def _until_stopped(stop: asyncio.Event, refused: Refused, running: Sequence[asyncio.Task[None]]) -> None:
    """Until the process is stopped, must not serve this cluster, or one of the workers has ended by itself."""
    stopped = asyncio.create_task(stop.wait())
    ends: list[asyncio.Future[Any]] = [stopped, refused, *running]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()


async def _shut_down(workers: Sequence[Worker], running: Sequence[asyncio.Task[None]]) -> None:
    """Shut each down within its grace, and no longer: while Temporal is away, nobody accepts a worker's last
    answers."""
    ending = [asyncio.create_task(worker.shutdown()) for worker in workers]
    await asyncio.wait([*ending, *running], timeout=max(GRACE.values()) + FLUSH_SECONDS)
    left = [task for task in (*ending, *running) if not task.done()]
    if left:
        _log.warning("the worker exits with %d answers that Temporal did not accept", len(left))
        await stop_tasks(*left)
