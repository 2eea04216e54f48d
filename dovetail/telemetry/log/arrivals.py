"""The log lines of a node that comes: from pods that need it to a node that is ready for them."""

from collections.abc import Sequence

from dovetail.messages.plans import ProposedNode
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.resources import format_resources
from dovetail.telemetry.log import words
from dovetail.telemetry.log.saying import few, named, placed, say


def computed(proposed: Sequence[ProposedNode], seconds: float) -> None:
    """A pass proposes nodes: for which pods, and how many."""
    pods = [f"{pod.namespace}/{pod.name}" for node in proposed for pod in node.pods]
    say(words.FOUND_PODS, Pods=few(pods), duration=f"{seconds * 1000:.3f}ms")
    say(words.COMPUTED_CLAIMS, nodeclaims=len(proposed), pods=len(pods))


def prefer_apart(pods: Sequence[str]) -> None:
    """Pending pods have preferences that will keep their nodes from consolidation."""
    if pods:
        say(words.PREFER_APART, pods=few(pods))


def prefer_spread(pods: Sequence[str]) -> None:
    """The same for a preferred spread."""
    if pods:
        say(words.PREFER_SPREAD, pods=few(pods))


def created(claim: NodeClaim, reason: str, instance_types: Sequence[str]) -> None:
    """A claim was created. `reason`: provisioned, or why the node that it replaces is disrupted."""
    say(
        words.CREATED_CLAIM,
        controller="" if reason == "provisioned" else "disruption",
        NodePool=named(claim.labels.get(names.NODE_POOL, "")),
        NodeClaim=named(claim.name),
        requests=format_resources(claim.requests),
        instance_types=few(instance_types),
    )


def launched(claim: NodeClaim) -> None:
    """The instance is recorded on the claim."""
    say(
        words.LAUNCHED_CLAIM,
        claim.name,
        provider_id=claim.provider_id,
        **placed(claim.labels),
        allocatable=format_resources(claim.allocatable),
    )


def launch_failed(claim: NodeClaim, reason: str, error: str) -> None:
    """Nothing was launched, and nothing will be."""
    pool = named(claim.labels.get(names.NODE_POOL, ""))
    say(words.LAUNCH_FAILED, claim.name, NodePool=pool, reason=reason, error=error)


def registered(claim: NodeClaim, node: str) -> None:
    say(words.REGISTERED_CLAIM, claim.name, provider_id=claim.provider_id, Node=named(node))


def registration_overdue(claim: NodeClaim, seconds: float) -> None:
    """No node has registered in time."""
    say(words.REGISTRATION_OVERDUE, claim.name, provider_id=claim.provider_id, ttl=f"{seconds:.0f}s")


def initialized(claim: NodeClaim, node: str) -> None:
    """The node is ready for pods."""
    allocatable = format_resources(claim.allocatable)
    say(
        words.INITIALIZED_CLAIM,
        claim.name,
        provider_id=claim.provider_id,
        Node=named(node),
        allocatable=allocatable,
    )
