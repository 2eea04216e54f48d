"""How many pods of one owner may be on their way at once, although no PDB says anything?

Over all drains together, a share of the owner's pods and at least one. A pod is on its way from its eviction until one
that was created since is Ready in its place, or is evicted in its turn: a pod that moved twice is missing once. Pods
that are young and not Ready count in any case: their eviction may have been another worker's, or this one's before it
was restarted. Pods of Jobs and DaemonSets, static pods and those without a controller wait for no other.

Who creates pods says whose they are, and how many. So an owner is known by its namespace too, and pods that have stood
for long and serve nobody make the share no larger.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from dovetail.model.objects.pod_rules import is_active
from dovetail.model.pods import Owner, Pod, controller_of
from dovetail.termination import timing

WITHOUT_TURNS: Final = frozenset({"Job", "DaemonSet", "Node"})
OwnerKey = tuple[str, str]  # namespace and UID of a controller
ROUNDING: Final = 1e-9  # 0.29 of 100 pods are 29


@dataclass(slots=True, kw_only=True)
class OwnerPods:
    """What one count of the cluster's pods has found of one owner's."""

    standing: int = 0  # neither ended nor deleted, and Ready or young
    arriving: int = 0  # of these: young, and not Ready
    arrived: dict[str, float] = field(default_factory=dict)  # those that are young and Ready, by UID: when created


@dataclass(frozen=True, slots=True)
class Eviction:
    """When a pod was evicted, and when it had been created."""

    at: float
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """How many of an owner's pods are on their way, and how many may be."""

    taken: int
    allowed: int
    standing: int

    @property
    def is_free(self) -> bool:
        return self.taken < self.allowed

    def words(self, owner: Owner) -> str:
        """What people read: "3 of 12 pods of ReplicaSet web-abc are on their way"."""
        return f"{self.taken} of {self.standing} pods of {owner.kind} {owner.name} are on their way"


def owner_with_turns(pod: Pod) -> Owner | None:
    """The controller whose pods leave by turns; None for a pod that waits for no other."""
    owner = controller_of(pod.owners)
    return None if owner is None or owner.kind in WITHOUT_TURNS else owner


def key_of(pod: Pod, owner: Owner) -> OwnerKey:
    return pod.namespace, owner.uid


def count_pods(pods: Collection[Pod], owners: Collection[OwnerKey], now: float) -> dict[OwnerKey, OwnerPods]:
    """The pods of these owners, in one pass over all."""
    found, uids = {key: OwnerPods() for key in owners}, {uid for _, uid in owners}
    # First what can be said of one of 100,000 pods in the least time.
    candidates = [p for p in pods if p.owners and (p.owners[0].uid in uids or len(p.owners) > 1)]
    for pod in candidates:
        owner = owner_with_turns(pod)
        of_owner = found.get(key_of(pod, owner)) if owner is not None else None
        if of_owner is None or not is_active(pod) or not (pod.ready or is_young(pod, now)):
            continue
        of_owner.standing += 1
        if is_young(pod, now) and pod.ready:
            of_owner.arrived[pod.uid] = pod.created
        elif is_young(pod, now):
            of_owner.arriving += 1
    return found


def is_young(pod: Pod, now: float) -> bool:
    """Whether it was created so short a time ago that it may take the place of one that was evicted."""
    return now - pod.created < timing.TURN_WINDOW + 1  # written in whole seconds, rounded down


def turns(found: OwnerPods, evicted: Mapping[str, Eviction], share: float, now: float) -> Turns:
    """The turns by one count, which may be a little old, and by the evictions of that owner's pods by UID."""
    recent = {uid: each for uid, each in evicted.items() if now - each.at < timing.TURN_WINDOW}
    first = math.floor(min((each.at for each in recent.values()), default=now))  # creation is written in whole seconds
    came = found.arrived | {uid: each.created for uid, each in recent.items()}
    replaced = sum(created >= first for created in came.values())
    allowed = max(1, math.floor(share * found.standing + ROUNDING))
    return Turns(taken=max(len(recent) - replaced, found.arriving), allowed=allowed, standing=found.standing)


def waits_for_turn(pod: Pod, deadline: float | None, asked: float, now: float) -> bool:
    """Whether a pod that first asked at that moment still waits. Not one that serves nobody, nor one that the deadline
    would force meanwhile."""
    if not pod.ready and not is_young(pod, now):
        return False
    if now - asked >= timing.LONGEST_TURN:
        return False
    return deadline is None or pod.grace_seconds is None or now + timing.LONGEST_TURN <= deadline - pod.grace_seconds
