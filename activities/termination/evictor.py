"""Asks one pod to leave, and says what came of it.

Every request carries the pod's UID, so that a pod made anew under the same name is never taken for the old one (D-12,
I6). A request that is under way is finished even where the worker is being stopped: the API server may already have
counted the disruption against the PDB, and an abandoned one blocks it for two minutes.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.metrics.lifecycle import eviction_answered, pod_drained
from dovetail.model.notice import Notice
from dovetail.model.pods import Pod
from dovetail.notices.pods import deleted_by_force, evicted
from dovetail.ports.failures import Failure
from dovetail.ports.objects import Notices, Pods
from dovetail.termination.evictions import forced_grace

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionRequest:
    """Why a pod is to leave, whose turn it takes, and whether it was asked before."""

    pool: str
    reason: str
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionOutcome:
    """What came of asking. `leaving`: accepted, or the pod is gone. Else `why` says what holds it."""

    leaving: bool
    why: str = ""
    cause: str = ""  # for the notice on the node (V-3)


class Evictor:
    """The way out for pods; one per process, because the turns are shared."""

    def __init__(self, pods: Pods, notices: Notices, turns: EvictionPace, now: Callable[[], float]) -> None:
        self.pods, self.notices, self.turns, self.now = pods, notices, turns, now

    async def evict(self, pod: Pod, leave: EvictionRequest) -> EvictionOutcome:
        """Evict, when it is the pool's turn (T-25, T-26)."""
        await self.turns.take(leave.pool, again=leave.again)
        return await to_the_end(self._evict(pod, leave.reason))

    async def force(self, pod: Pod, deadline: float, reason: str) -> EvictionOutcome:
        """Delete with what is left of the deadline (T-27). Not rationed: a deadline does not wait."""
        return await to_the_end(self._force(pod, deadline, reason))

    async def live_pods(self, node: str) -> tuple[Pod, ...]:
        """The pods on a node as the API server has them now."""
        return await self.pods.list_on(node)

    async def tell(self, *notices: Notice) -> None:
        """Publish."""
        await self.notices.publish(*notices)

    async def _evict(self, pod: Pod, reason: str) -> EvictionOutcome:
        try:
            answer = await self.pods.evict(pod)
        except Failure as failure:
            return EvictionOutcome(leaving=False, why=str(failure), cause=f"evicting pod {pod.key} failed, {failure}")
        eviction_answered(answer.code)
        if answer.outcome == "evicted":
            pod_drained(reason)
            await self.notices.publish(evicted(pod, reason))
            return EvictionOutcome(leaving=True)
        if answer.outcome == "blocked":
            return EvictionOutcome(leaving=False, why="a PDB blocks", cause=f"evicting pod {pod.key} violates a PDB")
        if answer.outcome == "unsupported":
            cause = f"evicting pod {pod.key}, more than one PDB matches it, which eviction does not support"
            return EvictionOutcome(leaving=False, why="several PDBs match", cause=cause)
        return EvictionOutcome(leaving=True)  # gone, or another pod has its name

    async def _force(self, pod: Pod, deadline: float, reason: str) -> EvictionOutcome:
        grace = forced_grace(deadline, self.now())
        await self.notices.publish(deleted_by_force(pod, grace))
        try:
            await self.pods.delete(pod, grace)
        except Failure as failure:
            return EvictionOutcome(leaving=False, why=str(failure), cause=f"deleting pod {pod.key} failed, {failure}")
        if pod.deleting_since is None:
            pod_drained(reason)  # one that was asked before has been counted (T-28)
        return EvictionOutcome(leaving=True)


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """The work's result; a cancellation waits until the work is done, and then takes effect."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
