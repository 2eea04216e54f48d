"""Whether a node is to be repaired, as it is now: who asks for a step could say it of any."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dovetail.lifecycle.faults import NodeFault, fault_of, is_kept_from_repair
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.reasons.endings import CLOCKS_APART
from dovetail.ports.cloud import Catalogues


@dataclass(frozen=True, slots=True)
class LiveRepairs:
    """`wanted`: whether nodes are repaired by a disruption at all."""

    catalogues: Catalogues
    now: Callable[[], float]
    wanted: bool

    async def fault(self, node: Node, claim: NodeClaim) -> NodeFault | None:
        """What is to be repaired on it now; None if nothing is."""
        if not self.wanted or is_kept_from_repair(node, claim):
            return None
        return fault_of(node, claim, await self.catalogues.repair_policies(), self.now() + CLOCKS_APART)

    async def first_fault(self, nodes: Iterable[Node], claim: NodeClaim) -> NodeFault | None:
        """The same of the first of these nodes on which something is."""
        for node in nodes:
            fault = await self.fault(node, claim)
            if fault is not None:
                return fault
        return None
