"""The checks of `dovetail doctor` on Temporal: attributes, retention, singletons, workers.

Everything is asked of the server directly; only the number of clusters comes from visibility lists. Workflow tasks that
fail again and again are looked for specifically: such a workflow counts as running and does nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from dovetail.answers.doctor.findings import Check, failed, fine, skipped, warned
from dovetail.answers.doctor.identity import NO_CLUSTER, ClusterSeen, identity_check
from dovetail.answers.doctor.singletons import LifeSigns, decoded_or_none, life_signs, singleton_check
from dovetail.answers.wording import duration_text, plural, shown
from dovetail.connection.codec import NamedCodec
from dovetail.connection.configuration import is_encrypted, is_local, link_words
from dovetail.connection.pollers import POLLED_SECONDS, QUEUES, TYPE_ACTIVITY, TYPE_WORKFLOW, pollers_of
from dovetail.connection.search_attributes import missing_search_attributes, registration_lines
from dovetail.connection.temporal import ANSWER_SECONDS
from dovetail.messages.states import SchedulerState
from dovetail.messages.workflow_ids import caretaker_id, interruptions_id, scheduler_id, task_queue
from dovetail.messages.workflow_types import SCHEDULER
from dovetail.model.values.durations import DAY
from dovetail.workflows.converter import UnreadablePayload

RETENTION_DAYS: Final = 30
MOST_CLUSTERS: Final = 200  # more should not fall together
SCHEDULERS: Final = f"WorkflowType = '{SCHEDULER}' AND ExecutionStatus = 'Running'"
CHECK_SECONDS: Final = 15.0  # a server that answered just now answers within this time


async def temporal_checks(client: Client, cluster: str, seen: ClusterSeen = NO_CLUSTER) -> tuple[Check, ...]:
    """Every check of Temporal. `seen`: what they need to know of the cluster."""
    signs = asyncio.ensure_future(life_signs(client, (scheduler_id(cluster), caretaker_id(cluster))))
    checks: tuple[tuple[str, Callable[[], Awaitable[Check]]], ...] = (
        ("search attributes", lambda: _attributes(client)),
        ("payloads", lambda: payloads_check(client, scheduler_id(cluster))),
        ("retention", lambda: _retention(client)),
        ("clusters in the namespace", lambda: clusters_check(client)),
        ("identity", lambda: identity_check(client, cluster, seen.cluster_uid)),
        ("Scheduler", lambda: singleton_check(client, "Scheduler", scheduler_id(cluster))),
        ("Caretaker", lambda: singleton_check(client, "Caretaker", caretaker_id(cluster))),
        (
            "Interruptions",
            lambda: singleton_check(client, "Interruptions", interruptions_id(cluster), wanted=seen.reads_queue),
        ),
        *((f"workers on {queue}", lambda q=queue: _workers(client, cluster, q, signs)) for queue in QUEUES),
        ("planning", lambda: _planning(client, cluster)),
    )
    return tuple(await asyncio.gather(*[_made(name, check) for name, check in checks]))


async def namespace_checks(client: Client, cluster: str, seen: ClusterSeen) -> tuple[Check, ...]:
    """What must hold before anything of ours runs there."""
    checks: tuple[tuple[str, Callable[[], Awaitable[Check]]], ...] = (
        ("search attributes", lambda: _attributes(client)),
        ("retention", lambda: _retention(client)),
        ("identity", lambda: identity_check(client, cluster, seen.cluster_uid)),
    )
    return tuple(await asyncio.gather(*[_made(name, check) for name, check in checks]))


def link_check(client: Client) -> Check:
    """Names the server, and says whether the traffic could be read and changed on the way."""
    config = client.service_client.config
    found = f"{config.target_host}, namespace {client.namespace}, {link_words(client)}"
    if is_encrypted(client) or is_local(client):
        return fine("Temporal server", found)
    return warned("Temporal server", found, "set TEMPORAL_TLS and what goes with it: docs/temporal.md")


async def payloads_check(client: Client, identity: str) -> Check:
    """Whether what the workers store can be read here, and is encoded if we would encode it."""
    codec = client.data_converter.payload_codec
    named = codec.name if isinstance(codec, NamedCodec) else ""
    described = await decoded_or_none(client, identity)
    if described is None:
        return fine("payloads", f"encoded by {named}" if named else "plain: no codec is set")
    history = client.get_workflow_handle(identity, run_id=described.run_id).fetch_history_events(page_size=1)
    first = await anext(aiter(history))
    stored = first.workflow_execution_started_event_attributes.input.payloads
    try:
        await client.data_converter.decode(stored)
    except UnreadablePayload as error:
        return failed("payloads", str(error), "commands and workers need the same codec and keys: docs/temporal.md")
    plain = any(each.metadata.get("encoding") == b"json/plain" for each in stored)
    if named and plain:
        return fine("payloads", f"encoded by {named}; the Scheduler's run began before it was, or without it")
    return fine("payloads", f"encoded by {named}" if named else "plain: no codec is set")


async def _made(name: str, check: Callable[[], Awaitable[Check]]) -> Check:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check()
    except TimeoutError:
        return skipped(name, f"no answer within {CHECK_SECONDS:.0f} s")
    except UnreadablePayload as error:
        return skipped(name, f"it cannot be read here: {error}")
    except RPCError as error:
        return failed(
            name, f"the Temporal server refuses to answer: {error.message}", "see its log and our rights there"
        )


async def _attributes(client: Client) -> Check:
    missing = await missing_search_attributes(client)
    if not missing:
        return fine("search attributes", "all there")
    advice = f"start a worker, which adds them where it may, or:\n{registration_lines(client.namespace, missing)}"
    return failed("search attributes", f"missing: {', '.join(missing)}", advice)


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
    """Who polls for steps, and on `control` also for workflows. A poll may be the last of a dead worker."""
    name = f"workers on {queue}"
    kinds = (TYPE_ACTIVITY, TYPE_WORKFLOW) if queue == "control" else (TYPE_ACTIVITY,)
    polling = [await pollers_of(client, task_queue(cluster, queue), kind) for kind in kinds]
    if all(polling):
        dead = _why_dead(queue, await signs)
        if dead:
            found = f"{shown_workers(polling[0])} polled within {POLLED_SECONDS:.0f} s, but {dead}"
            return failed(name, found, "see its log, and whether it still runs; start a worker")
        return fine(name, f"{shown_workers(polling[0])} polled within {POLLED_SECONDS:.0f} s")
    role = "plan" if queue == "plan" else "control"
    missing = "steps" if not polling[0] else "workflows"
    found = f"no worker polls {task_queue(cluster, queue)} for {missing}"
    return failed(name, found, f"start a worker with the role {role} (dovetail worker --roles {role})")


async def clusters_check(client: Client) -> Check:
    """How many share the namespace, by their Schedulers: a writer to the namespace may disrupt all of them."""
    found = (await client.count_workflows(SCHEDULERS)).count
    name, text = "clusters in the namespace", plural(found, "Scheduler runs", "Schedulers run")
    if found <= MOST_CLUSTERS:
        return fine(name, text)
    return warned(
        name, f"{text}, more than {MOST_CLUSTERS}", "give some of them another namespace: docs/how-it-scales.md"
    )


def _why_dead(queue: str, signs: LifeSigns) -> str:
    """Why the pollers have probably died since; empty if there are signs of life, or none are expected."""
    if queue == "plan":
        return f"nobody works on {signs.silent}" if signs.silent else ""
    return "none answers a question" if signs.answers is False else ""


def shown_workers(pollers: list[str]) -> str:
    return f"{plural(len(pollers), 'worker')}: {shown(pollers, 3)}"


async def _planning(client: Client, cluster: str) -> Check:
    """Whether the Scheduler starts anything new."""
    handle = client.get_workflow_handle(scheduler_id(cluster))
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            state = await handle.query("status", result_type=SchedulerState)
    except (TimeoutError, RPCError, UnreadablePayload):
        return skipped("planning", "the Scheduler does not answer; see the checks above")
    held = f", {plural(len(state.held), 'plan')} waiting for a second look" if state.held else ""
    return fine("planning", f"goes on{held}")
