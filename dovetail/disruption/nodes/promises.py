"""Which room is promised: a claim that a plan made for certain pods is theirs until they are bound or it is given back.

A promise ends when its pods run elsewhere for good, and five minutes after the node is initialised for pods that are
merely pending. The trap avoided: the kube-scheduler binds a pending pod wherever it likes; one that it has put on
another node is owed nothing by the claim that was made for it, also when that other node leaves one day.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pod_rules import is_active, is_reschedulable
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot

PENDING_CLAIMS_LAST: Final = 300.0  # seconds after initialisation in which the scheduler binds what it will bind


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """By claim name: the UIDs of pods that are owed its room; and the claims that a running disruption has made."""

    owed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    wanted: frozenset[str] = frozenset()

    @property
    def pods(self) -> frozenset[str]:
        """All pods whose room is seen to."""
        return frozenset().union(*self.owed.values())

    def holds(self, claim: NodeClaim | None) -> bool:
        """Whether the claim's room is promised to anybody."""
        return claim is not None and (claim.name in self.wanted or bool(self.owed.get(claim.name)))


def promises_of(snapshot: Snapshot) -> Promises:
    """The promises that the annotations of a snapshot's claims make."""
    made = [c for c in snapshot.claims.values() if names.PLAN in c.annotations and c.deleting_since is None]
    if not made:
        return Promises()
    owners = {
        c.annotations[names.OWNER].rpartition("/")[2]
        for c in snapshot.claims.values()
        if names.OWNER in c.annotations  # a deleting one too: its pods are on their way until it is gone
    }
    leaving = _leaving_nodes(snapshot)
    owed, wanted = {}, set()
    for claim in made:
        if claim.annotations[names.PLAN].partition("/")[0] in owners:
            wanted.add(claim.name)
        pods = frozenset(
            uid
            for uid in claim.annotations.get(names.PLANNED_PODS, "").split(",")
            if uid and _is_owed(snapshot.pods.get(uid), claim, leaving, snapshot.now)
        )
        if pods:
            owed[claim.name] = pods
    return Promises(owed=owed, wanted=frozenset(wanted))


def _leaving_nodes(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(
        c.node_name
        for c in snapshot.claims.values()
        if c.node_name
        and (
            c.deleting_since is not None
            or c.name in snapshot.leaving
            or c.name in snapshot.disrupting
            or names.OWNER in c.annotations
        )
    )


def _is_owed(pod: Pod | None, claim: NodeClaim, leaving: frozenset[str], now: float) -> bool:
    if pod is None or not (is_active(pod) or is_reschedulable(pod)):
        return False
    if pod.node_name:
        return pod.node_name in leaving and pod.node_name != claim.node_name and not _came_later(pod, claim)
    initialized = claim.condition(names.INITIALIZED_CONDITION)
    ready_for = now - initialized.changed if initialized and initialized.status == "True" else 0.0
    return ready_for < PENDING_CLAIMS_LAST


def _came_later(pod: Pod, claim: NodeClaim) -> bool:
    """Whether the pod was pending when the claim was made, and the scheduler has found another node for it since."""
    return pod.started is not None and pod.started > claim.created
