"""Which room is promised: the room of a claim that a plan made for certain pods.

A promise holds until its pods run on the claim's node or on another one that stays, or the claim is deleted; for
pending pods it ends five minutes after the node is initialised. The kube-scheduler binds a pending pod wherever it
likes. A pod bound elsewhere loses its right to the claim's room, even if that other node leaves later.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_active, is_reschedulable
from dovetail.model.places.kept_places import planned_pods
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot

PENDING_CLAIMS_LAST: Final = 300.0  # seconds after initialisation in which the scheduler binds what it will bind


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """The UIDs of the pods to which each claim's room is promised, and the claims made by a running disruption."""

    by_claim: Mapping[str, frozenset[str]] = field(default_factory=dict)
    replacements: frozenset[str] = frozenset()

    @property
    def pods(self) -> frozenset[str]:
        return frozenset().union(*self.by_claim.values())

    def holds(self, claim: NodeClaim | None) -> bool:
        return claim is not None and (claim.name in self.replacements or bool(self.by_claim.get(claim.name)))


def promises_of(snapshot: Snapshot) -> Promises:
    """The promises made by the annotations of a snapshot's claims."""
    made = [c for c in snapshot.claims.values() if c.plan and c.deleting_since is None]
    if not made:
        return Promises()
    owners = {
        c.annotations[names.OWNER].rpartition("/")[2]
        for c in snapshot.claims.values()
        if names.OWNER in c.annotations  # a deleting one too: its pods are on their way until it is gone
    }
    leaving = _leaving_nodes(snapshot)
    by_claim, replacements = {}, set()
    for claim in made:
        if claim.plan in owners:
            replacements.add(claim.name)
        pods = frozenset(
            uid for uid in planned_pods(claim) if _still_needs(snapshot.pods.get(uid), claim, leaving, snapshot.now)
        )
        if pods:
            by_claim[claim.name] = pods
    return Promises(by_claim=by_claim, replacements=frozenset(replacements))


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


def _still_needs(pod: Pod | None, claim: NodeClaim, leaving: frozenset[str], now: float) -> bool:
    if pod is None or not (is_active(pod) or is_reschedulable(pod)):
        return False
    if pod.node_name:
        return pod.node_name in leaving and pod.node_name != claim.node_name and not _was_bound_elsewhere(pod, claim)
    initialized = claim.condition(names.INITIALIZED_CONDITION)
    ready_for = now - initialized.changed if initialized and initialized.status == "True" else 0.0
    return ready_for < PENDING_CLAIMS_LAST


def _was_bound_elsewhere(pod: Pod, claim: NodeClaim) -> bool:
    """Whether the pod was pending when the claim was made, and the scheduler has found another node for it since."""
    return pod.started is not None and pod.started > claim.created
