"""Completes the notices of a decision with the UIDs of their objects, which Events need, and drops useless ones.

That a new node cannot be consolidated surprises nobody, and would cost two Events for each node.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.notices.notice import Notice

STARTING_SECONDS: Final = 300.0  # of a node's age; what lasts is published after them


def is_young(claim: NodeClaim, now: float) -> bool:
    """Whether its node may still be starting, or have just started."""
    return now - claim.created < STARTING_SECONDS


def says_enough(snapshot: Snapshot, notice: Notice) -> bool:
    """Whether people need the notice now: they do not need to know that a young node cannot be consolidated."""
    if notice.reason != "Unconsolidatable":
        return True
    claim = snapshot.claims.get(notice.name)
    if notice.kind == "Node":
        node = snapshot.nodes.get(notice.name)
        claim = None if node is None else snapshot.pairing.claim_of(node)
    return claim is None or not is_young(claim, snapshot.now)


def publishable(snapshot: Snapshot, notice: Notice) -> Notice:
    """The notice with the UID of the node, claim or pool; a pod's is known already."""
    objects: Mapping[str, Mapping[str, Node | NodeClaim | NodePool]] = {
        "Node": snapshot.nodes,
        "NodeClaim": snapshot.claims,
        "NodePool": snapshot.pools,
    }
    found = objects.get(notice.kind, {}).get(notice.name)
    return notice if found is None else replace(notice, uid=found.uid)
