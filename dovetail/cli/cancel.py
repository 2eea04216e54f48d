"""`dovetail cancel NODE --reason …`: call a disruption off before its delete.

The request is sent as an update, which is answered: cancelled, or too late. With no worker to answer within five
seconds it is sent as a signal, which the server keeps until a worker is back. An unanswered update may still act later
and is lost with the server, so this never says "not cancelled".
"""

import asyncio

from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from dovetail.cli.output import CommandFailed, say
from dovetail.messages.workflow_types import DISRUPT_NODES
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.watched_kinds import FLEET
from dovetail.worker.wiring import World

ANSWER_SECONDS = 5.0


async def cancel(client: Client, world: World, node: str, reason: str) -> None:
    """Cancel the disruption of that node or NodeClaim."""
    handle = await disruption_of(client, world, node)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await handle.execute_update("cancel_disruption", reason, result_type=str)
        say(f"{node}: {answer}; the node is given back ({handle.id})")
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        message = cause.message if isinstance(cause, ApplicationError) else str(cause)
        raise CommandFailed(f"{node}: not cancelled: {message}") from None
    except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError, RPCError) as error:
        # The SDK turns the cancellation that our own timeout causes into an error of its own.
        if isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND:
            raise CommandFailed(f"{node}: its disruption has already ended ({handle.id})") from None
        await handle.signal("cancel", reason)
        say(f"{node}: recorded, acts when a worker runs ({handle.id})")


async def disruption_of(client: Client, world: World, node: str) -> WorkflowHandle[object, object]:
    """The disruption that owns the node's mark; before the mark, the one that was started for it."""
    claim = claim_of(world, node)
    owner = claim.annotations.get(names.OWNER, "") if claim else ""
    if owner:
        return client.get_workflow_handle(owner)
    query = f"WorkflowType='{DISRUPT_NODES}' AND ExecutionStatus='Running' AND DovetailNode='{node}'"
    async for found in client.list_workflows(query, limit=1):
        return client.get_workflow_handle(found.id)
    if claim is not None and claim.deleting_since is not None:
        raise CommandFailed(f"{node}: too late: its NodeClaim {claim.name} is being deleted, and no disruption runs")
    raise CommandFailed(f"{node}: no disruption is under way")


def claim_of(world: World, node: str) -> NodeClaim | None:
    """The claim of a node, found by either name."""
    snapshot = world.view.snapshot(FLEET)
    claim = snapshot.claims.get(node)
    found = snapshot.nodes.get(node)
    if found is None and claim is None:
        raise CommandFailed(f"{node}: there is no such Node or NodeClaim")
    if found is None:
        return claim
    return snapshot.pairing.claim_of(found)
