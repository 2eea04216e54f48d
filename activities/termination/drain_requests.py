"""What may a drain do that somebody asks for?

Anybody who can write to the namespace in Temporal can request a drain, of any node and with any deadline. So the live
objects decide what is drained and until when, and not the words of the request.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dovetail.activities.identity.askers import asked_by
from dovetail.activities.shared.looks.live_repairs import LiveRepairs
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.termination.begin_and_end_departure import reason_of
from dovetail.activities.termination.departing_nodes import belongs_to, nodes_there
from dovetail.lifecycle.unfinished import reference
from dovetail.messages.subjects import Departure
from dovetail.model.names import DISRUPTION_REASON, OWNER
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.ports.failures import Refused
from dovetail.ports.objects import Nodes
from dovetail.ports.view import ClusterLookups
from dovetail.termination.deadline import deadline_of


@dataclass(frozen=True, slots=True)
class DrainRequests:
    """Judges requests by the live objects."""

    lookups: ClusterLookups
    known: KnownClaims
    nodes: Nodes
    repairs: LiveRepairs

    async def as_it_is(self, departure: Departure) -> Departure:
        """The request as the live objects have it."""
        ref = departure.claim
        claim = await self.known.newest_deletion(ref) if ref.uid else None
        if claim is None or claim.uid != ref.uid:
            return await self._without_claim(departure)
        there = await nodes_there(self.lookups, self.nodes, departure)
        of_claim = [node for node in there if belongs_to(node, ref, claim)]
        leaves = claim.deleting_since is not None
        return replace(
            departure,
            claim=reference(claim),
            provider_id=claim.provider_id or departure.provider_id,
            nodes=tuple(node.name for node in of_claim),
            node_uids=tuple(node.uid for node in of_claim),
            deadline=deadline_of(claim) if leaves else await self._before_the_delete(claim, of_claim, departure),
            reason=reason_of(claim),
            is_final=departure.is_final and leaves,
        )

    async def _without_claim(self, departure: Departure) -> Departure:
        """TRM-10: nodes that somebody has deleted leave without a deadline."""
        for node in await nodes_there(self.lookups, self.nodes, departure):
            live = node if node.deleting_since is not None else await self.nodes.read(node.name)
            if live is not None and live.uid == node.uid and live.deleting_since is None:
                raise Refused(f"Node/{node.name}", "neither it nor a NodeClaim of it is being deleted")
        return replace(departure, deadline=None, is_final=False)

    async def _before_the_delete(self, claim: NodeClaim, nodes: Iterable[Node], departure: Departure) -> float | None:
        """The deadline of a drain that a disruption asks for before it deletes: its grace period begins with the mark,
        or later. None where a person asks for the replacement: no pod of it passes its PDB."""
        mark = claim.condition(DISRUPTION_REASON)
        owner = claim.annotations.get(OWNER, "")
        if mark is None or mark.status != "True" or not owner or not asked_by(owner):
            raise Refused(f"NodeClaim/{claim.name}", "is not being deleted, and it is not its disruption that asks")
        grace = await self._grace(claim, nodes, mark.reason)
        if grace is None or departure.deadline is None or mark.reason == DisruptionReason.REQUESTED:
            return None
        return max(departure.deadline, mark.changed + grace)

    async def _grace(self, claim: NodeClaim, nodes: Iterable[Node], reason: str) -> float | None:
        """How long it may last: for a repair as its policy says too, unless the node is well again (GCR-20)."""
        fault = await self.repairs.first_fault(nodes, claim) if reason == DisruptionReason.UNHEALTHY else None
        return claim.termination_grace if fault is None else fault.bound(claim)
