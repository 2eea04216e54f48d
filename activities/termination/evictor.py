"""Evicts one pod, or deletes it by force, and says what came of it.

Every request carries the pod's UID, so that a new pod with the same name is never taken for the old one (DUR-12,
DUR-30). A request that is under way is finished even if the worker is being stopped: the API server may already have
counted the disruption against the PDB, and an abandoned one blocks it for two minutes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.model.own.drain_rules import Blocker
from dovetail.model.pods import Pod
from dovetail.notices.notice import Notice
from dovetail.notices.pods import deleted_by_force, evicted
from dovetail.ports.failures import Failure
from dovetail.ports.objects import Notices, Pods
from dovetail.telemetry.metrics.karpenters.lifecycle import eviction_answered, pod_drained
from dovetail.termination.evictions import forced_grace

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionRequest:
    """Why a pod should leave, the pool whose share of the evictions it uses, and whether it was asked for before.

    `accepted`: it was, but the watch has not shown it yet, as with a slow API server. Asking again is harmless then,
    and is neither counted nor published a second time.
    """

    pool: str
    reason: str
    repeated: bool = False
    accepted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionOutcome:
    """The result of one request. `leaving`: accepted, or the pod is gone; otherwise `why` says what holds it.

    `accepted`: this request was the eviction.
    """

    leaving: bool
    accepted: bool = False
    why: str = ""
    cause: str = ""  # the same for the notice on the node (EVT-3)
    blocker: Blocker | None = None  # the same for what people have said about drains that are held


class Evictor:
    """Evicts pods at the pace that all drains of the process share."""

    def __init__(self, pods: Pods, notices: Notices, pace: EvictionPace, now: Callable[[], float]) -> None:
        self.pods, self.notices, self.pace, self.now = pods, notices, pace, now

    async def evict(
        self, pod: Pod, request: EvictionRequest, may_leave: Callable[[Pod], Awaitable[bool]] | None = None
    ) -> EvictionOutcome:
        """Evict the pod, as soon as the pace allows it (TRM-25, TRM-26), if it may leave then."""
        await self.pace.wait(request.pool, repeated=request.repeated)
        if may_leave is not None and not await may_leave(pod):
            return EvictionOutcome(leaving=False)
        return await to_the_end(self._evict(pod, request))

    async def force(self, pod: Pod, deadline: float | None, reason: str) -> EvictionOutcome:
        """Delete it with what is left of the node's deadline (TRM-27); without one, because the drain is forced, with
        its own grace. Not at the shared pace: a deadline does not wait."""
        if deadline is None:
            notice = deleted_by_force(pod, max(pod.own_grace, 1), "because the drain of its node is forced")
            return await to_the_end(self._force(pod, max(pod.own_grace, 1), notice, reason))
        grace = forced_grace(deadline, self.now())
        return await to_the_end(self._force(pod, grace, deleted_by_force(pod, grace), reason))

    async def _evict(self, pod: Pod, request: EvictionRequest) -> EvictionOutcome:
        try:
            answer = await self.pods.evict(pod)
        except Failure as failure:
            return _refused(str(failure), f"evicting pod {pod.key} failed, {failure}")
        eviction_answered(answer.code)
        match answer.outcome:
            case "evicted":
                await self._accepted(pod, request)
                return EvictionOutcome(leaving=True, accepted=True, blocker=Blocker.POD_TERMINATES)
            case "blocked":
                return _refused("a PDB blocks", f"evicting pod {pod.key} violates a PDB", Blocker.PDB_BLOCKS)
            case "unsupported":
                cause = f"evicting pod {pod.key}, more than one PDB matches it, which eviction does not support"
                return _refused("several PDBs match", cause, Blocker.SEVERAL_PDBS)
            case "gone" | "replaced":
                pass
        return EvictionOutcome(leaving=True)

    async def _accepted(self, pod: Pod, request: EvictionRequest) -> None:
        if not request.accepted:
            pod_drained(request.reason)
            await self.notices.publish(evicted(pod, request.reason))

    async def _force(self, pod: Pod, grace: int, notice: Notice, reason: str) -> EvictionOutcome:
        await self.notices.publish(notice)
        try:
            await self.pods.delete(pod, grace)
        except Failure as failure:
            return _refused(str(failure), f"deleting pod {pod.key} failed, {failure}")
        if pod.deleting_since is None:
            pod_drained(reason)  # one that was being deleted already has been counted (TRM-28)
        return EvictionOutcome(leaving=True)


def _refused(why: str, cause: str, blocker: Blocker = Blocker.EVICTION_FAILS) -> EvictionOutcome:
    return EvictionOutcome(leaving=False, why=why, cause=cause, blocker=blocker)


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """The work's result; a cancellation waits until the work is done, and takes effect then."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
