"""Changes one object, however often others change it meanwhile.

A step describes the change as a function of the object. A conflict means that the object has changed since it was read,
so it is read live and the function is called again. Failing the whole step for a conflict would cost a second and
repeat all its other calls. If the conflict brings the current object, not even that read is needed.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from dovetail.activities.shared.writes.known_claims import is_same
from dovetail.lifecycle.conditions import claim_conditions_with
from dovetail.lifecycle.registration import NodeChange
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import ClaimStatus, MetadataChange, NodeClaims, Nodes

Change = TypeVar("Change")

TRIES: Final = 5  # two writers meet once or twice; after this the step fails and is retried later


async def revise_claim(
    claims: NodeClaims, claim: NodeClaim, change_of: Callable[[NodeClaim], MetadataChange | None]
) -> NodeClaim | None:
    """The claim with the change; None where it is gone. `change_of` answers None where nothing is to change."""
    return await _until_settled(claims, claim, change_of, claims.patch)


async def revise_status(
    claims: NodeClaims, claim: NodeClaim, change_of: Callable[[NodeClaim], ClaimStatus | None]
) -> NodeClaim | None:
    """The claim with the changed status; None where it is gone."""
    return await _until_settled(claims, claim, change_of, claims.patch_status)


async def set_conditions(claims: NodeClaims, claim: NodeClaim, *wanted: Condition) -> NodeClaim | None:
    """The claim with these conditions; nothing is written where it has them already."""

    def change_of(found: NodeClaim) -> ClaimStatus | None:
        conditions = claim_conditions_with(found, *wanted)
        return None if conditions is None else ClaimStatus(conditions=conditions)

    return await revise_status(claims, claim, change_of)


async def revise_node(nodes: Nodes, node: Node, change_of: Callable[[Node], NodeChange]) -> Node | None:
    """The node with the change; None where it is gone."""
    for _ in range(TRIES):
        change = change_of(node)
        if change.is_empty():
            return node
        try:
            return await nodes.patch(node, _metadata(change), change.taints)
        except Conflict as conflict:
            live = conflict.current if isinstance(conflict.current, Node) else await nodes.read(node.name)
            if live is None or live.uid != node.uid:
                return None
            node = live
    raise Conflict(f"Node/{node.name}", f"changed by others {TRIES} times in a row")


async def _until_settled(
    claims: NodeClaims,
    claim: NodeClaim,
    change_of: Callable[[NodeClaim], Change | None],
    write: Callable[[NodeClaim, Change], Awaitable[NodeClaim | None]],
) -> NodeClaim | None:
    for _ in range(TRIES):
        change = change_of(claim)
        if change is None:
            return claim
        try:
            return await write(claim, change)
        except Conflict as conflict:
            live = conflict.current if isinstance(conflict.current, NodeClaim) else await claims.read(claim.name)
            if live is None or not is_same(live, claim.uid):
                return None
            claim = live
    raise Conflict(f"NodeClaim/{claim.name}", f"changed by others {TRIES} times in a row")


def _metadata(change: NodeChange) -> MetadataChange:
    return MetadataChange(
        labels=dict(change.labels),
        annotations=dict(change.annotations),
        finalizers=change.finalizers,
        add_owner=change.add_owner,
    )
