"""The checks of `dovetail doctor` on Temporal: attributes, retention, singletons, workers.

Everything is asked of the server directly; nothing is taken from visibility lists. A workflow task that fails again and
again is looked for by name: such a workflow counts as running and does nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from dovetail.cli.doctor.findings import Check, failed, fine, skipped, warned
from dovetail.cli.doctor.singletons import LifeSigns, life_signs, singleton_check
from dovetail.cli.explain.sources import ANSWER_SECONDS
from dovetail.cli.wording import duration_text, plural
from dovetail.messages.states import SchedulerState
from dovetail.messages.workflow_ids import caretaker_id, interruptions_id, scheduler_id, task_queue
from dovetail.worker.temporal import missing_search_attributes

RETENTION_DAYS: Final = 30
DAY: Final = 86400
QUEUES: Final = ("control", "waits", "watches", "cloud", "plan")
POLLED_SECONDS: Final = 90.0  # a poll lasts a minute at most

TYPE_ACTIVITY: Final = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
TYPE_WORKFLOW: Final = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW


async def temporal_checks(client: Client, cluster: str, *, reads_queue: bool = False) -> tuple[Check, ...]:
    """All of them. `reads_queue`: workers with these settings read the cloud's queue of warnings."""
    signs = asyncio.ensure_future(life_signs(client, (scheduler_id(cluster), caretaker_id(cluster))))
    checks: tuple[tuple[str, Callable[[], Awaitable[Check]]], ...] = (
        ("search attributes", lambda: _attributes(client)),
        ("retention", lambda: _retention(client)),
        ("Scheduler", lambda: singleton_check(client, "Scheduler", scheduler_id(cluster))),
        ("Caretaker", lambda: singleton_check(client, "Caretaker", caretaker_id(cluster))),
        (
            "Interruptions",
            lambda: singleton_check(client, "Interruptions", interruptions_id(cluster), wanted=reads_queue),
        ),
        *((f"workers on {queue}", lambda q=queue: _workers(client, cluster, q, signs)) for queue in QUEUES),
        ("planning", lambda: _planning(client, cluster)),
    )
    return tuple(await asyncio.gather(*[_made(name, check) for name, check in checks]))


async def _made(name: str, check: Callable[[], Awaitable[Check]]) -> Check:
    try:
        return await check()
    except RPCError as error:
        return failed(
            name, f"the Temporal server refuses to answer: {error.message}", "see its log and our rights there"
        )


async def _attributes(client: Client) -> Check:
    missing = await missing_search_attributes(client)
    if not missing:
        return fine("search attributes", "all there")
    commands = "; ".join(f"temporal operator search-attribute create --name {n} --type Keyword" for n in missing)
    return failed(
        "search attributes", f"missing: {', '.join(missing)}", f"start a worker, which adds them, or: {commands}"
    )


async def _retention(client: Client) -> Check:
    request = DescribeNamespaceRequest(namespace=client.namespace)
    answer = await client.workflow_service.describe_namespace(request)
    kept: Duration = answer.config.workflow_execution_retention_ttl
    found = f"closed workflows are kept for {duration_text(kept.ToSeconds())}"
    if kept.ToSeconds() >= RETENTION_DAYS * DAY:
        return fine("retention", found)
    command = f"temporal operator namespace update --retention {RETENTION_DAYS}d --namespace {client.namespace}"
    return warned("retention", f"{found}: what happened before is lost", command)


async def _workers(client: Client, cluster: str, queue: str, signs: Awaitable[LifeSigns]) -> Check:
    """Who polls for steps; on `control`, who polls for workflows as well. A poll may be the last of a dead worker."""
    name = f"workers on {queue}"
    kinds = (TYPE_ACTIVITY, TYPE_WORKFLOW) if queue == "control" else (TYPE_ACTIVITY,)
    pollers = [await _pollers(client, task_queue(cluster, queue), kind) for kind in kinds]
    if all(pollers):
        dead = _why_dead(queue, await signs)
        if dead:
            found = f"{shown_workers(pollers[0])} polled within {POLLED_SECONDS:.0f} s, but {dead}"
            return failed(name, found, "see its log, and whether it still runs; start a worker")
        return fine(name, shown_workers(pollers[0]))
    role = "plan" if queue == "plan" else "control"
    missing = "steps" if not pollers[0] else "workflows"
    found = f"no worker polls {task_queue(cluster, queue)} for {missing}"
    return failed(name, found, f"start a worker with the role {role} (dovetail worker --roles {role})")


def _why_dead(queue: str, signs: LifeSigns) -> str:
    """Why those that polled have probably died since; empty where there are signs of life, or none to be expected."""
    if queue == "plan":
        return f"nobody works on {signs.silent}" if signs.silent else ""
    return "none answers a question" if signs.answers is False else ""


async def _pollers(client: Client, queue: str, kind: "TaskQueueType.ValueType") -> list[str]:
    """Those that have polled a short time ago."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
    )
    answer = await client.workflow_service.describe_task_queue(request)
    since = time.time() - POLLED_SECONDS
    return sorted({p.identity for p in answer.pollers if p.last_access_time.ToSeconds() >= since})


def shown_workers(pollers: list[str]) -> str:
    """How many, and the first."""
    return f"{plural(len(pollers), 'worker')}: {', '.join(pollers[:3])}"


async def _planning(client: Client, cluster: str) -> Check:
    """Whether the Scheduler begins anything new."""
    handle = client.get_workflow_handle(scheduler_id(cluster))
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            state = await handle.query("status", result_type=SchedulerState)
    except (TimeoutError, RPCError):
        return skipped("planning", "the Scheduler does not answer; see the checks above")
    if state.paused:
        return warned("planning", "paused: no plan is carried out", f"dovetail resume --cluster {cluster}")
    held = f", {plural(len(state.held), 'plan')} waiting for a second look" if state.held else ""
    return fine("planning", f"goes on{held}")
