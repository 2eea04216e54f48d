"""Completes the notices of a decision with the UIDs of their objects, which Events carry."""

from collections.abc import Mapping
from dataclasses import replace

from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.notice import Notice
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot


def publishable(snapshot: Snapshot, notice: Notice) -> Notice:
    """The same, with the UID of the node, claim or pool; a pod's is known already."""
    objects: Mapping[str, Mapping[str, Node | NodeClaim | NodePool]] = {
        "Node": snapshot.nodes,
        "NodeClaim": snapshot.claims,
        "NodePool": snapshot.pools,
    }
    found = objects.get(notice.kind, {}).get(notice.name)
    return notice if found is None else replace(notice, uid=found.uid)
