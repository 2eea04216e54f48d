"""Carries out the Caretaker's orders: one step for each kind.

An order says what was seen; every step here looks again, live, before it acts. Owners are started without looking for
them first: the workflow's id is the lock, and "already started" counts as success only if the running workflow has the
wanted type.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from temporalio import activity
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.identity.search_attributes import attributes
from dovetail.activities.orders.finders import Again
from dovetail.activities.shared.every_step.temporal_errors import NotYet
from dovetail.activities.shared.owner_starts import OwnerStarts
from dovetail.activities.shared.running_workflows import running_type
from dovetail.activities.shared.writes.claim_deletion import delete_because, hurry
from dovetail.lifecycle.liveness import initialization_overdue
from dovetail.lifecycle.unfinished import runs_for_users
from dovetail.messages.inputs import NodeInput
from dovetail.messages.orders import DeleteClaim, StartOwner, StartRelease, TakeOffMark, TerminateOrphan
from dovetail.messages.outcomes import StepOutcome
from dovetail.messages.requests import UnmarkRequest
from dovetail.messages.workflow_ids import claim_owner_id, is_of, node_owner_id, task_queue
from dovetail.messages.workflow_types import LAUNCH_NODE, RELEASE_NODE, TERMINATE_NODE
from dovetail.messages.writes import claim_write
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.reasons.endings import BY_OTHERS_WORDS, CLOCKS_APART, OF_REASONS
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Cloud
from dovetail.ports.failures import Refused
from dovetail.ports.objects import NodeClaims
from dovetail.rules.said import Cause
from dovetail.telemetry.log import departures
from dovetail.telemetry.metrics.karpenters.lifecycle import ordered

# What is deleted although nothing is wrong with it.
VOLUNTARY: Final = {
    "expired": Cause.EXPIRED_HARD,
    "static_scale_down": Cause.SCALED_DOWN,
    "never_initialized": Cause.SCALED_DOWN,
}

# GCR-15: whose pods are not waited for. By the reason, which is judged here: who asks for the step could say it of any.
AT_ONCE: Final = frozenset({"unhealthy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPorts:
    """What the steps reach beside marks. `again`: by reason, what judges the order on the live objects; what a feature
    gate keeps closed has nothing there."""

    claims: NodeClaims
    cloud: Cloud
    fleet: Callable[[], Snapshot]
    again: Mapping[str, Again]


class CarryOutOrders:
    def __init__(self, cluster: str, ports: OrderPorts, marking: MarkAndUnmarkNodes, now: Callable[[], float]) -> None:
        self.cluster = cluster
        self.claims, self.cloud, self.fleet, self.again = ports.claims, ports.cloud, ports.fleet, ports.again
        self.marking = marking
        self.now = now

    @activity.defn
    async def start_owner(self, order: StartOwner) -> StepOutcome:
        """Start the claim's workflow. While the other type still runs, look again in a second: it may end."""
        claim = await self.claims.read(order.claim.name)
        if claim is None or claim.uid != order.claim.uid:
            return StepOutcome(message="already gone")
        if order.workflow_type != (LAUNCH_NODE if claim.deleting_since is None else TERMINATE_NODE):
            return StepOutcome(message=f"NodeClaim {claim.name} needs another workflow by now")
        try:
            await OwnerStarts(self.cluster).start(order.workflow_type, order.claim, order.node)
        except WorkflowAlreadyStartedError:
            await self._until_it_is(order.workflow_type, claim_owner_id(self.cluster, order.claim.name))
        return StepOutcome()

    @activity.defn
    async def start_release(self, order: StartRelease) -> StepOutcome:
        """Start the release of a node without a claim."""
        given = NodeInput(cluster=self.cluster, node=order.node, uid=order.uid)
        identity = node_owner_id(self.cluster, order.node)
        try:
            await activity.client().start_workflow(
                RELEASE_NODE,
                given,
                id=identity,
                task_queue=task_queue(self.cluster, "control"),
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                search_attributes=attributes(self.cluster, node=order.node),
                static_summary=f"release {order.node}",
            )
        except WorkflowAlreadyStartedError:
            await self._until_it_is(RELEASE_NODE, identity)
        return StepOutcome()

    async def _until_it_is(self, workflow_type: str, identity: str) -> None:
        """Look again later, unless what runs under the id is of the wanted type."""
        running = await running_type(activity.client(), identity)
        if running != workflow_type:
            raise NotYet(f"{identity} runs as {running or 'nothing'}, not yet as {workflow_type}", 1.0)

    @activity.defn
    async def take_off_mark(self, order: TakeOffMark) -> StepOutcome:
        """Take the mark off, unless its owner runs after all."""
        # A predecessor's mark names no owner, and one that was copied with its claim names another cluster's.
        if is_of(self.cluster, order.owner) and await running_type(activity.client(), order.owner):
            return StepOutcome(message=f"{order.owner} runs")
        return await self.marking.unmark_nodes(UnmarkRequest(owner=order.owner, claims=(order.claim,)))

    @activity.defn
    async def delete_claim_for(self, order: DeleteClaim) -> StepOutcome:
        """Delete the claim for that reason; its TerminateNode follows from the deletion."""
        claim = await self.claims.read(order.claim.name)
        if claim is None or claim.uid != order.claim.uid:
            return StepOutcome(message="already gone")
        why_not = await self._why_not(order, claim)
        if why_not:
            return StepOutcome(message=why_not)
        message, write = "already being deleted", claim_write(claim)
        if claim.deleting_since is None:
            message = await self._paused(order)
            if message:
                return StepOutcome(message=message)
            words = BY_OTHERS_WORDS if order.reason == "node_deleted" else order.message
            message, write = order.message, await delete_because(self.claims, claim, OF_REASONS[order.reason], words)
            ordered(claim, order)
            departures.ordered(claim, order)
        if order.reason in AT_ONCE:
            hurried = await hurry(self.claims, claim, self.now(), pods_alone=True)
            write = write if hurried is None else claim_write(hurried)
        return StepOutcome(message=message, writes=(write,))

    async def _why_not(self, order: DeleteClaim, claim: NodeClaim) -> str:
        """Why the order is no longer right, by the live objects; empty if it is."""
        match order.reason:
            case "expired":
                pauses = self.marking.pauses
                moment = claim.expires_at if pauses is None else await pauses.deleted_at(claim)
                stands = moment is not None and moment <= self.now() + CLOCKS_APART
                return "" if stands else "it has not expired, or is left to its replacement"
            case "garbage_collected":
                return "its instance is there after all" if await self._has_instance(claim) else ""
            case "node_deleted":
                nodes = await self._nodes_of(claim)
                had_one = claim.is_true(names.REGISTERED_CONDITION)
                gone = any(node.deleting_since is not None for node in nodes) or (had_one and not nodes)
                return "" if gone else "no Node of it is being deleted"
            case "unhealthy":
                return "" if await self._is_found_again(order, claim) else "its Node is not to be replaced"
            case "static_scale_down":
                return "" if await self._is_found_again(order, claim) else "its NodePool does not have too many"
            case "never_initialized":
                if not initialization_overdue(claim, self.now() + CLOCKS_APART, awaited=False):
                    return "its node is ready, or not late"
                pods = await self.marking.pods.list_on(claim.node_name)
                return "pods run on its node" if any(map(runs_for_users, pods)) else ""
            case other:
                raise Refused(f"NodeClaim/{claim.name}", f"nothing is deleted for the reason {other[:64]!r}")

    async def _is_found_again(self, order: DeleteClaim, claim: NodeClaim) -> bool:
        """Whether what found the order would give it now: by the claim, its Nodes and its NodePool as they are, and by
        the others as the watch has them."""
        finder = self.again.get(order.reason)
        if finder is None:
            return False
        nodes = await self.marking.nodes.list_by_provider_id(claim.provider_id) if claim.provider_id else ()
        name, pauses = claim.labels.get(names.NODE_POOL, ""), self.marking.pauses
        pool = await pauses.pools.read(name) if pauses is not None and name else None
        seen = self.fleet()
        live = replace(
            seen,
            now=self.now() + CLOCKS_APART,
            claims={**seen.claims, claim.name: claim},
            nodes={**seen.nodes, **{node.name: node for node in nodes}},
            pools=seen.pools if pool is None else {**seen.pools, name: pool},
        )
        return await finder.finds_again(live, claim)

    async def _paused(self, order: DeleteClaim) -> str:
        """Why people forbid it. Repair, and nodes that are lost already, are not voluntary: nothing is read for
        those."""
        cause, pauses = VOLUNTARY.get(order.reason), self.marking.pauses
        held = await pauses.hold(order.claim.pool, cause) if cause is not None and pauses is not None else None
        return held.message if held is not None else ""

    async def _nodes_of(self, claim: NodeClaim) -> tuple[Node, ...]:
        """Its Nodes, by their ids and by the name that the claim says: the cache may lag, and a Node that was made anew
        may have no id yet."""
        found = await self.marking.nodes.list_by_provider_id(claim.provider_id)
        named = await self.marking.nodes.read(claim.node_name) if claim.node_name and not found else None
        return (named,) if named is not None and named.provider_id in ("", claim.provider_id) else found

    async def _has_instance(self, claim: NodeClaim) -> bool:
        """Whether the cloud, asked for that instance alone, knows it: a list may lag (GCR-1)."""
        found = await self.cloud.find(provider_id=claim.provider_id)
        return found is not None and found.state != "terminating"

    @activity.defn
    async def terminate_orphan(self, order: TerminateOrphan) -> StepOutcome:
        """Terminate an instance without a claim, unless it has one by now. Its tag counts only while the claim names no
        instance, as for what found it."""
        found = await self.cloud.find(provider_id=order.provider_id)
        if found is None:
            return StepOutcome(message="already gone")
        claim = await self.claims.read(found.claim_name) if found.claim_name else None
        tagged = claim is not None and claim.uid == found.claim_uid and not claim.provider_id
        if claim is not None and (tagged or claim.provider_id == order.provider_id):
            return StepOutcome(message=f"NodeClaim {claim.name} stands for it")
        for node in await self.marking.nodes.list_by_provider_id(order.provider_id):
            for owner in node.owners:
                owned = await self.claims.read(owner.name) if owner.kind == "NodeClaim" else None
                if owned is not None and owned.uid == owner.uid:
                    return StepOutcome(message=f"NodeClaim {owned.name} stands for it, as Node {node.name} says")
        await self.cloud.terminate(order.provider_id)
        departures.orphan_terminated(order.provider_id)
        return StepOutcome(message=f"terminated {order.provider_id}")
