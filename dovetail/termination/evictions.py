"""Which pods still hold a node, and which of them leave now?

Four tiers leave one after the other (TRM-15); a pod whose own grace would not fit before the deadline is deleted by
force, whatever its tier (TRM-14). A pod that terminates still holds its tier: the next tier begins when it is gone.
"""

from dataclasses import dataclass
from typing import Final

from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.pod_rules import awaits_eviction, is_daemon, is_protected
from dovetail.model.pods import Pod
from dovetail.termination.deadline import tighter
from dovetail.termination.timing import MINIMUM_DRAIN

# Only the two built-in classes have priorities above 1,000,000,000, because users may not define such, so the number
# says the class (TRM-15 names the class; admission sets a pod's priority from it).
SYSTEM_PRIORITY: Final = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Evictions:
    """What one look at a node's pods asks for. Pods are in order of their keys."""

    force: tuple[Pod, ...] = ()  # delete, with what is left of the node's deadline
    let_go: tuple[Pod, ...] = ()  # delete, each with its own grace: the drain is forced
    evict: tuple[Pod, ...] = ()  # ask for an eviction
    protected: tuple[Pod, ...] = ()  # of the tier that leaves now, but they ask not to be disrupted
    waiting: tuple[Pod, ...] = ()  # everything that holds the node, these included
    unjudged: tuple[Unjudged, ...] = ()  # what is wrong with pods that cannot be judged: they hold the node too


def plan_evictions(pods: tuple[Pod, ...], deadline: float | None, now: float, forced: float | None = None) -> Evictions:
    """The evictions of a node with these pods. A pod that cannot be judged is not evicted, since it may be protected:
    it holds the node until it is gone, or until a deadline has passed. `forced`: by when pods have left a drain that is
    forced: each tier at once when it is its turn, and in time for that. It takes no second of their grace, and leaves
    alone what terminates already."""
    judging = Judging()
    waiting: list[Pod] = []
    force: list[Pod] = []
    let_go: list[Pod] = []
    leaving: list[tuple[int, Pod, bool]] = []
    for pod in sorted(pods, key=lambda pod: (pod.key, pod.uid)):
        found = judging.judge(pod, "drain", _judge, pod, deadline, forced, now)
        if found is None:
            continue
        waiting.append(pod)
        if isinstance(found, Unjudged):
            if deadline is not None and now > deadline:
                force.append(pod)
            elif forced is not None and now > forced and pod.deleting_since is None:
                let_go.append(pod)
        elif found.force:
            force.append(pod)
        else:
            leaving.append((found.tier, pod, found.protected))
    first = min((of_pod for of_pod, _, _ in leaving), default=0)
    there = [(of_pod, pod, held) for of_pod, pod, held in leaving if pod.deleting_since is None]
    if forced is not None:
        let_go += [pod for of_pod, pod, _ in there if of_pod == first or must_force(pod, forced, now)]
    asked = [(pod, held) for of_pod, pod, held in there if of_pod == first and forced is None]
    return Evictions(
        force=tuple(force),
        let_go=tuple(let_go),
        evict=tuple(pod for pod, held in asked if not held),
        protected=tuple(pod for pod, held in asked if held),
        waiting=tuple(waiting),
        unjudged=judging.found,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """What holds of one pod that delays the drain."""

    force: bool
    tier: int
    protected: bool


def _judge(pod: Pod, deadline: float | None, forced: float | None, now: float) -> _Judged | None:
    """How the pod leaves; None: it does not delay the drain. Nor does one that was made when all had to have left: by
    then every scheduler has seen the taint, and its owner makes another as often as it goes."""
    due = tighter(deadline, forced)
    if not awaits_eviction(pod, now) or (due is not None and pod.created > due + MINIMUM_DRAIN):
        return None
    return _Judged(
        force=must_force(pod, deadline, now),
        tier=tier(pod),
        protected=is_protected(pod, now),
    )


def must_force(pod: Pod, deadline: float | None, now: float) -> bool:
    """TRM-14: whether the pod leaves in time only by force. All comparisons are strict."""
    if deadline is None:
        return False
    if pod.deleting_since is not None:
        return pod.deleting_since > deadline
    return pod.grace_seconds is not None and now > deadline - pod.grace_seconds


def forced_grace(deadline: float, now: float) -> int:
    """TRM-27: the seconds that the pod still gets; never 0, which would break "at most one" (DUR-30)."""
    return max(int(deadline - now), 1)


def tier(pod: Pod) -> int:
    """1 to 4: workload, DaemonSet, critical, critical DaemonSet."""
    critical = pod.priority is not None and pod.priority >= SYSTEM_PRIORITY
    return 1 + is_daemon(pod) + 2 * critical
