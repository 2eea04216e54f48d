"""What one attempt to drain a node remembers, and how it describes what still holds the node.

Nothing here matters after a restart: only how long each pod is left alone, and the texts for people.
"""

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dovetail.activities.shared.waits.repeated_looks import longest_pause
from dovetail.activities.termination.evictor import EvictionOutcome, EvictionRequest
from dovetail.activities.termination.holds import HoldMemory
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.workloads import PodDisruptionBudget
from dovetail.model.own.drain_rules import Blocker
from dovetail.model.pods import Pod
from dovetail.model.values.listing import shown
from dovetail.placement.pdbs import PdbIndex
from dovetail.termination import timing
from dovetail.termination.evictions import Evictions
from dovetail.termination.ladder import DrainHold, may_be_protected

NAMED: Final = 5  # pods by name in the progress

_MINIMUM: Final = "no pods left; waiting for any that were bound before the taint was seen"

Budgets = tuple[PodDisruptionBudget, ...]


@dataclass(slots=True)
class DrainMemory:
    """How long to leave each pod alone, why it stays, and when the drain may end at the earliest."""

    started: float
    claim: NodeClaim | None = None  # as the last look has found it; None where it is gone, or there is none
    next_try: dict[str, float] = field(default_factory=dict)  # pod UID -> moment
    pauses: dict[str, float] = field(default_factory=dict)  # pod UID -> the last pause
    accepted: set[str] = field(default_factory=set)  # UIDs of pods whose eviction was accepted
    forced: set[str] = field(default_factory=set)  # UIDs of pods that were deleted by force
    why: dict[str, str] = field(default_factory=dict)  # pod UID -> what holds it
    blockers: dict[str, Blocker | None] = field(default_factory=dict)  # pod UID -> the same, of the closed list
    cause: str = ""  # of the last pod that stayed, for the notice on the node
    instance_looked: float = float("-inf")  # when the cloud was last asked for the instance
    by_turns: bool = True  # whether its pods wait for those of the same owner on other nodes
    paused: str = ""  # why no further pod is asked to leave, where a person has paused drains
    force_paused: bool = False  # whether a pause holds also the pods that a force lets go
    hooked: str = ""  # why none is asked to leave yet, where a hook holds the node
    holds: HoldMemory = field(default_factory=HoldMemory)
    minimum_over: float = 0.0  # when the minimum time of a drain is over
    last_pod: float = 0.0  # when a pod held the node last
    said: set[str] = field(default_factory=set)  # UIDs of nodes that say that they are being drained
    impossible: set[str] = field(default_factory=set)  # UIDs of pods of which it is said that they cannot be moved
    moved: dict[str, float] = field(default_factory=dict)  # pod UID -> when its last move began
    asked: dict[str, float] = field(default_factory=dict)  # pod UID -> when it first waited for its turn
    index: tuple[Budgets, PdbIndex] | None = None  # the same budgets, so that all pods share what was worked out
    under_way: dict[asyncio.Task[EvictionOutcome], Pod] = field(default_factory=dict)  # requests without an answer yet
    budgets: dict[str, tuple[Budgets, Budgets]] = field(default_factory=dict)  # pod UID -> of its namespace, its own

    @property
    def why_held(self) -> str:
        """What holds the drain, for the notice on the node."""
        return self.paused or self.hooked or self.cause

    def is_due(self, pod: Pod, now: float) -> bool:
        """Whether the pod has been left alone for long enough, and no request for it is under way."""
        if any(asked.uid == pod.uid for asked in self.under_way.values()):
            return False
        return now >= self.next_try.get(pod.uid, 0.0)

    def begin(self, pod: Pod, request: Coroutine[Any, Any, EvictionOutcome]) -> None:
        """Ask, beside the looks that follow: a request may wait long for the pace, or for its answer, and a deadline of
        another pod must not wait for it."""
        self.under_way[asyncio.create_task(request)] = pod

    async def answers(self) -> list[tuple[Pod, EvictionOutcome]]:
        """What has come of the requests that are answered by now, or within a moment."""
        if self.under_way:
            await asyncio.wait(self.under_way, timeout=timing.ANSWERS)
        done = [task for task in self.under_way if task.done()]
        return [(self.under_way.pop(task), task.result()) for task in done]

    async def end(self) -> None:
        """No request waits for the pace any longer; one that is sent is answered first (`to_the_end`)."""
        for task in self.under_way:
            task.cancel()
        await asyncio.gather(*self.under_way, return_exceptions=True)

    def is_due_by_force(self, pod: Pod, now: float) -> bool:
        """The first time at once, however long the pod was to be left alone before the next request: then its own grace
        counts."""
        return pod.uid not in self.forced or self.is_due(pod, now)

    def request(self, pod: Pod, pool: str, reason: str) -> EvictionRequest:
        repeated, accepted = pod.uid in self.next_try, pod.uid in self.accepted
        return EvictionRequest(pool=pool, reason=reason, repeated=repeated, accepted=accepted)

    def hold(self, pod: Pod, why: str, now: float) -> None:
        self.next_try[pod.uid], self.why[pod.uid] = now + timing.TURN_PAUSE, why
        self.blockers[pod.uid] = Blocker.TURN_WAITS
        self.cause = f"evicting pod {pod.key} waits, {why}"

    def say(self, pod: Pod, why: str, blocker: Blocker | None = None) -> None:
        """Note what holds the pod, where no eviction was refused for it."""
        self.why[pod.uid], self.blockers[pod.uid] = why, blocker
        self.cause = f"pod {pod.key} stays, {why}"

    def look_at_budgets(self, pod: Pod, budgets: Budgets, now: float) -> None:
        """A refused pod is due at once when the PDBs that select it have changed and none blocks it any more.

        `budgets`: all of its namespace. Without this the pod would be left alone for up to ten seconds.
        """
        if not self.why.get(pod.uid):
            return
        known = self.budgets.get(pod.uid)
        if known is not None and known[0] is budgets:
            return
        if self.index is None or self.index[0] is not budgets:
            self.index = (budgets, PdbIndex(budgets, now))
        index = self.index[1]
        mine = index.of(pod)
        self.budgets[pod.uid] = (budgets, mine)
        if known is not None and known[1] != mine and not index.blocking(pod):
            self.next_try[pod.uid] = 0.0
            self.pauses.pop(pod.uid, None)

    def note(self, pod: Pod, outcome: EvictionOutcome, now: float) -> None:
        """Note why the pod stays. Its pause doubles each time (TRM-26)."""
        last = self.pauses.get(pod.uid)
        pause = timing.EVICTION_PAUSES.first if last is None else timing.EVICTION_PAUSES.after(last)
        if outcome.accepted:
            pause = timing.ACCEPTED_PAUSE
            self.accepted.add(pod.uid)
        elif outcome.leaving:
            pause = max(pause, timing.LEAVING_PAUSE)
        self.pauses[pod.uid], self.next_try[pod.uid], self.why[pod.uid] = pause, now + pause, outcome.why
        self.blockers[pod.uid], self.cause = outcome.blocker, outcome.cause

    def pause(self, now: float) -> float:
        """Until the next pod is due or the minimum time is over, but no longer than until the next look."""
        due = [moment - now for moment in (*self.next_try.values(), self.minimum_over) if moment > now]
        return max(timing.EVICTION_PAUSES.first, min([longest_pause(now - self.started), *due]))

    def describe(self, evictions: Mapping[str, Evictions]) -> str:
        """What holds the node: "3 pods left: web/a (a PDB blocks), web/b (terminating) and 1 more"."""
        waiting = [pod for of_node in evictions.values() for pod in of_node.waiting]
        held = "".join(f"{each}; " for each in (self.paused, self.hooked, self.holds.words) if each)
        if not waiting:
            return f"{held}no pods left" if held else _MINIMUM
        protected = {pod.uid for of_node in evictions.values() for pod in of_node.protected}
        named = shown((self._describe_pod(pod, pod.uid in protected) for pod in waiting), NAMED)
        return f"{held}{len(waiting)} pod{'s' * (len(waiting) > 1)} left: {named}"

    def held_by(self, evictions: Collection[Evictions], reason: str, now: float) -> DrainHold | None:
        """What holds the drain now, from the closed list; None if nothing does that takes a while."""
        waiting = tuple([pod for of_node in evictions for pod in of_node.waiting])
        protected = {pod.uid for of_node in evictions for pod in of_node.protected}
        pods: dict[Blocker, list[Pod]] = {}
        for pod in waiting:
            blocker = Blocker.DO_NOT_DISRUPT if pod.uid in protected else self.blockers.get(pod.uid)
            blocker = Blocker.POD_TERMINATES if pod.deleting_since is not None else blocker
            if blocker is not None:
                pods.setdefault(blocker, []).append(pod)
        whole = {Blocker.PAUSED: self.paused, Blocker.HOOK_WAITS: self.hooked}
        blockers = frozenset(pods) | {blocker for blocker, holds in whole.items() if holds}
        if not blockers:
            return None
        first = next(each for each in Blocker if each in blockers)
        held = tuple(pods.get(first, ()))
        return DrainHold(
            blockers=blockers,
            reason=reason,
            says=whole.get(first) or ", ".join(pod.key for pod in held[:NAMED]),
            held=held,
            protected=may_be_protected(waiting, now),
            first_eviction=True,
        )

    def _describe_pod(self, pod: Pod, protected: bool) -> str:
        if pod.deleting_since is not None:
            return f"{pod.key} (terminating)"
        if protected:
            return f"{pod.key} (do-not-disrupt)"
        why = self.why.get(pod.uid)
        return f"{pod.key} ({why})" if why else pod.key
