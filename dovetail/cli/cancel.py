"""`dovetail cancel NODE --reason …`: call a disruption off before its delete.

Where a disruption has begun, the request is sent to it as an update, which is answered: cancelled, or too late. With
no worker to answer within five seconds it is sent as a signal, which the server keeps until a worker is back. An
unanswered update may still act later and is lost with the server, so this never says "not cancelled". Where none has
begun and a plan waits for its second look, or Temporal cannot be asked, the NodeClaim is annotated, as a person with
kubectl would do it; that holds from this moment on. So does whoever names no cluster: with the annotation alone a
kubeconfig is all that is needed. One claim, one node and one namespace are read, whatever the size of the cluster.
"""

import asyncio
from dataclasses import dataclass
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

from dovetail.activities.shared.revisions import revise_claim
from dovetail.answers.failures import CommandFailed
from dovetail.cli.author import person
from dovetail.cli.output import say
from dovetail.cli.target import Target, checked_target, uid_of
from dovetail.connection.configuration import TemporalUnusable
from dovetail.connection.owner import check_owner
from dovetail.connection.temporal import ANSWER_SECONDS, connect
from dovetail.disruption.nodes.resting import read_rest
from dovetail.messages.outcomes import DisruptionRecord
from dovetail.messages.states import SchedulerState
from dovetail.messages.workflow_ids import is_of, query_of, scheduler_id
from dovetail.messages.workflow_types import DISRUPT_NODES
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.time import format_time
from dovetail.ports.objects import MetadataChange
from dovetail.settings.settings import Settings
from dovetail.wiring.world import ClusterObjects, open_objects

LOOK_SECONDS = 0.2

Disruption = WorkflowHandle[object, object]


_NOT_ASKED: Final = MetadataChange(annotations=dict.fromkeys(names.REPLACE_ANNOTATIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOrder:
    """What a person types."""

    cluster: str
    node: str
    reason: str
    wait: bool

    @property
    def asked(self) -> tuple[str, str]:
        """The reason and its author, for the record."""
        return self.reason, person()


async def cancel(settings: Settings, order: CancelOrder) -> None:
    """Cancel the disruption of that node or NodeClaim."""
    async with open_objects(settings) as objects:
        if settings.cluster:
            await _by_message(settings, objects, order)
        else:
            target = await checked_target(settings, objects)
            await _by_annotation(objects, order, await claim_of(objects, order.node))
            say(target.words)


async def _by_message(settings: Settings, objects: ClusterObjects, order: CancelOrder) -> None:
    """Ask Temporal, and annotate where it cannot be asked or has nothing to call off yet."""
    target = Target(cluster=order.cluster, uid=await uid_of(objects))
    try:
        client = await connect(settings)
        await check_owner(client, order.cluster, target.uid)
    except TemporalUnusable as error:
        claim = await claim_of(objects, order.node)
        if claim is None or claim.deleting_since is not None:
            raise
        await _annotate(objects, order, claim)
        say(f"{order.node}: Temporal cannot be asked ({error}); it is written on NodeClaim {claim.name} instead")
        say(target.words)
        return
    await _asked(client, objects, order)
    say(target.words)


async def _asked(client: Client, objects: ClusterObjects, order: CancelOrder) -> None:
    """By what Temporal knows: a disruption that runs, a plan that is held, or nothing."""
    claim = await claim_of(objects, order.node)
    handle = await disruption_of(client, order, claim)
    if handle is not None:
        await _no_longer_asked(objects, claim)
        await _call_off(handle, order)
    elif claim is not None and claim.deleting_since is None and names.REPLACE in claim.annotations:
        await _annotate(objects, order, claim)
        await _say_dropped(objects, order, claim, "its replacement is not asked for any more")
    elif claim is not None and await _is_held(client, order.cluster, claim):
        await _annotate(objects, order, claim)
        await _say_dropped(objects, order, claim, "the plan that waited for its second look is dropped")
    elif claim is not None and claim.deleting_since is not None:
        raise _too_late(order, claim)
    else:
        raise CommandFailed(f"{order.node}: no disruption is under way")


async def _by_annotation(objects: ClusterObjects, order: CancelOrder, claim: NodeClaim | None) -> None:
    """As kubectl would do it, and wait for the answer."""
    if claim is None:
        raise CommandFailed(f"{order.node}: it belongs to no NodeClaim, and is not ours to disrupt")
    if claim.deleting_since is not None:
        raise _too_late(order, claim)
    marked = bool(claim.annotations.get(names.OWNER))
    await _annotate(objects, order, claim)
    words = "its disruption is called off and undone" if marked else "nothing takes it now"
    await _say_dropped(objects, order, claim, words)


async def _no_longer_asked(objects: ClusterObjects, claim: NodeClaim | None) -> None:
    """Take a request to replace the node back first, so that it is not begun again after its rest."""
    if claim is not None and names.REPLACE in claim.annotations:
        await revise_claim(objects.claims, claim, lambda _: _NOT_ASKED)


def _too_late(order: CancelOrder, claim: NodeClaim) -> CommandFailed:
    return CommandFailed(f"{order.node}: too late: its NodeClaim {claim.name} is being deleted, and no disruption runs")


async def _call_off(handle: Disruption, order: CancelOrder) -> None:
    """Ask the disruption that runs."""
    node = order.node
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await handle.execute_update("cancel_disruption", args=order.asked, result_type=str)
        say(f"{node}: {answer}; the node is being given back ({handle.id})")
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        message = cause.message if isinstance(cause, ApplicationError) else str(cause)
        raise CommandFailed(f"{node}: not cancelled: {message}") from None
    except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError, RPCError) as error:
        # The SDK turns the cancellation that our own timeout causes into an error of its own.
        if isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND:
            raise CommandFailed(f"{node}: its disruption has already ended ({handle.id})") from None
        await handle.signal("cancel", args=order.asked)
        say(f"{node}: recorded, acts when a worker runs ({handle.id})")
    if order.wait:
        await _say_undone(handle, order)


async def _say_undone(handle: Disruption, order: CancelOrder) -> None:
    """Wait until everything is taken back."""
    try:
        record = await handle.result()
    except WorkflowFailureError as error:
        raise CommandFailed(f"{order.node}: the undo has failed: {error.cause}; `dovetail history` has it") from None
    if isinstance(record, DisruptionRecord) and record.outcome == "done":
        raise CommandFailed(f"{order.node}: the cancel came too late: the node is gone")
    say(f"{order.node}: the node is given back")


async def disruption_of(client: Client, order: CancelOrder, claim: NodeClaim | None) -> Disruption | None:
    """The disruption that owns the node's mark; before the mark, the one of this cluster that was started for it."""
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
    """Whether a plan of the Scheduler that waits for its second look would take it."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            handle = client.get_workflow_handle(scheduler_id(cluster))
            state = await handle.query("status", result_type=SchedulerState)
    except (TimeoutError, RPCError, WorkflowQueryRejectedError):
        return True  # nobody can say: what is written on the claim holds for whoever plans next
    return claim.uid in {t.claim_uid for held in state.held for c in held.plan.commands for t in c.targets}


async def _annotate(objects: ClusterObjects, order: CancelOrder, claim: NodeClaim) -> None:
    reason, who = order.asked
    change = MetadataChange(annotations={names.CANCEL: reason, names.CANCEL_BY: who or None})
    if await revise_claim(objects.claims, claim, lambda _: change) is None:
        raise CommandFailed(f"{order.node}: NodeClaim {claim.name} is gone")


async def _say_dropped(objects: ClusterObjects, order: CancelOrder, claim: NodeClaim, words: str) -> None:
    """Wait for the Caretaker's answer, which takes the annotation off: for ever, or for as long as an answer takes."""
    try:
        async with asyncio.timeout(None if order.wait else ANSWER_SECONDS):
            while True:
                now = await objects.claims.read(claim.name)
                if now is None or now.uid != claim.uid or now.deleting_since is not None:
                    raise CommandFailed(f"{order.node}: not cancelled: it is being deleted")
                if names.CANCEL not in now.annotations:
                    break
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        say(f"{order.node}: recorded on NodeClaim {claim.name}, acts when a worker runs")
        return
    until = format_time(read_rest(now).until)
    say(f"{order.node}: {words}; the node rests until {until}")


async def claim_of(objects: ClusterObjects, node: str) -> NodeClaim | None:
    """The claim of a node, found by either name; None for a node that names none as its owner."""
    claim = await objects.claims.read(node)
    if claim is not None:
        return claim
    found = await objects.nodes.read(node)
    if found is None:
        raise CommandFailed(f"{node}: there is no such Node or NodeClaim")
    owner = next((each.name for each in found.owners if each.kind == "NodeClaim"), "")
    return await objects.claims.read(owner) if owner else None
