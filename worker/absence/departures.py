"""Drains the nodes that leave, in place of their workflows.

It calls the first two steps of TerminateNode unchanged: taint the node and fix its deadline, then evict its pods under
the same budgets, grace periods and protections. It drains for every claim that is being deleted, whatever the reason: a
deletion is final, so nothing begins here that the claim's workflow would not do. Volumes, instance and finalizers are
left to the workflow, because waiting loses nothing of them.

Two workers may drain one node at the same time, and a workflow's step may run beside them. That is safe: each request
names the pod by its UID, a terminating pod is not evicted again, and the API server enforces the budgets.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from temporalio.client import Client

from dovetail.activities.shared.running_workflows import running_type
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.background.supervised import stop
from dovetail.lifecycle import unfinished
from dovetail.messages.orders import StartOwner
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.workflow_ids import claim_owner_id
from dovetail.messages.workflow_types import TERMINATE_NODE
from dovetail.model.objects.watched_kinds import CLAIMS
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.backoff import Backoff
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure, least_wait
from dovetail.ports.view import ClusterView
from dovetail.telemetry.metrics.ours.absence import departure_begun

READS = CLAIMS  # two minutes are left to a node that was warned of: nothing else is waited for
PAUSES: Final = Backoff(first=1.0, longest=10.0)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DepartureSteps:
    """The steps of TerminateNode that cannot wait for the workflow: the same objects that the worker serves, with their
    pace."""

    departing: BeginAndEndDeparture
    draining: DrainNode


class Departures:
    """The drains of this process that no workflow asked for. `runs_here`: whether this process runs that step of that
    workflow."""

    def __init__(
        self,
        cluster: str,
        view: ClusterView,
        catalogues: Catalogues,
        steps: DepartureSteps,
        runs_here: Callable[[str, str], bool],
    ) -> None:
        self.cluster, self.view, self.catalogues = cluster, view, catalogues
        self.steps, self.runs_here = steps, runs_here
        self._drains: dict[str, tuple[ClaimRef, asyncio.Task[None]]] = {}  # by the claim's UID, those at their end too

    @property
    def in_hand(self) -> int:
        """How many nodes are drained here now."""
        return sum(1 for _, drain in self._drains.values() if not drain.done())

    def take_up(self) -> None:
        """Begin to drain for each claim that is being deleted, unless something in this process already works on it."""
        leaving = {order.claim.uid: order.claim for order in unfinished.owners(self._snapshot()) if _ends(order)}
        self._drains = {uid: one for uid, one in self._drains.items() if uid in leaving or not one[1].done()}
        for uid, claim in leaving.items():
            if uid not in self._drains and not self._is_drained_by_its_step(claim):
                departure_begun()
                _log.warning("NodeClaim %s is being deleted: its node is drained without Temporal", claim.name)
                self._drains[uid] = claim, asyncio.create_task(self._drain(claim))

    async def hand_over(self, client: Client) -> None:
        """End the drains of claims whose TerminateNode runs: it continues where they stopped."""
        for claim, drain in list(self._drains.values()):
            identity = claim_owner_id(self.cluster, claim.name)
            if not drain.done() and await running_type(client, identity) == TERMINATE_NODE:
                await stop(drain)
                _log.info("the drain of NodeClaim %s continues in workflow %s", claim.name, identity)

    async def stop(self) -> None:
        """End all drains; an eviction that is under way is still finished."""
        await stop(*[drain for _, drain in self._drains.values()])
        self._drains.clear()

    def _is_drained_by_its_step(self, claim: ClaimRef) -> bool:
        """Whether a workflow's step drains it here: while Temporal is away, a step that has begun continues until it
        has a result."""
        return self.runs_here("drain_node", claim_owner_id(self.cluster, claim.name))

    def _snapshot(self) -> Snapshot:
        return replace(self.view.snapshot(READS), supported_node_classes=self.catalogues.supported_classes())

    async def _drain(self, claim: ClaimRef) -> None:
        """Drain until nothing is left on the node, whatever fails on the way."""
        seconds = PAUSES.first
        while True:
            try:
                departure = await self.steps.departing.begin_departure(claim)
                if departure.nodes and not departure.instance_gone:
                    outcome = await self.steps.draining.drain_node(departure)
                    _log.info("NodeClaim %s, drained without Temporal: %s", claim.name, outcome.message)
                return
            except Failure as failure:
                _log.warning("NodeClaim %s cannot be drained now: %s", claim.name, failure)
                await asyncio.sleep(max(least_wait(failure) or 0.0, seconds))
            except Exception:
                _log.exception("NodeClaim %s cannot be drained now", claim.name)
                await asyncio.sleep(seconds)
            seconds = PAUSES.after(seconds)


def _ends(order: StartOwner) -> bool:
    """Whether the workflow terminates the claim, rather than launches it."""
    return order.workflow_type == TERMINATE_NODE
