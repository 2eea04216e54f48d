"""Changes one object, however often others change it meanwhile.

A step describes the change as a function of the object. A conflict means that the object has changed since it was read,
so it is read live and the function is called again. Failing the whole step for a conflict would cost a second and
repeat all its other calls. If the conflict brings the current object, not even that read is needed.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from dovetail.lifecycle.conditions import claim_conditions_with
from dovetail.lifecycle.registration import NodeChange
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import ClaimStatus, MetadataChange, NodeClaims, Nodes, Versioned

Object = TypeVar("Object", bound=Versioned)
Change = TypeVar("Change")

TRIES: Final = 5  # two writers meet once or twice; after this the step fails and is retried later


async def revise_claim(
    claims: NodeClaims, claim: NodeClaim, change_of: Callable[[NodeClaim], MetadataChange | None]
) -> NodeClaim | None:
    """The claim with the change; None where it is gone. `change_of` answers None where nothing is to change."""
    return await revised(claim, change_of, claims.patch, claims.read)


async def revise_status(
    claims: NodeClaims, claim: NodeClaim, change_of: Callable[[NodeClaim], ClaimStatus | None]
) -> NodeClaim | None:
    """The claim with the changed status; None where it is gone."""
    return await revised(claim, change_of, claims.patch_status, claims.read)


async def set_conditions(claims: NodeClaims, claim: NodeClaim, *wanted: Condition) -> NodeClaim | None:
    """The claim with these conditions; nothing is written where it has them already."""

    def change_of(found: NodeClaim) -> ClaimStatus | None:
        conditions = claim_conditions_with(found, *wanted)
        return None if conditions is None else ClaimStatus(conditions=conditions)

    return await revise_status(claims, claim, change_of)


async def revise_node(nodes: Nodes, node: Node, change_of: Callable[[Node], NodeChange]) -> Node | None:
    """The node with the change; None where it is gone."""

    def differing(found: Node) -> NodeChange | None:
        change = change_of(found)
        return None if change.is_empty() else change

    def write(found: Node, change: NodeChange) -> Awaitable[Node | None]:
        return nodes.patch(found, _metadata(change), change.taints)

    return await revised(node, differing, write, nodes.read)


async def revised(
    found: Object,
    change_of: Callable[[Object], Change | None],
    write: Callable[[Object, Change], Awaitable[Object | None]],
    read: Callable[[str], Awaitable[Object | None]],
) -> Object | None:
    for _ in range(TRIES):
        change = change_of(found)
        if change is None:
            return found
        try:
            return await write(found, change)
        except Conflict as conflict:
            live = conflict.current if isinstance(conflict.current, type(found)) else await read(found.name)
            if live is None or live.uid != found.uid:
                return None
            found = live
    raise Conflict(f"{type(found).__name__}/{found.name}", f"changed by others {TRIES} times in a row")


def _metadata(change: NodeChange) -> MetadataChange:
    return MetadataChange(
        labels=dict(change.labels),
        annotations=dict(change.annotations),
        finalizers=change.finalizers,
        add_owner=change.add_owner,
    )
