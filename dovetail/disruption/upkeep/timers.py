"""When does a claim expire, and which pod events restart its quiet time (D-163 to D-165, D-181 to D-185)?

The trap avoided: stamping every node anew after a restart, which starts every consolidateAfter timer again (Q-12). What
a fresh list of pods shows is dated by the pods' own times instead.
"""

from collections.abc import Iterable
from typing import Final

from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pod_rules import is_daemon
from dovetail.model.pods import Pod

STAMP_EVERY: Final = 10.0  # seconds; less than the 15 s of validation, so that no movement stays unseen (D-142)


def expires_at(claim: NodeClaim) -> float | None:
    """The moment from which the claim counts as expired; None for Never."""
    return None if claim.expire_after is None else claim.created + claim.expire_after


def is_expired(claim: NodeClaim, now: float) -> bool:
    """D-181: at the boundary it is."""
    moment = expires_at(claim)
    return claim.deleting_since is None and moment is not None and now >= moment


def claim_of(pod: Pod, nodes: Iterable[Node], claims: Iterable[NodeClaim]) -> NodeClaim | None:
    """The claim whose node the pod is bound to; None without one, or with two (D-164)."""
    node = next((n for n in nodes if n.name == pod.node_name), None) if pod.node_name else None
    if node is None or not node.provider_id:
        return None
    matching = [c for c in claims if c.provider_id == node.provider_id]
    return matching[0] if len(matching) == 1 else None


def wants_stamp(claim: NodeClaim, pod: Pod, moment: float) -> bool:
    """Whether this pod's coming or going at that moment is to be written on its claim."""
    if is_daemon(pod):
        return False
    return claim.last_pod_event is None or moment - claim.last_pod_event >= STAMP_EVERY


def stamp_from_list(claim: NodeClaim, pods: Iterable[Pod]) -> float | None:
    """After a restart: the newest start among the node's pods if nobody had stamped it; None to leave the claim."""
    moments = [pod.started or pod.created for pod in pods if not is_daemon(pod)]
    newest = max(moments, default=None)
    if newest is None or (claim.last_pod_event is not None and newest - claim.last_pod_event < STAMP_EVERY):
        return None
    return newest
