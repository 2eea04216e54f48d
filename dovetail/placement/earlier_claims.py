"""For which pods has a claim been made already, and may that claim still become their node?

The second line of defence against launching without end. A node may turn out smaller than its plan (a type that lies
about its memory, a DaemonSet or a taint that no plan knows of). All the same, a pod with a claim on its way gets no
other claim, and a pod that runs on none of the nodes launched for it gets no further claim for an hour. Each claim
names the pods that it was made for, and its NodePool remembers for a while the claims that ended without them, so a
restart forgets nothing.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Final, Literal

from dovetail.model import before_0_2, names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.pod_rules import is_active, is_daemon, is_mirror
from dovetail.model.places.kept_places import keeps_place, planned_pods
from dovetail.model.pods import Pod
from dovetail.model.scheduling.requirements import compatible, from_labels
from dovetail.model.scheduling.taints import untolerated
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import fits, total
from dovetail.placement.buffers.virtual_pods import buffer_uid, is_virtual, planned_for, virtual_pods
from dovetail.placement.node_terms import node_terms
from dovetail.rules.brake.unused_launches import (
    BRAKE,
    UnusedLaunch,
    remembered_launches,
    resumed_at,
    unused_launch,
    whose_pods,
)

BINDING_SECONDS: Final = 10.0  # the longest pause of the kube-scheduler between two tries of one pod
KEPT_SECONDS: Final = 20.0  # a nomination that is still set has not been tried yet: every failed try clears it
JOINING_SECONDS: Final = 300.0  # a node without a fault joins within this time
# Why a node is not initialised that lacks what its pods ask for: no fault of the NodePool's.
LACKING: Final = frozenset({"ResourceNotRegistered", "DRADriverPoolsNotPublished"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierClaims:
    """What earlier launches mean for pods, by UID: the claim that a pod waits for, the pods that get no further one,
    and those for which nothing is launched now."""

    awaited: Mapping[str, str] = field(default_factory=dict)
    exhausted: Mapping[str, str] = field(default_factory=dict)  # why
    held: Mapping[str, str] = field(default_factory=dict)  # why the brake holds it, or others of its owner
    trials: tuple[tuple[Pod, ...], ...] = ()  # of these, the first of each that can have a node gets one all the same
    refused: Mapping[str, str] = field(default_factory=dict)  # why the API server refuses a claim for it

    def __contains__(self, uid: object) -> bool:
        return uid in self.awaited or uid in self.exhausted or uid in self.held or uid in self.refused

    def kind(self, uid: str) -> Literal["awaited", "refused", "exhausted"]:
        """Which of these applies to the pod."""
        if uid in self.awaited:
            return "awaited"
        return "refused" if uid in self.refused and uid not in self.exhausted else "exhausted"

    def why(self, uid: str) -> str:
        """Why nothing is launched for the pod."""
        if uid in self.awaited:
            return f"NodeClaim {self.awaited[uid]} was made for it and may still become its node"
        return self.exhausted.get(uid, "") or self.refused.get(uid, "") or self.held[uid]


def earlier_claims(
    snapshot: Snapshot,
    pods: Sequence[Pod],
    on_node: Mapping[str, Sequence[Pod]],
    most: int,
    takes: Callable[[str, Pod], bool] = lambda _node, _pod: True,
) -> EarlierClaims:
    """What earlier launches mean for these pods. `most`: claims allowed for one pod within an hour; 0 for no limit.
    `takes`: whether the node of this name takes the pod beside those that run there; without it only requests say."""
    asking = {pod.uid: pod for pod in pods}
    claims = _by_pod(snapshot, asking)
    ended = _ended(snapshot)
    useless = _in_vain_for_buffers(snapshot, pods, on_node, takes) if most else {}
    if not claims and not ended and not useless:
        return EarlierClaims()
    awaited: dict[str, str] = {}
    exhausted: dict[str, str] = {}
    for uid, pod in asking.items():
        if useless and is_virtual(pod):
            if len(made_for := useless.get(buffer_uid(pod), ())) >= most:
                exhausted[uid] = _exhausted_buffer(snapshot, made_for)
            continue
        made = claims.get(uid, [])
        own = [c for c in made if not _has_lost_its_room(snapshot, c, pod, on_node, takes)]
        coming = next((c.name for c in own if may_become_its_node(c, pod, snapshot.now)), None)
        count = len(own) + (sum(ended[known] for known in before_0_2.marks(uid)) if ended else 0)
        if coming is not None:
            awaited[uid] = coming
        elif most and (count >= most or len(made) >= 2 * most):
            exhausted[uid] = _exhausted(max(count, len(made)), 0 if count >= most else len(made) - len(own))
    return EarlierClaims(awaited=awaited, exhausted=exhausted)


def _exhausted(made: int, taken: int) -> str:
    """Why it gets no further claim. `taken`: of how many others have its room, if that is why."""
    others, disagrees = (
        f"other pods have its room on {taken} of them",
        "what it asks for and what the nodes have do not agree",
    )
    return (
        f"{made} NodeClaims were made for it within an hour and it runs on none of their nodes, so no further one is "
        f"made: {others if taken else disagrees}"
    )


def _exhausted_buffer(snapshot: Snapshot, made: Collection[str]) -> str:
    """Why it gets no further node. `made`: the claims of those that were of no use to it."""
    stands = "stand empty and take none of its pods"
    if gone := sum(claim not in snapshot.claims for claim in made):
        stands = f"were of no use to it, and {gone} of them have gone"
    return (
        f"{len(made)} nodes that were made for it within an hour {stands}, so no further one "
        "is made: what its pods ask for and what the nodes have do not agree"
    )


def _in_vain_for_buffers(
    snapshot: Snapshot,
    pods: Iterable[Pod],
    on_node: Mapping[str, Sequence[Pod]],
    takes: Callable[[str, Pod], bool],
) -> dict[str, set[str]]:
    """The claims that were made for each buffer within the hour and are of no use to it, those that have gone or are
    leaving too, by the buffer's UID. One that never joined says nothing where another one has: a large buffer has many
    nodes."""
    asking = {buffer_uid(pod): pod for pod in pods if is_virtual(pod)}
    found: dict[str, set[str]] = {}
    if not asking:
        return found
    for claim, uids in _useless_to_buffers(snapshot, asking, on_node, takes):
        for uid in uids:
            found.setdefault(uid, set()).add(claim.name)
    marks = {known: uid for uid in asking for known in before_0_2.marks(uid)}
    up = _buffers_with_a_node(snapshot)
    for pool in snapshot.pools.values():
        for launch in remembered_launches(pool, snapshot.now):
            claim_now = snapshot.claims.get(launch.claim)
            if claim_now is None or _is_closed(claim_now):
                for uid in {marks[mark] for mark in marks.keys() & set(launch.pods)}:
                    if launch.whose.owners or uid not in up:
                        found.setdefault(uid, set()).add(launch.claim)
    return found


def _buffers_with_a_node(snapshot: Snapshot) -> frozenset[str]:
    """The UIDs of the buffers of which a node has come up."""
    made = ((claim, claim.annotations.get(names.PLANNED_BUFFERS, "")) for claim in snapshot.claims.values())
    return frozenset(
        uid for claim, text in made if text and up_for(claim, snapshot.now) is not None for uid in planned_for(text)
    )


def _useless_to_buffers(
    snapshot: Snapshot,
    asking: Mapping[str, Pod],
    on_node: Mapping[str, Iterable[Pod]],
    takes: Callable[[str, Pod], bool],
) -> Iterator[tuple[NodeClaim, list[str]]]:
    """The claims that were made for buffers, have come up within the hour, are empty and take not one of the virtual
    pods, with the UIDs of those buffers. Those that a person has closed say nothing; of one that a disruption has
    closed only its size and what else is written on it."""
    counts_again = _made_since_resumed(snapshot)
    for claim in snapshot.claims.values():
        planned = planned_for(claim.annotations.get(names.PLANNED_BUFFERS, "")).keys() & asking.keys()
        up = up_for(claim, snapshot.now)
        if not planned or up is None or not BINDING_SECONDS <= up <= BRAKE.window or not counts_again(claim):
            continue
        node = snapshot.pairing.node_of(claim)
        if node is None or node.unschedulable:
            continue
        ready, here = node.condition(names.READY), on_node.get(node.name, ())
        if ready is not None and ready.status == "True" and not _is_used(here):
            suits = partial(_would_take, node, here) if _is_closed(claim) else partial(takes, node.name)
            if uids := sorted(uid for uid in planned if not suits(asking[uid])):
                yield claim, uids


def _would_take(node: Node, here: Iterable[Pod], pod: Pod) -> bool:
    """Whether an empty node would take the pod if no disruption had closed it."""
    node = replace(node, taints=tuple(taint for taint in node.taints if taint.key != names.DISRUPTED_TAINT))
    present = [each.requests for each in here if is_active(each)]
    return _suits(node, pod) and fits(total([*present, pod.requests]), node.allocatable)


def _is_closed(claim: NodeClaim) -> bool:
    """Whether it leaves, or is to."""
    return claim.deleting_since is not None or names.OWNER in claim.annotations


def _made_since_resumed(snapshot: Snapshot) -> Callable[[NodeClaim], bool]:
    resumed = {pool.name: resumed_at(pool) for pool in snapshot.pools.values()}
    return lambda claim: claim.created >= resumed.get(claim.labels.get(names.NODE_POOL, ""), 0.0)


def up_for(claim: NodeClaim, now: float) -> float | None:
    """For how many seconds it has been initialised; None: it is not."""
    initialized = claim.condition(names.INITIALIZED_CONDITION)
    return now - initialized.changed if initialized is not None and initialized.status == "True" else None


def _by_pod(snapshot: Snapshot, asking: Mapping[str, Pod]) -> dict[str, list[NodeClaim]]:
    """The claims that name each of these pods, without those whose nodes came up too long ago to matter to one."""
    found: dict[str, list[NodeClaim]] = {}
    if not asking:
        return found
    counts_again = _made_since_resumed(snapshot)
    for claim in snapshot.claims.values():
        here = [uid for uid in planned_pods(claim) if uid in asking]  # none for most claims of a large cluster
        if not here or not had_its_chance(claim) or not counts_again(claim):
            continue
        if (up_for(claim, snapshot.now) or 0.0) > BRAKE.window:
            continue
        for uid in here:
            found.setdefault(uid, []).append(claim)
    return found


def _ended(snapshot: Snapshot) -> Counter[str]:
    """How many claims have ended without the pod that they were made for, by the pod's mark."""
    found: Counter[str] = Counter()
    for pool in snapshot.pools.values():
        for launch in remembered_launches(pool, snapshot.now):
            if launch.claim not in snapshot.claims:
                found.update(launch.pods)
    return found


def had_its_chance(claim: NodeClaim) -> bool:
    """Whether a claim that ends existed long enough for its pods to reach its node.

    A claim that AWS or a person removed earlier proves nothing about its pods, so it does not count against them. One
    that was given up because its node stayed empty, or never joined, does.
    """
    if claim.deleting_since is None or names.OWNER in claim.annotations:
        return True
    up = up_for(claim, claim.deleting_since)
    return claim.deleting_since - claim.created >= JOINING_SECONDS if up is None else up >= BINDING_SECONDS


def may_become_its_node(claim: NodeClaim, pod: Pod, now: float) -> bool:
    """Whether the pod may still run there later. A pod that runs on a leaving node follows when it is evicted."""
    if claim.deleting_since is not None:
        return False
    up = up_for(claim, now)
    if pod.node_name or up is None:
        return True
    kept = bool(pod.nominated_node) and pod.nominated_node == claim.node_name and keeps_place(claim, pod.uid)
    return up < (KEPT_SECONDS if kept else BINDING_SECONDS)


def _has_lost_its_room(
    snapshot: Snapshot,
    claim: NodeClaim,
    pod: Pod,
    on_node: Mapping[str, Sequence[Pod]],
    takes: Callable[[str, Pod], bool],
) -> bool:
    """Whether the node is gone, or would hold the pod if others had not taken its room, or did not keep it away from
    there or from elsewhere: then the pod needs another node at once. Pods that only took spare room do not count."""
    if snapshot.has_lost_its_node(claim):
        return True
    node = snapshot.pairing.node_of(claim) if claim.provider_id else None
    present = [p for p in on_node.get(node.name, ()) if is_active(p)] if node is not None else []
    if node is None or not _suits(node, pod):
        return False
    planned = set(planned_pods(claim))
    own = [p for p in present if p.uid in planned or is_daemon(p) or is_mirror(p)]
    if len(own) == len(present) and not (pod.shape.spread or pod.shape.affinity or pod.shape.anti_affinity):
        return False
    if not fits(total([p.requests for p in (*own, pod)]), node.allocatable):
        return False
    return not (fits(total([p.requests for p in (*present, pod)]), node.allocatable) and takes(node.name, pod))


def _suits(node: Node, pod: Pod) -> bool:
    """Whether the pod accepts the node's taints and labels."""
    terms, labels = node_terms(pod.shape), from_labels(node.labels)
    chosen = not terms or any(compatible(labels, term) for term in terms)
    return chosen and untolerated(node.taints, pod.shape.tolerations) is None


def left_pending(claim: NodeClaim, pods: Mapping[str, Pod]) -> tuple[str, ...]:
    """The claim's planned pods that are pending as it ends; none if the claim was of use.

    It was of use to pods that are gone now, because their node was drained. Pods that run elsewhere prove nothing.
    """
    planned = planned_pods(claim)
    here = [
        uid for uid in planned if uid not in pods or not pods[uid].node_name or pods[uid].node_name == claim.node_name
    ]
    pending = tuple(uid for uid in here if uid in pods and not pods[uid].node_name and is_active(pods[uid]))
    return pending if 2 * len(pending) >= len(here) else ()


def lacks_what_pods_ask_for(claim: NodeClaim) -> bool:
    """Whether its node has joined and waits for a device or a resource that its pods ask for."""
    condition = claim.condition(names.INITIALIZED_CONDITION)
    return condition is not None and condition.status != "True" and condition.reason in LACKING


def launch_in_vain(
    claim: NodeClaim, pods: Mapping[str, Pod], now: float, buffers: Mapping[str, Pod] = MappingProxyType({})
) -> UnusedLaunch | None:
    """What its NodePool remembers of a claim that ends; None if it was of use. Its pods are named only if they could
    have reached its node. `buffers`: those to which it was of no use, each with one of its virtual pods, by UID."""
    pending = left_pending(claim, pods)
    if not pending and not buffers:
        return None
    came_up = claim.is_true(names.INITIALIZED_CONDITION) or lacks_what_pods_ask_for(claim)
    whose = whose_pods([*(pods[uid] for uid in pending), *buffers.values()]) if came_up else None
    return unused_launch(claim.name, now, [*(pending if had_its_chance(claim) else ()), *buffers], whose)


def in_vain_for_buffers(claim: NodeClaim, snapshot: Snapshot) -> dict[str, Pod]:
    """The buffers to which a claim that ends was of no use, each with one of its virtual pods, by UID: its node never
    came up, or stands and is too small for them, or does not suit them."""
    planned = planned_for(claim.annotations.get(names.PLANNED_BUFFERS, ""))
    if not planned:
        return {}
    virtual = virtual_pods(snapshot)
    asking = {uid: p for p in (*virtual.pending, *virtual.promised) if (uid := buffer_uid(p)) in planned}
    if not claim.is_true(names.INITIALIZED_CONDITION):
        return asking if had_its_chance(claim) else {}
    alone = replace(snapshot, claims={claim.name: claim})
    found = _useless_to_buffers(alone, asking, snapshot.pods_by_node, lambda _node, _pod: True)
    return {uid: asking[uid] for _, uids in found for uid in uids}


def used_claims(snapshot: Snapshot, on_node: Mapping[str, Iterable[Pod]]) -> frozenset[str]:
    """The claims on whose nodes pods run that are neither a DaemonSet's nor the node's own."""
    return frozenset(
        claim.name
        for claim in snapshot.claims.values()
        if (node := snapshot.pairing.node_of(claim) if claim.provider_id else None) is not None
        and _is_used(on_node.get(node.name, ()))
    )


def _is_used(pods: Iterable[Pod]) -> bool:
    return any(is_active(p) and not (is_daemon(p) or is_mirror(p)) for p in pods)
