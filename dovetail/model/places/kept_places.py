"""A kept place: a waiting pod is nominated for the node of the claim that was made for it.

The kube-scheduler tries `status.nominatedNodeName` first and leaves that room to the pod. Its own nomination means that
it makes room by preemption, and nothing is launched for such a pod (PLC-20). Ours names the node of the claim that was
made for a pod, so that the pod counts as before: pending, with a claim of its own.
"""

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_given_up
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot


def planned_pods(claim: NodeClaim) -> list[str]:
    return [uid for uid in claim.annotations.get(names.PLANNED_PODS, "").split(",") if uid]


def keeps_place(claim: NodeClaim | None, uid: str) -> bool:
    """Whether a nomination of that pod for the claim's node is ours."""
    return claim is not None and memory_of(claim.annotations).keeps_places and uid in planned_pods(claim)


def kept_by(pod: Pod, snapshot: Snapshot) -> NodeClaim | None:
    """The claim, leaving or not, that keeps a place for the pod on the node that it is nominated for; None if the
    nomination is not ours."""
    if not pod.nominated_node:
        return None
    node = snapshot.nodes.get(pod.nominated_node)
    if node is not None:
        claim = snapshot.pairing.claim_of(node)
        return claim if keeps_place(claim, pod.uid) else None
    named = (claim for claim in snapshot.claims.values() if claim.node_name == pod.nominated_node)
    return next((claim for claim in named if keeps_place(claim, pod.uid)), None)


def needs_a_node(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether the scheduler has given up on it and nobody else will find it a place (PLC-20, PLQ-36)."""
    if not pod.unschedulable or not is_given_up(pod):  # asked for every pod in every round
        return False
    return not pod.nominated_node or kept_by(pod, snapshot) is not None
