"""What should stand on claims and nodes of older versions: the label of their NodeClass.

Without it a node counts as unmanaged, and nothing would ever release it (L-70, P-2).
"""

from collections.abc import Awaitable, Callable
from functools import partial

from dovetail.activities.shared.revisions import revise_claim, revise_node
from dovetail.lifecycle.node_checks import MissingLabel, missing_class_labels
from dovetail.lifecycle.registration import NodeChange
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.ports.objects import MetadataChange, NodeClaims, Nodes

Difference = Callable[[], Awaitable[object]]


class LabelUpkeep:
    """Finds the labels that are missing."""

    def __init__(self, claims: NodeClaims, nodes: Nodes, now: Callable[[], float]) -> None:
        self.claims, self.nodes, self.now = claims, nodes, now

    async def differences(self, snapshot: Snapshot) -> tuple[list[Difference], float]:
        """The writes that are due; time alone changes nothing here."""
        writes = [partial(self._write, missing, snapshot) for missing in missing_class_labels(snapshot)]
        return list(writes), self.now() + 3600.0

    async def _write(self, missing: MissingLabel, snapshot: Snapshot) -> None:
        label = {missing.key: missing.value}

        def of_claim(found: NodeClaim) -> MetadataChange | None:
            return None if missing.key in found.labels else MetadataChange(labels=dict(label))

        def of_node(found: Node) -> NodeChange:
            return NodeChange(labels={} if missing.key in found.labels else label, annotations={})

        if missing.kind == "NodeClaim":
            await revise_claim(self.claims, snapshot.claims[missing.name], of_claim)
        else:
            await revise_node(self.nodes, snapshot.nodes[missing.name], of_node)
