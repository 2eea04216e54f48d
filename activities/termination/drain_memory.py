"""What one attempt to drain a node remembers, and how it describes what still holds the node.

Nothing here matters after a restart: only how long each pod is left alone, and what people read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dovetail.activities.shared.repeated_looks import longest_pause
from dovetail.activities.termination.evictor import EvictionOutcome
from dovetail.model.pods import Pod
from dovetail.model.workloads import PodDisruptionBudget
from dovetail.placement.pdbs import PdbIndex
from dovetail.termination import timing
from dovetail.termination.evictions import Evictions

NAMED: Final = 5  # pods by name in the progress

Budgets = tuple[PodDisruptionBudget, ...]


@dataclass(slots=True)
class DrainMemory:
    """How long to leave each pod alone, why it stays, and when the drain may end at the earliest."""

    started: float
    next_try: dict[str, float] = field(default_factory=dict)  # pod UID -> moment
    pauses: dict[str, float] = field(default_factory=dict)  # pod UID -> the last pause
    why: dict[str, str] = field(default_factory=dict)  # pod UID -> what holds it
    cause: str = ""  # of the last pod that stayed, for the notice on the node
    instance_looked: float = float("-inf")  # when the cloud was last asked for the instance
    by_turns: bool = True  # whether its pods wait for those of the same owner on other nodes
    paused: str = ""  # why no further pod is asked to leave, where a person has paused drains
    minimum_over: float = 0.0  # when the minimum time of a drain is over
    impossible: set[str] = field(default_factory=set)  # UIDs of pods of which it is said that they cannot be moved
    asked: dict[str, float] = field(default_factory=dict)  # pod UID -> when it first waited for its turn
    budgets: dict[str, tuple[Budgets, Budgets]] = field(default_factory=dict)  # pod UID -> of its namespace, its own

    def is_due(self, pod: Pod, now: float) -> bool:
        """Whether the pod has been left alone for long enough."""
        return now >= self.next_try.get(pod.uid, 0.0)

    def hold(self, pod: Pod, why: str, now: float) -> None:
        """It waits for its turn."""
        self.next_try[pod.uid], self.why[pod.uid] = now + timing.TURN_PAUSE, why
        self.cause = f"evicting pod {pod.key} waits, {why}"

    def say(self, pod: Pod, why: str) -> None:
        """What holds it, where it is not for it to ask."""
        self.why[pod.uid] = why
        self.cause = f"pod {pod.key} stays, {why}"

    def look_at_budgets(self, pod: Pod, budgets: Budgets, now: float) -> None:
        """A refused pod is due at once when the PDBs that select it have changed and none holds it any more.

        `budgets`: all of its namespace. Without this it would be left alone for up to ten seconds."""
        if not self.why.get(pod.uid):
            return
        known = self.budgets.get(pod.uid)
        if known is not None and known[0] is budgets:
            return
        index = PdbIndex(budgets, now)
        mine = index.of(pod)
        self.budgets[pod.uid] = (budgets, mine)
        if known is not None and known[1] != mine and not index.blocking(pod):
            self.next_try[pod.uid] = 0.0
            self.pauses.pop(pod.uid, None)

    def note(self, pod: Pod, outcome: EvictionOutcome, now: float) -> None:
        """The pause of a pod that stays doubles each time (TRM-26)."""
        pause = min(timing.LONGEST_PAUSE, self.pauses.get(pod.uid, timing.FIRST_PAUSE / 2) * 2)
        if outcome.leaving:
            pause = max(pause, timing.ACCEPTED_PAUSE)
        self.pauses[pod.uid], self.next_try[pod.uid], self.why[pod.uid] = pause, now + pause, outcome.why
        self.cause = outcome.cause

    def pause(self, now: float) -> float:
        """Until the next pod is due or the minimum time is over, at most until the next look."""
        due = [moment - now for moment in (*self.next_try.values(), self.minimum_over) if moment > now]
        return max(timing.FIRST_PAUSE, min([longest_pause(now - self.started), *due]))

    def describe(self, evictions: Mapping[str, Evictions]) -> str:
        """What holds the node: "3 pods left: web/a (a PDB blocks), web/b (terminating) and 1 more"."""
        waiting = [pod for of_node in evictions.values() for pod in of_node.waiting]
        if not waiting:
            return "no pods left; waiting for any that were bound before the taint was seen"
        protected = {pod.uid for of_node in evictions.values() for pod in of_node.protected}
        named = ", ".join(self._describe_pod(pod, pod.uid in protected) for pod in waiting[:NAMED])
        more = f" and {len(waiting) - NAMED} more" if len(waiting) > NAMED else ""
        left = f"{len(waiting)} pod{'s' * (len(waiting) > 1)} left: {named}{more}"
        return f"{self.paused}; {left}" if self.paused else left

    def _describe_pod(self, pod: Pod, protected: bool) -> str:
        if pod.deleting_since is not None:
            return f"{pod.key} (terminating)"
        if protected:
            return f"{pod.key} (do-not-disrupt)"
        why = self.why.get(pod.uid)
        return f"{pod.key} ({why})" if why else pod.key
