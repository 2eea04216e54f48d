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
from dovetail.model.pod_rules import is_active
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
    """The snapshot in which each unplanned claim is a node with room for what it asked for; so is a claim of ours of
    whose pods some are gone, because the pods that took their place have their room there."""
    found = {claim.name: _as_node(claim) for claim in (*unplanned_claims(snapshot), *_with_free_room(snapshot))}
    return replace(snapshot, claims={**snapshot.claims, **found}) if found else snapshot


def _with_free_room(snapshot: Snapshot) -> Iterator[NodeClaim]:
    """Our own claims that are not launched, and that were made for pods of which some have ended or were replaced."""
    for claim in snapshot.claims.values():
        if claim.provider_id or claim.deleting_since is not None or names.PLANNED_BUFFERS in claim.annotations:
            continue
        pods = [snapshot.pods.get(uid) for uid in claim.annotations.get(names.PLANNED_PODS, "").split(",") if uid]
        if any(pod is None or not is_active(pod) for pod in pods):
            yield claim


def _as_node(claim: NodeClaim) -> NodeClaim:
    single = {e.key: e.values[0] for e in claim.requirements if e.operator == "In" and len(e.values) == 1}
    return replace(
        claim,
        provider_id=f"{_UNLAUNCHED}{claim.name}",
        labels={**single, **claim.labels},
        capacity=claim.requests,
        allocatable=claim.requests,
    )
