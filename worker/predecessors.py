"""Takes over at once the waits of a worker that was killed on this host.

Idle waits send heartbeats rarely, to keep an idle cluster cheap. So a killed worker's waits are normally taken over
after a minute, or when a pod shows that nobody answers (unanswered.py). But a process that is started in the place of a
killed one can know that it is gone: its container has the same host name, and either no process with that number runs
there or it is this process, which has not taken a step yet. Then the singletons that wait in the killed one are asked
to look again, and its unfinished steps are failed, so that Temporal retries them at once.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import ResetStickyTaskQueueRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from dovetail.connection.identity import place_of
from dovetail.connection.owner import LastRuns, described_or_none
from dovetail.messages.workflow_ids import caretaker_id, claim_owner_id, is_of, scheduler_id
from dovetail.model.names import INITIALIZED_CONDITION, OWNER
from dovetail.model.objects.watched_kinds import CLAIMS
from dovetail.ports.failures import Failure
from dovetail.ports.view import ClusterView

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED

AT_ONCE: Final = 20
SILENT_SECONDS: Final = 60.0  # of a step in hand, before its worker is looked for among those that ask for work
TAKE_OVER_SECONDS: Final = 5.0
AGAIN: Final = timedelta(milliseconds=100)
LOST: Final = "the worker that had it in hand is gone"

Held = Mapping[str, Sequence[PendingActivityInfo]]  # by workflow

_log = logging.getLogger(__name__)


def is_gone(identity: str, *, serving: bool, pod: str = "") -> bool:
    """Whether the worker of that identity no longer exists. `serving`: this process already takes steps, so an identity
    with its process number is its own. `pod`: our pod's name, where it is not the host name."""
    place = place_of(identity)
    if place is None or place.host != (pod or socket.gethostname()):
        return False
    if place.number == os.getpid():
        return not serving  # the same number in the same place: a container that started again
    try:
        os.kill(place.number, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


_IS_GONE: Final = partial(is_gone, serving=True)


async def take_over(client: Client, singletons: list[str], is_lost: Callable[[str], bool] = _IS_GONE) -> list[str]:
    """Poke the singletons that wait in a lost worker; answers which."""
    found = {}
    for identity in singletons:
        try:
            found[identity] = await described_or_none(client, identity)
        except RPCError as error:
            _log.debug("%s was not looked at: %s", identity, error)
    return await poke_lost(client, steps_in_hand(found), is_lost)


def steps_in_hand(singletons: LastRuns) -> Held:
    """The steps that are under way, by the worker that has them."""
    return {
        identity: [step for step in described.raw_description.pending_activities if step.state == STARTED]
        for identity, described in singletons.items()
        if described is not None
    }


def silent_workers(held: Held, now: float) -> frozenset[str]:
    """The workers that hold a step and have not been heard from for a while."""
    since = now - SILENT_SECONDS
    return frozenset(
        step.last_worker_identity
        for steps in held.values()
        for step in steps
        if max(step.last_heartbeat_time.ToSeconds(), step.last_started_time.ToSeconds()) < since
    )


async def poke_lost(client: Client, held: Held, is_lost: Callable[[str], bool]) -> list[str]:
    """Poke the singletons that wait in a lost worker; answers which."""
    poked = []
    for identity, steps in held.items():
        if any(is_lost(worker) for worker in {step.last_worker_identity for step in steps}):
            try:
                await _unstick(client, identity)
                await client.get_workflow_handle(identity).signal("poke")
            except RPCError as error:
                _log.debug("%s was not poked: %s", identity, error)
            else:
                _log.info("the worker that %s waited in is gone: its waits are taken over", identity)
                poked.append(identity)
    return poked


async def _unstick(client: Client, identity: str) -> None:
    """Let any worker take its next task: Temporal would otherwise keep it for two seconds for the worker that had the
    last one."""
    execution = WorkflowExecution(workflow_id=identity)
    request = ResetStickyTaskQueueRequest(namespace=client.namespace, execution=execution)
    try:
        await client.workflow_service.reset_sticky_task_queue(request)
    except RPCError as error:
        _log.debug("the next task of %s waits for its last worker: %s", identity, error)


async def look_again(client: Client, singletons: list[str]) -> None:
    """Poke all singletons: answers of their steps were lost while Temporal was away, and nobody would notice before
    their heartbeat timeout."""
    for identity in singletons:
        try:
            await client.get_workflow_handle(identity).signal("poke")
        except RPCError as error:
            _log.debug("%s was not poked: %s", identity, error)


async def end_lost_steps(client: Client, cluster: str, view: ClusterView, pod: str = "") -> int:
    """Fail the unfinished steps of a process that is gone, so that they are retried at once and not after their
    heartbeat timeout; answers how many there were.

    Called before this process takes any step, because it may have the process number of the one that is gone.
    """
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(identity: str) -> int:
        async with slots:
            return await _end_lost_steps_of(client, identity, pod)

    try:
        async with asyncio.timeout(TAKE_OVER_SECONDS):
            lost = sum(await asyncio.gather(*[one(identity) for identity in _busy(cluster, view)]))
    except (TimeoutError, Failure) as error:
        _log.info("a predecessor's unfinished steps are left to their heartbeat timeouts: %s", error)
        return 0
    if lost:
        _log.info("retrying %d steps of a worker that is gone", lost)
    return lost


def _busy(cluster: str, view: ClusterView) -> list[str]:
    """The workflows that may have a step under way, as far as the claims show: workflows are never listed."""
    claims = view.snapshot(CLAIMS).claims.values()
    moving = [c for c in claims if c.deleting_since is not None or not c.is_true(INITIALIZED_CONDITION)]
    disruptions = {owner for c in claims if is_of(cluster, owner := c.annotations.get(OWNER, ""))}
    singletons = [scheduler_id(cluster), caretaker_id(cluster)]
    return [*singletons, *sorted(disruptions), *[claim_owner_id(cluster, claim.name) for claim in moving]]


async def _end_lost_steps_of(client: Client, identity: str, pod: str) -> int:
    try:
        described = (await client.get_workflow_handle(identity).describe()).raw_description
        run = described.workflow_execution_info.execution.run_id
        started = [step for step in described.pending_activities if step.state == STARTED]
        lost = [step for step in started if is_gone(step.last_worker_identity, serving=False, pod=pod)]
        for step in lost:
            handle = client.get_async_activity_handle(workflow_id=identity, run_id=run, activity_id=step.activity_id)
            await handle.fail(ApplicationError(LOST, type="WorkerLost", next_retry_delay=AGAIN))
    except RPCError as error:
        _log.debug("cannot describe the steps of %s: %s", identity, error)
        return 0
    return len(lost)
