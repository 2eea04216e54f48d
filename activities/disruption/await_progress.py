"""Waits for other workflows: for marks to appear, replacements to become ready, claims to disappear.

Each wait looks at the cache whenever something changes. A workflow may end without a trace on any object, so it is
described in Temporal as well. Every wait without a time limit also checks that its subject still exists: where many
nodes leave at once, one may be gone before its mark was looked for.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

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
AT_ONCE: Final = 10  # of a hundred disruptions each is asked about every ten seconds


@dataclass(slots=True)
class _Marks:
    """What was written on the targets of a disruption that are marked, those that are not, and whether one of the
    former is being deleted."""

    awaited: AwaitedMark
    writes: list[Write] = field(default_factory=list)
    unmarked: list[ClaimRef] = field(default_factory=list)
    deleted: bool = False


class AwaitProgress:
    """The long waits that act on nothing."""

    def __init__(self, view: ClusterView, known: KnownClaims, now: Callable[[], float]) -> None:
        self.view = view
        self.known, self.lookups = known, known.lookups
        self.now = now

    @activity.defn
    async def await_marked(self, awaited: tuple[AwaitedMark, ...]) -> StepOutcome:
        """Until each disruption's marks are in the cache, or none will come. Answers the writes that it saw."""
        waiting, writes, asked = list(awaited), list[Write](), 0.0
        while waiting:
            revision = self.view.revision()
            looks = [self._marks_of(one) for one in waiting]
            done = [look for look in looks if not look.unmarked]
            left = [look for look in looks if look.unmarked]
            # The cache is looked at with every change of the cluster; once in a second a few are asked about, by turns.
            if left and self.now() - asked >= LOOK_SECONDS:
                asked, turn = self.now(), left[:AT_ONCE]
                answers = await asyncio.gather(*map(self._is_done, turn))
                done += [look for look, is_done in zip(turn, answers, strict=True) if is_done]
                left = left[AT_ONCE:] + [look for look, is_done in zip(turn, answers, strict=True) if not is_done]
            writes += [write for look in done for write in look.writes]
            waiting = [look.awaited for look in left]
            if waiting:
                report(f"awaiting the marks of {len(waiting)} disruptions, {waiting[0].workflow_id} first")
                await self.look_again(revision)
        return StepOutcome(writes=newest_of_each_kind(writes))

    async def _is_done(self, look: _Marks) -> bool:
        """Whether no further mark will come: each target has its own or is gone, or the workflow waits for none."""
        if not any([await self.known.find(reference) for reference in look.unmarked]):
            return True
        return await goes_on(activity.client(), look.awaited, look.deleted)

    def _marks_of(self, awaited: AwaitedMark) -> _Marks:
        """What the cache says of them."""
        found = _Marks(awaited)
        for reference in awaited.claims:
            claim = self.lookups.claim(reference.name)
            if claim is not None and claim.annotations.get(names.OWNER) != awaited.workflow_id:
                claim = None
            nodes = self.lookups.nodes_of(claim.provider_id) if claim is not None else ()
            if claim is None or not any(t.key == names.DISRUPTED_TAINT for n in nodes for t in n.taints):
                found.unmarked.append(reference)
                continue
            found.deleted |= claim.deleting_since is not None
            found.writes += [claim_write(claim), *(node_write(node) for node in nodes)]
        return found

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
