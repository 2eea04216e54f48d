"""What must a Node carry once it is known to be a claim's?

Everything is written in one change: finalizer, owner, taints, labels and annotations, the unregistered taint taken off,
the label set. A registered node is never changed here again (LIF-29): a second change would put back start-up taints
that their owner has taken off.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.model import before_0_2
from dovetail.model.names import (
    DO_NOT_SYNC_TAINTS,
    LAUNCH_REQUEST,
    OWNER,
    PLAN,
    PLANNED_BUFFERS,
    PLANNED_PODS,
    REGISTERED,
    REGISTRATION_HOOK,
    REMEMBERED,
    TERMINATION_FINALIZER,
    UNREGISTERED_TAINT,
)
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pods import Owner
from dovetail.model.scheduling.taints import Taint

CLAIM_API_VERSION: Final = "karpenter.sh/v1"
NODE_NOT_FOUND: Final = ("NodeNotFound", "Node not registered with cluster")
HOOK_PENDING: Final = "RegistrationHookPending"
MULTIPLE_NODES: Final = ("MultipleNodesFound", "Invariant violated, matched multiple nodes")

# What the claim's workflows keep on it; a copy on the Node would sooner or later be wrong.
_STAYS_ON_THE_CLAIM: Final = frozenset(
    {LAUNCH_REQUEST, OWNER, PLAN, PLANNED_BUFFERS, PLANNED_PODS, REGISTRATION_HOOK, REMEMBERED, *before_0_2.PLANNED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """What is to change on a Node; None leaves a list as it is."""

    labels: Mapping[str, str | None]
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...] | None = None
    add_owner: Owner | None = None
    taints: tuple[Taint, ...] | None = None

    def is_empty(self) -> bool:
        lists = (self.finalizers, self.add_owner, self.taints)
        return not self.labels and not self.annotations and all(part is None for part in lists)


def registered(claim: NodeClaim, node: Node) -> NodeChange:
    """The change that makes the Node the claim's (LIF-23, LIF-25)."""
    labels = {**claim.labels, REGISTERED: "true"}
    taints = _taints(claim, node)
    finalizers = (*node.finalizers, TERMINATION_FINALIZER)
    return NodeChange(
        labels=_differing(labels, node.labels),
        annotations=_differing(_shared_annotations(claim), node.annotations),
        finalizers=None if TERMINATION_FINALIZER in node.finalizers else finalizers,
        add_owner=None if _owned(claim, node) else _owner(claim),
        taints=None if taints == node.taints else taints,
    )


def came_unmarked(node: Node) -> bool:
    """LIF-22: neither the unregistered taint nor the label: the node's user data did not set the taint."""
    return REGISTERED not in node.labels and not any(_is_unregistered(taint) for taint in node.taints)


def _taints(claim: NodeClaim, node: Node) -> tuple[Taint, ...]:
    kept = tuple(taint for taint in node.taints if not _is_unregistered(taint))
    if node.labels.get(REGISTERED) == "true" or node.labels.get(DO_NOT_SYNC_TAINTS) == "true":
        return kept
    for taint in (*claim.taints, *claim.startup_taints):
        if not any((taint.key, taint.effect) == (other.key, other.effect) for other in kept):
            kept = (*kept, taint)
    return kept


def _is_unregistered(taint: Taint) -> bool:
    return (taint.key, taint.effect) == (UNREGISTERED_TAINT, "NoExecute")


def _owner(claim: NodeClaim) -> Owner:
    return Owner(api_version=CLAIM_API_VERSION, kind="NodeClaim", name=claim.name, uid=claim.uid)


def _owned(claim: NodeClaim, node: Node) -> bool:
    wanted = (CLAIM_API_VERSION, "NodeClaim", claim.uid)
    return any((owner.api_version, owner.kind, owner.uid) == wanted for owner in node.owners)


def _shared_annotations(claim: NodeClaim) -> dict[str, str]:
    return {key: value for key, value in claim.annotations.items() if key not in _STAYS_ON_THE_CLAIM}


def _differing(wanted: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in sorted(wanted.items()) if found.get(key) != value}
