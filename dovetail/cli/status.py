"""`dovetail status`: nodes, claims, and what is under way.

What exists comes from the cluster; what is in progress comes from Temporal, by the ids that the objects name. Nothing
is taken from visibility lists, which lag.
"""

import asyncio

from temporalio.client import Client, WorkflowQueryRejectedError
from temporalio.service import RPCError

from dovetail.cli.output import say, table
from dovetail.messages.states import SchedulerState
from dovetail.messages.workflow_ids import claim_owner_id, scheduler_id
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.model.unused_launches import stop_of
from dovetail.model.watched_kinds import FLEET
from dovetail.worker.wiring import World

ANSWER_SECONDS = 5.0


async def status(client: Client, world: World, cluster: str) -> None:
    """Print it."""
    snapshot = world.view.snapshot(FLEET)
    say(await _scheduler(client, cluster))
    rows = [await _row(client, cluster, snapshot, snapshot.claims[name]) for name in sorted(snapshot.claims)]
    if rows:
        say(table(rows, ("NODECLAIM", "NODE", "TYPE", "ZONE", "PODS", "STATE", "WORKFLOW")))
    else:
        say("no NodeClaims")
    pending = sum(1 for p in snapshot.pods.values() if p.unschedulable and not p.node_name)
    if pending:
        say(f"{pending} pods are waiting for a node")
    for line in stopped_pools(snapshot):
        say(line)
    for unreadable in world.view.unreadable():
        say(f"left out: {unreadable.kind} {unreadable.name}: {unreadable.field}: {unreadable.message}")


def stopped_pools(snapshot: Snapshot) -> tuple[str, ...]:
    """A line for each NodePool that nothing is launched for."""
    stops = ((name, stop_of(pool)) for name, pool in sorted(snapshot.pools.items()))
    return tuple(
        f"NodePool {name}: launches are stopped since {stop.since or 'an unknown time'}: {stop.why}"
        for name, stop in stops
        if stop is not None
    )


async def _scheduler(client: Client, cluster: str) -> str:
    """The Scheduler in a few lines; without a worker, why it gives no answer."""
    handle = client.get_workflow_handle(scheduler_id(cluster))
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            state = await handle.query("status", result_type=SchedulerState)
    except (TimeoutError, RPCError, WorkflowQueryRejectedError) as error:
        return f"Scheduler of {cluster}: no answer ({str(error) or 'no worker runs'})"
    head = f"Scheduler of {cluster}: {'paused' if state.paused else 'planning'}"
    held = [f"  held until checked again: {c.reason}: {_targets(c)}" for h in state.held for c in h.plan.commands]
    return "\n".join([head, *held, *[f"  {r.text}" for r in state.recent[-5:]]])


def _targets(command: object) -> str:
    return ", ".join(t.node for t in getattr(command, "targets", ()))


async def _row(client: Client, cluster: str, snapshot: Snapshot, claim: NodeClaim) -> tuple[str, ...]:
    pods = sum(1 for p in snapshot.pods.values() if claim.node_name and p.node_name == claim.node_name)
    return (
        claim.name,
        claim.node_name or "-",
        claim.labels.get(names.INSTANCE_TYPE, "-"),
        claim.labels.get(names.ZONE, "-"),
        str(pods),
        state_of(claim),
        await _workflow(client, claim.annotations.get(names.OWNER) or claim_owner_id(cluster, claim.name)),
    )


def state_of(claim: NodeClaim) -> str:
    """Where the claim is in its life, in a word."""
    if claim.deleting_since is not None:
        return "terminating"
    reason = claim.condition(names.DISRUPTION_REASON)
    if reason is not None and reason.status == "True":
        return f"disrupting ({reason.reason})"
    for condition, word in (
        (names.INITIALIZED_CONDITION, "ready"),
        (names.REGISTERED_CONDITION, "registered"),
        (names.LAUNCHED, "launched"),
    ):
        if claim.is_true(condition):
            return word
    return "pending"


async def _workflow(client: Client, identity: str) -> str:
    try:
        found = await client.get_workflow_handle(identity).describe()
    except RPCError:
        return "-"
    status_name = found.status.name.lower() if found.status is not None else "unknown"
    return f"{identity} ({found.workflow_type}, {status_name})"
