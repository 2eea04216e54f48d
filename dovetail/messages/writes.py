"""What a write of ours left behind: the object and its version.

Returned by every step that writes, kept by the Scheduler as `must_see` for a minute, and handed to each plan: a
decision on a snapshot without our own writes would be about yesterday's cluster (27 of 150 creates are answered before
the watch delivers them).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dovetail.model.nodes import Node, NodeClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """An object at a version. Version 0 stands for "gone": a delete that has been carried out."""

    kind: str
    name: str  # namespace/name for namespaced kinds
    uid: str
    version: int


def newest_of_each_kind(writes: Iterable[Write]) -> tuple[Write, ...]:
    """The newest write of each kind, and every object that is gone: who has seen these has seen all."""
    newest: dict[str, Write] = {}
    gone: list[Write] = []
    for write in writes:
        if write.version == 0:
            gone.append(write)
        elif write.kind not in newest or newest[write.kind].version < write.version:
            newest[write.kind] = write
    return (*[newest[kind] for kind in sorted(newest)], *gone)


def claim_write(claim: NodeClaim) -> Write:
    """A claim at the version that was written or read."""
    return Write(kind="NodeClaim", name=claim.name, uid=claim.uid, version=int(claim.resource_version))


def node_write(node: Node) -> Write:
    """A node at the version that was written or read."""
    return Write(kind="Node", name=node.name, uid=node.uid, version=int(node.resource_version))
