"""Waits for other workflows: for marks to appear, replacements to become ready, claims to disappear.

Each wait looks at the cache whenever something changes. A workflow may end without a trace on any object, so it is
described in Temporal as well. Every wait without a time limit also checks that its subject still exists.
"""

from collections.abc import Callable

from temporalio import activity
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError

from dovetail.activities.shared.every_step.heartbeats import report
from dovetail.activities.shared.running_workflows import ANSWER_TIMEOUT, is_running
from dovetail.activities.shared.waits.cluster_changes import ClusterSleep
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.messages.outcomes import ReadyOutcome, StepOutcome
from dovetail.messages.requests import ReadyRequest
from dovetail.messages.states import AwaitedMark
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.writes import Write, claim_write, newest_of_each_kind, node_write
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.ports.view import ClusterView

# How often a wait looks although nothing has changed: at deadlines, and at workflows that leave no trace.
LOOK_SECONDS = 1.0


class AwaitProgress:
    """The long waits that act on nothing."""

    def __init__(self, view: ClusterView, known: KnownClaims, now: Callable[[], float]) -> None:
        self.view = view
        self.known, self.lookups = known, known.lookups
        self.now = now

    @activity.defn
    async def await_marked(self, awaited: tuple[AwaitedMark, ...]) -> StepOutcome:
        """Until each disruption's marks are in the cache, or its workflow has ended. Answers the writes that it saw."""
        waiting = list(awaited)
        writes: list[Write] = []
        asked = 0.0
        while waiting:
            revision = self.view.revision()
            # The cache is looked at with every change of the cluster, the workflows are asked once in a second.
            asks = self.now() - asked >= LOOK_SECONDS
            asked = self.now() if asks else asked
            for one in list(waiting):
                seen, deleted = self._marks_of(one)
                if len(seen) == len(one.claims) or (asks and await goes_on(activity.client(), one, deleted)):
                    writes += [write for each in seen for write in each]
                    waiting.remove(one)
            if waiting:
                report(f"awaiting the marks of {len(waiting)} disruptions, {waiting[0].workflow_id} first")
                await self.look_again(revision)
        return StepOutcome(writes=newest_of_each_kind(writes))

    def _marks_of(self, awaited: AwaitedMark) -> tuple[list[list[Write]], bool]:
        """What was written on each target that is marked, and whether one of them is being deleted."""
        marked, deleted = [], False
        for reference in awaited.claims:
            claim = self.lookups.claim(reference.name)
            if claim is None or claim.annotations.get(names.OWNER) != awaited.workflow_id:
                continue
            nodes = self.lookups.nodes_of(claim.provider_id)
            if any(t.key == names.DISRUPTED_TAINT for n in nodes for t in n.taints):
                deleted = deleted or claim.deleting_since is not None
                marked.append([claim_write(claim), *(node_write(node) for node in nodes)])
        return marked, deleted

    @activity.defn
    async def await_ready(self, request: ReadyRequest) -> ReadyOutcome:
        """Until all replacements are initialised, one has failed, or the time is up."""
        while True:
            revision = self.view.revision()
            # What has just been created may not be in the cache yet: that is no proof that it was given up.
            claims = [(c, await self.known.find(c)) for c in request.claims]
            failed = [c.name for c, claim in claims if claim is None or claim.deleting_since is not None]
            if failed:
                return ReadyOutcome(kind="failed", message=f"replacement {', '.join(failed)} was given up")
            unready = [claim for _, claim in claims if claim and not claim.is_true(names.INITIALIZED_CONDITION)]
            if not unready:
                return ReadyOutcome(kind="ready", destinations=tuple(c.node_name for _, c in claims if c))
            missing = ", ".join(c.name for c in unready)
            if self.now() >= request.until:
                return ReadyOutcome(kind="failed", message=f"replacement {missing} was not ready in time")
            report(f"waiting for {missing} to be initialised")
            await self.look_again(revision)

    @activity.defn
    async def await_gone(self, claims: tuple[ClaimRef, ...]) -> StepOutcome:
        """Until none of these claims exists: each node is drained and its instance gone."""
        while True:
            revision = self.view.revision()
            left = [c.name for c in claims if self.claim(c) is not None]
            if not left:
                return StepOutcome()
            report(f"waiting until {', '.join(left)} are gone")
            await self.look_again(revision)

    def claim(self, reference: ClaimRef) -> NodeClaim | None:
        """The claim in the cache; None also if the one of this name has another UID: then ours is gone."""
        claim = self.lookups.claim(reference.name)
        return claim if claim is not None and claim.uid == reference.uid else None

    async def look_again(self, revision: int) -> None:
        """Sleep until something has changed, a second at most."""
        await ClusterSleep(self.view).until_changed(revision, LOOK_SECONDS)


async def goes_on(client: Client, awaited: AwaitedMark, deleted: bool) -> bool:
    """Whether no further mark will come: the workflow has ended, or continues without a target that was refused."""
    if deleted and await has_marked(client, awaited):
        return True
    return not await is_running(client, awaited.workflow_id)


async def has_marked(client: Client, awaited: AwaitedMark) -> bool:
    """Whether a disruption reports that it has finished marking; False if no worker answers for it now."""
    try:
        phase: str = await client.get_workflow_handle(awaited.workflow_id).query("status", rpc_timeout=ANSWER_TIMEOUT)
    except (RPCError, WorkflowQueryFailedError):
        return False
    return phase not in ("starting", "marking")
