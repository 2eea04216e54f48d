"""Claims on their way that no plan of ours made: a predecessor's that was not launched yet, or a person's.

Our own claims name the pods that they were planned for; these name none, so a plan that left them out would launch
nodes for their pods a second time. Upstream stops all planning until they are launched (STA-3, DIS-15), so that one
claim that never launches holds up all pods. Here each counts as a node with room for what it asked for, which is the
sum of the pods that it was made for.
"""

from collections.abc import Iterator
from dataclasses import replace

from dovetail.lifecycle.unfinished import is_ours
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_active
from dovetail.model.places.kept_places import planned_pods
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot

_UNLAUNCHED = "unlaunched:///"  # in place of the providerID, by which nodes and claims are joined


def unplanned_claims(snapshot: Snapshot) -> tuple[NodeClaim, ...]:
    """The claims of our NodeClasses that are neither launched nor leaving, and that no plan of ours made."""
    return tuple(
        claim
        for claim in snapshot.claims.values()
        if not claim.provider_id
        and claim.deleting_since is None
        and not claim.is_true(names.LAUNCHED)
        and names.PLAN not in claim.annotations
        and is_ours(snapshot, claim)
    )


def with_unplanned_as_nodes(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which each unplanned claim is a node with room for what it asked for; so is a claim of ours whose
    pods have no need of it any more: others took the place of those that are gone, or lost their own nodes to them."""
    found = {claim.name: _as_node(claim) for claim in (*unplanned_claims(snapshot), *_with_free_room(snapshot))}
    return replace(snapshot, claims={**snapshot.claims, **found}) if found else snapshot


def _with_free_room(snapshot: Snapshot) -> Iterator[NodeClaim]:
    """Our own claims that are not launched, and that were made for pods of which some need them no more."""
    for claim in snapshot.claims.values():
        if claim.provider_id or claim.deleting_since is not None or names.PLANNED_BUFFERS in claim.annotations:
            continue
        pods = [snapshot.pods.get(uid) for uid in planned_pods(claim)]
        if not all(_may_come(snapshot, pod) for pod in pods):
            yield claim


def _may_come(snapshot: Snapshot, pod: Pod | None) -> bool:
    """Whether it may still need a place: it has none, or its node is leaving."""
    if pod is None or not is_active(pod):
        return False
    node = snapshot.nodes.get(pod.node_name)
    return node is None or snapshot.is_leaving(node, snapshot.pairing.claim_of(node))


def _as_node(claim: NodeClaim) -> NodeClaim:
    single = {e.key: e.values[0] for e in claim.requirements if e.operator == "In" and len(e.values) == 1}
    return replace(
        claim,
        provider_id=f"{_UNLAUNCHED}{claim.name}",
        labels={**single, **claim.labels},
        capacity=claim.requests,
        allocatable=claim.requests,
    )
