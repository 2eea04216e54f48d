"""Is a registered node ready to take the pods that it was made for?

The checks are in upstream's order, and the first that fails is the answer (LIF-31 to LIF-37). Once initialised a claim
stays so (LIF-38).
"""

from dataclasses import replace

from dovetail.lifecycle.registration import NODE_NOT_FOUND, NodeChange, registered
from dovetail.model.names import DEVICE_DRIVERS, INITIALIZED, READY
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.scheduling.devices import ResourceSlice, expected_drivers, is_whole, newest_slices
from dovetail.model.scheduling.taints import Taint, is_ephemeral

Why = tuple[str, str]


Slices = tuple[ResourceSlice, ...] | None  # of the claim's node; None where devices are ignored


def blocker(claim: NodeClaim, nodes: tuple[Node, ...], slices: Slices = None) -> Why | None:
    """The first (reason, message) that keeps the claim from being initialised, or None."""
    if len(nodes) != 1:
        return NODE_NOT_FOUND
    node = nodes[0]
    return (
        _not_ready(node)
        or _startup_taint(claim, node)
        or _ephemeral_taint(node)
        or _missing_resource(claim, node)
        or _missing_driver(claim, slices)
    )


def registered_and_ready(claim: NodeClaim, node: Node, slices: Slices = None) -> NodeChange:
    """The change that makes the Node the claim's, with the label of an initialised one where it is ready already."""
    change = registered(claim, node)
    joined = replace(node, taints=node.taints if change.taints is None else change.taints)
    if blocker(claim, (joined,), slices) is not None or node.labels.get(INITIALIZED) == "true":
        return change
    return replace(change, labels={**change.labels, INITIALIZED: "true"})


def is_ready(node: Node) -> bool:
    """Whether the kubelet says Ready; a missing condition is not."""
    condition = node.condition(READY)
    return condition is not None and condition.status == "True"


def _not_ready(node: Node) -> Why | None:
    return None if is_ready(node) else ("NodeNotReady", "Node status is NotReady")


def _startup_taint(claim: NodeClaim, node: Node) -> Why | None:
    startup = {(taint.key, taint.effect) for taint in claim.startup_taints}
    for taint in node.taints:
        if (taint.key, taint.effect) in startup:
            return "StartupTaintsExist", f'StartupTaint "{_text(taint)}" still exists'
    return None


def _ephemeral_taint(node: Node) -> Why | None:
    for taint in node.taints:
        if is_ephemeral(taint):
            return "KnownEphemeralTaintsExist", f'KnownEphemeralTaint "{_text(taint)}" still exists'
    return None


def _missing_resource(claim: NodeClaim, node: Node) -> Why | None:
    for resource, amount in sorted(claim.requests.items()):
        if amount and not node.allocatable.get(resource):
            return "ResourceNotRegistered", f'Resource "{resource}" was requested but not registered'
    return None


def _missing_driver(claim: NodeClaim, slices: Slices) -> Why | None:
    """The first driver whose devices its pods were promised and that has published no whole pool (LIF-36, LIF-37)."""
    if slices is None:
        return None
    there = {driver for (driver, _), newest in newest_slices(slices).items() if is_whole(newest)}
    for driver in expected_drivers(claim.annotations.get(DEVICE_DRIVERS, "")):
        if driver not in there:
            return "DRADriverPoolsNotPublished", f'Driver "{driver}" has not published its devices'
    return None


def _text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
