"""The log lines of a node that leaves: why, and how far it is."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dovetail.messages.orders import DeleteClaim
from dovetail.messages.plans import DisruptionCommand, Target, decision_of
from dovetail.messages.requests import UnmarkRequest
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.telemetry.log import words
from dovetail.telemetry.log.saying import few, named, say

_ORDERED: Final = {
    "expired": words.EXPIRED,
    "unhealthy": words.UNHEALTHY,
    "garbage_collected": words.INSTANCE_LOST,
    "static_scale_down": words.SURPLUS,
    "never_initialized": words.NEVER_INITIALIZED,
}


def disrupting(owner: str, command: DisruptionCommand, marked: Sequence[Target], type_of: Mapping[str, str]) -> None:
    """A disruption whose marks are written. `type_of`: the instance types by the names of the claims."""
    say(
        words.DISRUPTING,
        command_id=owner.rpartition("/")[2],
        reason=command.reason.lower(),
        decision=decision_of(command),
        disrupted_node_count=len(marked),
        replacement_node_count=len(command.replacements),
        pod_count=sum(len(target.pods) for target in marked),
        disrupted_nodes=[_disrupted(target, type_of.get(target.claim, "")) for target in marked],
        replacement_nodes=[{"NodePool": named(each.pool)} for each in command.replacements],
    )


def _disrupted(target: Target, instance_type: str) -> dict[str, Any]:
    return {
        "Node": named(target.node),
        "NodeClaim": named(target.claim),
        "capacity-type": target.capacity_type,
        "instance-type": instance_type,
    }


def undone(request: UnmarkRequest) -> None:
    """A disruption that was not carried out."""
    say(
        words.UNDONE,
        command_id=request.owner.rpartition("/")[2],
        reason=request.reason.lower(),
        outcome=request.rest,
        NodeClaims=few([claim.name for claim in request.claims]),
        why=request.why,
    )


def tainted(node: str, claim: str, *, by_mark: bool = False) -> None:
    say(
        words.TAINTED,
        node,
        controller="disruption" if by_mark else "",
        NodeClaim=named(claim),
        taint_Key=names.DISRUPTED_TAINT,
        taint_Value="",
        taint_Effect="NoSchedule",
    )


def annotated(claim: NodeClaim, deadline: str) -> None:
    """The claim is annotated with the time by which the node must be gone."""
    say(words.ANNOTATED, claim.name, nodeclaim_termination_timestamp=deadline)


def drained(claim: NodeClaim) -> None:
    """No pod that must leave is left on the node."""
    say(words.DRAINED, claim.name, provider_id=claim.provider_id, Node=named(claim.node_name))


def terminated_instance(claim: str, provider_id: str) -> None:
    say(words.TERMINATED_INSTANCE, claim, provider_id=provider_id)


def deleted_node(node: str, claim: str) -> None:
    """The Node's finalizer is removed."""
    say(words.DELETED_NODE, node, NodeClaim=named(claim))


def deleted_claim(claim: NodeClaim) -> None:
    """The claim's finalizer is removed."""
    say(words.DELETED_CLAIM, claim.name, provider_id=claim.provider_id, Node=named(claim.node_name))


def interrupted(claim: NodeClaim, kind: str) -> None:
    """The claim is deleted because of the cloud's warning."""
    say(
        words.INTERRUPTED,
        messageKind=kind,
        NodeClaim=named(claim.name),
        action="CordonAndDrain",
        Node=named(claim.node_name),
    )


def ordered(claim: NodeClaim, order: DeleteClaim) -> None:
    """The Caretaker deletes a claim."""
    log_line = _ORDERED.get(order.reason)
    if log_line is None:
        return
    known = {"provider_id": claim.provider_id, "condition": order.condition, "why": order.message}
    fields = {key: value for key, value in known.items() if key.replace("_", "-") in log_line.fields}
    say(log_line, claim.name, **fields)


def orphan_terminated(provider_id: str) -> None:
    """An instance without a claim was terminated."""
    say(words.ORPHAN, provider_id=provider_id)
