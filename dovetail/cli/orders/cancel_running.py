"""`dovetail cancel` with a cluster's name: cancels the running disruption through Temporal."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from dovetail.activities.shared.writes.revisions import revise_claim
from dovetail.answers.failures import CommandFailed
from dovetail.cli.orders.cancelling import CancelOrder, annotate, how_far, say_dropped, too_late
from dovetail.cli.orders.target import Target, uid_of
from dovetail.cli.output import say
from dovetail.connection.configuration import TemporalUnusable
from dovetail.connection.owner import check_owner
from dovetail.connection.temporal import ANSWER_SECONDS, connect
from dovetail.messages.outcomes import DisruptionRecord
from dovetail.messages.states import SchedulerState
from dovetail.messages.workflow_ids import is_of, query_of, scheduler_id
from dovetail.messages.workflow_types import DISRUPT_NODES
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.ports.objects import MetadataChange
from dovetail.settings.settings import Settings
from dovetail.wiring.orders import ClusterObjects

Disruption = WorkflowHandle[object, object]
Find = Callable[[], Awaitable[NodeClaim | None]]

_NOT_ASKED: Final = MetadataChange(annotations=dict.fromkeys(names.REPLACE_ANNOTATIONS))


async def by_message(settings: Settings, objects: ClusterObjects, order: CancelOrder, find: Find) -> None:
    """Ask Temporal, or annotate if it cannot be asked or has nothing to call off yet. `find`: the node's claim."""
    target = Target(cluster=order.cluster, uid=await uid_of(objects))
    try:
        client = await connect(settings)
        await check_owner(client, order.cluster, target.uid)
    except TemporalUnusable as error:
        claim = await find()
        if claim is None or claim.deleting_since is not None:
            raise
        await annotate(objects, order, claim)
        say(f"{order.node}: Temporal cannot be asked ({error}); it is written on NodeClaim {claim.name} instead")
        say(target.words)
        return
    await _asked(client, objects, order, await find())
    say(target.words)


async def _asked(client: Client, objects: ClusterObjects, order: CancelOrder, claim: NodeClaim | None) -> None:
    """Act on what Temporal knows: a running disruption, a held plan, or nothing."""
    handle = await disruption_of(client, order, claim)
    if handle is not None:
        await _no_longer_asked(objects, claim)
        await _call_off(handle, order)
    elif claim is not None and claim.deleting_since is None and names.REPLACE in claim.annotations:
        await annotate(objects, order, claim)
        await say_dropped(objects, order, claim, "its replacement is not asked for any more")
    elif claim is not None and await _is_held(client, order.cluster, claim):
        await annotate(objects, order, claim)
        await say_dropped(objects, order, claim, "the plan that waited for its second look is dropped")
    elif claim is not None and claim.deleting_since is not None:
        raise too_late(order, claim)
    else:
        raise CommandFailed(f"{order.node}: no disruption is under way")


async def _no_longer_asked(objects: ClusterObjects, claim: NodeClaim | None) -> None:
    """First withdraw a request to replace the node, so that it does not begin again after its rest."""
    if claim is not None and names.REPLACE in claim.annotations:
        await revise_claim(objects.claims, claim, lambda _: _NOT_ASKED)


async def _call_off(handle: Disruption, order: CancelOrder) -> None:
    """Ask the running disruption to cancel."""
    node = order.node
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await handle.execute_update("cancel_disruption", args=order.asked, result_type=str)
        say(f"{node}: {answer}; the node is being given back ({handle.id})")
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        message = cause.message if isinstance(cause, ApplicationError) else str(cause)
        raise CommandFailed(f"{node}: not cancelled: {message}; {how_far(node)}") from None
    except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError, RPCError) as error:
        # The SDK turns the cancellation caused by our timeout into an error of its own.
        if isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND:
            raise CommandFailed(f"{node}: its disruption has already ended ({handle.id})") from None
        await handle.signal("cancel", args=order.asked)
        say(f"{node}: recorded, acts when a worker runs ({handle.id})")
    if order.wait:
        await _say_undone(handle, order)


async def _say_undone(handle: Disruption, order: CancelOrder) -> None:
    """Wait until everything is undone."""
    try:
        record = await handle.result()
    except WorkflowFailureError as error:
        raise CommandFailed(f"{order.node}: the undo has failed: {error.cause}; `dovetail history` has it") from None
    if isinstance(record, DisruptionRecord) and record.outcome == "done":
        raise CommandFailed(f"{order.node}: the cancel came too late: the node is gone")
    say(f"{order.node}: the node is given back")


async def disruption_of(client: Client, order: CancelOrder, claim: NodeClaim | None) -> Disruption | None:
    """The disruption that owns the node's mark; before there is a mark, the one that this cluster started for the
    node."""
    owner = claim.annotations.get(names.OWNER, "") if claim else ""
    if is_of(order.cluster, owner):
        return _handle(client, owner)
    running = f"WorkflowType='{DISRUPT_NODES}' AND ExecutionStatus='Running' AND DovetailNode='{order.node}'"
    async for found in client.list_workflows(query_of(order.cluster, running)):
        if is_of(order.cluster, found.id):
            return _handle(client, found.id)
    return None


def _handle(client: Client, identity: str) -> Disruption:
    return client.get_workflow_handle(identity, result_type=DisruptionRecord)


async def _is_held(client: Client, cluster: str, claim: NodeClaim) -> bool:
    """Whether a plan that the Scheduler holds for its second look would take the node."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            handle = client.get_workflow_handle(scheduler_id(cluster))
            state = await handle.query("status", result_type=SchedulerState)
    except (TimeoutError, RPCError, WorkflowQueryRejectedError):
        return True  # unknown: what is written on the claim applies to later plans
    return claim.uid in {t.claim_uid for held in state.held for c in held.plan.commands for t in c.targets}
