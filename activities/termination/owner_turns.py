"""Whose turn it is: at most a share of one owner's pods is evicted at once, over all drains of the process.

Each eviction asks it, beside the pace; there is one per process. One pass over the cache counts the pods of all owners
that are asked about, rarely enough to cost about a hundredth of a core however many pods there are. Evictions are
remembered for a minute; a worker that starts anew counts the pods that are not Ready yet.
"""

from collections.abc import Callable, Collection
from typing import Final

from dovetail.model.pods import Pod
from dovetail.termination import timing
from dovetail.termination.owner_share import (
    Eviction,
    OwnerKey,
    OwnerPods,
    count_pods,
    key_of,
    owner_with_turns,
    turns,
)

FORGOTTEN_AFTER: Final = 10.0  # an owner that nobody has asked about for so long is not counted any more


class OwnerTurns:
    """The evictions of the last minute by owner, and the latest count of pods. A share of 0: no limit."""

    def __init__(self, share: float, pods: Callable[[], Collection[Pod]], now: Callable[[], float]) -> None:
        self._share, self._pods, self._now = share, pods, now
        self._evicted: dict[OwnerKey, dict[str, Eviction]] = {}  # owner -> pod UID -> eviction
        self._asked: dict[OwnerKey, float] = {}  # owner -> moment
        self._counts: dict[OwnerKey, OwnerPods] = {}
        self._counted, self._of = float("-inf"), 0

    def take(self, pod: Pod, *, waits: bool = True) -> str:
        """What holds the pod; empty where it may leave, and it then counts as on its way. `waits`: whether it may be
        held at all."""
        owner = owner_with_turns(pod) if self._share else None
        if owner is None:
            return ""
        key = key_of(pod, owner)
        found = self._count(key)
        evicted = self._evicted.setdefault(key, {})
        if waits and pod.uid not in evicted:
            if found is None:
                return f"the pods of {owner.kind} {owner.name} are being counted"
            known = turns(found, evicted, self._share, self._now())
            if not known.is_free:
                return known.words(owner)
        evicted.setdefault(pod.uid, Eviction(self._now(), pod.created))
        return ""

    def give_back(self, pod: Pod) -> None:
        """Give a turn back: the pod was not evicted after all."""
        owner = owner_with_turns(pod)
        if owner is not None:
            self._evicted.get(key_of(pod, owner), {}).pop(pod.uid, None)

    def _count(self, owner: OwnerKey) -> OwnerPods | None:
        """The latest count, which is made anew where it is time; None where the owner waits for the next."""
        now = self._now()
        self._asked[owner] = now
        if now - self._counted >= self._of * timing.SECONDS_PER_POD:
            self._forget(now)
            pods = self._pods()
            self._counts, self._counted, self._of = count_pods(pods, self._asked.keys(), now), now, len(pods)
        return self._counts.get(owner)

    def _forget(self, now: float) -> None:
        self._asked = {owner: at for owner, at in self._asked.items() if now - at < FORGOTTEN_AFTER}
        recent = {
            owner: {uid: each for uid, each in pods.items() if now - each.at < timing.TURN_WINDOW}
            for owner, pods in self._evicted.items()
        }
        self._evicted = {owner: pods for owner, pods in recent.items() if pods}
