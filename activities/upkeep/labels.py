"""What claims and nodes of older Karpenters lack: the label of their NodeClass.

Without it a node counts as unmanaged, and nothing would ever release it (LIF-70, PLM-2).
"""

from functools import partial

from dovetail.activities.shared.looks.last_answers import LastAnswer
from dovetail.activities.shared.looks.look import Look, Write
from dovetail.activities.shared.writes.revisions import revise_claim, revise_node
from dovetail.lifecycle.node_checks import MissingLabel, missing_class_labels
from dovetail.lifecycle.registration import NodeChange
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.watched_kinds import NODES_AND_STANDING_CLAIMS
from dovetail.model.snapshot import Snapshot
from dovetail.ports.objects import MetadataChange, NodeClaims, Nodes


class LabelUpkeep:
    def __init__(self, claims: NodeClaims, nodes: Nodes) -> None:
        self.claims, self.nodes = claims, nodes
        self.missing = LastAnswer(NODES_AND_STANDING_CLAIMS, lambda snapshot: tuple(missing_class_labels(snapshot)))

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due; time alone changes nothing."""
        writes = [partial(self._write, missing, snapshot) for missing in self.missing.of(snapshot)]
        return Look(due=writes)

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
