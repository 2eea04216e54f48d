"""Moves the pods of Deployments of one replica off a node: begins each move once, watches it, and takes it back.

Every look works out from the Deployment alone how far its move is (`dovetail/model/places/moves.py`), so a worker that
comes back continues where another stopped. Each change is written at the version that it was decided on, so that two
workers, or a look at an old cache, begin no move twice.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from dovetail.activities.termination.drain_memory import DrainMemory
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.evictor import EvictionOutcome, to_the_end
from dovetail.model.nodes import Node
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.workloads import Deployment, RollOut
from dovetail.model.own.drain_rules import Blocker
from dovetail.model.places.move_changes import beginning, ending, taking_back, undone, written_by
from dovetail.model.places.moves import RETRY_SECONDS, MoveStep, MoveVerdict, is_to_be_taken_back
from dovetail.model.pods import Pod
from dovetail.model.values.time import format_time
from dovetail.notices.moves import UNDONE, move_begun, move_called_off, move_failed, move_impossible, moved
from dovetail.ports.failures import Conflict, Failure, Permanent
from dovetail.ports.objects import Deployments, Notices
from dovetail.ports.view import MoveLookups
from dovetail.telemetry.metrics.ours.moves import move_ended, move_took
from dovetail.termination.leaving import leaving_taints

_log = logging.getLogger(__name__)

TRIES: Final = 5  # a roll-out writes its Deployment's status every moment; after this the step is retried later


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTerms:
    """The node that is drained, by when, whose share of the pace is used, and how. `urgent`: nobody waits for a move,
    as when somebody deletes the node; `may_leave`: whether a pod may be asked to leave now, without which no further
    move begins."""

    node: Node
    pool: str
    deadline: float | None
    urgent: bool
    may_leave: Callable[[Pod], Awaitable[bool]]


class Mover:
    """Moves pods at the pace that evictions share."""

    def __init__(
        self,
        deployments: Deployments,
        lookups: MoveLookups,
        notices: Notices,
        pace: EvictionPace,
        now: Callable[[], float],
    ) -> None:
        self.deployments, self.lookups, self.notices = deployments, lookups, notices
        self.pace, self.now = pace, now

    async def look(self, pods: Iterable[Pod], terms: MoveTerms, memory: DrainMemory) -> tuple[Pod, ...]:
        """Do what is due; answers which of these pods remain to be evicted."""
        moves, judging, evicted = self.lookups.moves(), Judging(), list[Pod]()
        for pod in pods:
            verdict = judging.judge(pod, "move", moves.verdict, pod, terms.node.uid, terms.deadline)
            if isinstance(verdict, Unjudged):
                memory.say(pod, verdict.says, Blocker.MOVE_HELD)
            elif verdict.step is MoveStep.EVICT or (terms.urgent and not verdict.is_wished):
                await self._say_impossible(pod, verdict, memory)
                evicted.append(pod)
            elif verdict.step in (MoveStep.BEGIN, MoveStep.TAKE_BACK):
                await self._act(pod, verdict, terms, memory)
            else:
                memory.say(pod, verdict.says, Blocker.MOVE_HELD)
        return tuple(evicted)

    async def end(self, node: Node, left: Iterable[Pod], memory: DrainMemory) -> bool:
        """End the finished moves from this node, even if the old pod is gone; answers whether none is left. `left`: its
        pods that have not gone: a move whose template somebody else has put back has moved none of them."""
        found = self.lookups.moves_from(node.uid)
        if not found:
            return True
        moves = self.lookups.moves()
        stays = {above.uid: pod for pod in left if (above := moves.deployment_of(pod)) is not None}
        for deployment in found:
            roll_out, pod = _of(deployment), stays.get(deployment.uid)
            begun, change = roll_out.begun, self._end
            if not roll_out.settled:
                if begun is None or not is_to_be_taken_back(roll_out, begun, self.now()):
                    continue
                change = self._take_back
                if pod is not None:
                    memory.moved.pop(pod.uid, None)  # we put the template back, and nobody else
            elif pod is not None and begun is not None and roll_out.moved != written_by(begun):
                change = self._undone
            try:
                await to_the_end(change(deployment, node))
            except Failure as failure:
                _log.debug("Deployment %s: %s", deployment.key, failure)  # looked at again
        return False

    async def undo(self, node: Node, pods: Callable[[], Awaitable[Iterable[Pod]]]) -> None:
        """Take back what is under way, because the node stays. Read from the API server, since a move may have begun a
        moment ago. If the right to do so is missing, that is logged, and the node is released all the same."""
        left = await pods()
        moves, seen = self.lookups.moves(), {d.uid: d for d in self.lookups.moves_from(node.uid)}
        for pod in left:
            found = moves.deployment_of(pod)
            if found is not None and found.roll_out is not None and found.roll_out.replicas == 1:
                seen.setdefault(found.uid, found)
        for deployment in seen.values():
            try:
                await self._undo(deployment, node)
            except Permanent as failure:
                _log.warning("the move of Deployment %s is not taken back: %s", deployment.key, failure)

    async def _undo(self, deployment: Deployment, node: Node) -> None:
        for attempt in range(TRIES):
            live = await self.deployments.read(deployment)
            roll_out = live.roll_out if live is not None else None
            begun = roll_out.begun if roll_out is not None else None
            if live is None or roll_out is None or begun is None or begun.node != node.uid:
                return
            ours = roll_out.generation == begun.generation and not roll_out.settled
            change = taking_back(roll_out, begun, self.now(), failed=False) if ours else ending()
            try:
                await self.deployments.annotate(live, change)
            except Conflict:
                if attempt == TRIES - 1:
                    raise
                continue
            if ours:
                move_ended("called off")
                await self.notices.publish(move_called_off(live, node))
            return

    async def _act(self, pod: Pod, verdict: MoveVerdict, terms: MoveTerms, memory: DrainMemory) -> None:
        deployment, node = verdict.deployment, terms.node
        assert deployment is not None  # only a Deployment is moved
        if not memory.is_due(pod, self.now()):
            return
        if verdict.step is MoveStep.TAKE_BACK:
            memory.moved.pop(pod.uid, None)
            memory.begin(pod, self._outcome(pod, self._take_back(deployment, node)))
        elif leaving_taints(node) is not None:  # its new pod could come to this very node, which may stay
            memory.say(pod, "its node is not tainted")
        elif self.now() - memory.moved.get(pod.uid, -inf) < RETRY_SECONDS:
            says = f"somebody has undone its move of {format_time(memory.moved[pod.uid])}, which is tried again later"
            memory.say(pod, says, Blocker.MOVE_HELD)
        elif await terms.may_leave(pod):
            memory.begin(pod, self._at_pace(pod, deployment, terms, memory))

    async def _at_pace(
        self, pod: Pod, deployment: Deployment, terms: MoveTerms, memory: DrainMemory
    ) -> EvictionOutcome:
        await self.pace.wait(terms.pool)
        if not await terms.may_leave(pod):
            return EvictionOutcome(leaving=False)
        outcome = await self._outcome(pod, self._begin(deployment, terms.node))
        if outcome.leaving:
            memory.moved[pod.uid] = self.now()
        return outcome

    async def _outcome(self, pod: Pod, change: Coroutine[Any, Any, bool]) -> EvictionOutcome:
        """What came of a change; where the Deployment has changed meanwhile, the next look decides anew."""
        try:
            await to_the_end(change)
        except Failure as failure:
            cause = f"moving pod {pod.key} failed, {failure}"
            return EvictionOutcome(
                leaving=False, why="" if isinstance(failure, Conflict) else str(failure), cause=cause
            )
        return EvictionOutcome(leaving=True, why="it is being moved")

    async def _begin(self, deployment: Deployment, node: Node) -> bool:
        roll_out = _of(deployment)
        if await self.deployments.annotate(deployment, beginning(roll_out, node.uid, self.now())) is not None:
            await self.notices.publish(move_begun(deployment, node))
        return True

    async def _take_back(self, deployment: Deployment, node: Node) -> bool:
        roll_out = _of(deployment)
        assert roll_out.begun is not None  # else there is nothing to take back
        change = taking_back(roll_out, roll_out.begun, self.now(), failed=True)
        if await self.deployments.annotate(deployment, change) is not None:
            move_ended("failed")
            await self.notices.publish(*move_failed(deployment, node))
        return True

    async def _undone(self, deployment: Deployment, node: Node) -> bool:
        if await self.deployments.annotate(deployment, undone(_of(deployment), self.now())) is not None:
            move_ended("failed")
            await self.notices.publish(*move_failed(deployment, node, UNDONE))
        return True

    async def _end(self, deployment: Deployment, node: Node) -> bool:
        roll_out = _of(deployment)
        assert roll_out.begun is not None  # it was found by it
        if await self.deployments.annotate(deployment, ending()) is not None:
            move_ended("moved")
            move_took(self.now() - roll_out.begun.since)
            await self.notices.publish(moved(deployment, node))
        return True

    async def _say_impossible(self, pod: Pod, verdict: MoveVerdict, memory: DrainMemory) -> None:
        if verdict.why is not None and pod.uid not in memory.impossible:
            memory.impossible.add(pod.uid)
            move_ended("impossible", verdict.why)
            await self.notices.publish(move_impossible(pod, verdict.why))


class NoMoves:
    """Where moves are turned off: each pod remains to be evicted."""

    async def look(self, pods: Iterable[Pod], terms: MoveTerms, memory: DrainMemory) -> tuple[Pod, ...]:
        return tuple(pods)

    async def end(self, node: Node, left: Iterable[Pod], memory: DrainMemory) -> bool:
        return True

    async def undo(self, node: Node, pods: Callable[[], Awaitable[Iterable[Pod]]]) -> None:
        return None


def _of(deployment: Deployment) -> RollOut:
    assert deployment.roll_out is not None  # only those are found whose roll-out is read
    return deployment.roll_out
