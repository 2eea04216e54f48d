"""Follows instances that were launched from a reservation (AWS-147, AWS-148).

EC2 may let an instance fall back to on-demand; its claim and its node are then changed too, or planners would count on
a wrong price. A capacity block reclaims its instances from half an hour before its end; their claims are deleted before
that, so that pods can be drained. Only this direction: nothing becomes reserved by itself.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.instances.instance import instance_id
from dovetail.adapters.aws.instances.inventory import Inventory
from dovetail.adapters.aws.node_class.node_class import NodeClass, NodeClasses
from dovetail.adapters.aws.resources.reservations import Reservations, is_expiring
from dovetail.adapters.aws.upkeep.upkeep_task import each
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import remembering
from dovetail.model.reasons.endings import Ending, ended_text
from dovetail.ports.failures import Failure
from dovetail.ports.objects import MetadataChange, NodeClaims, Nodes

_log = logging.getLogger(__name__)

ROUND_SECONDS: Final = 60.0
_AGAIN_SECONDS: Final = 2.0
_BLOCK_ENDS: Final = MetadataChange(
    annotations={core.ENDED_BECAUSE: ended_text(Ending.RESERVATION_OVER, "its capacity block ends")}
)
_DEMOTED: Final = MetadataChange(
    # The interruptible label stays where it is, as upstream leaves it (AWS-174).
    labels={core.CAPACITY_TYPE: core.CAPACITY_ON_DEMAND, names.RESERVATION_ID: None, names.RESERVATION_TYPE: None}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationSources:
    inventory: Inventory
    classes: NodeClasses
    reservations: Reservations


class ReservedInstances:
    """Demotes claims and nodes, and deletes claims of ending blocks."""

    def __init__(
        self,
        sources: ReservationSources,
        claims: NodeClaims,
        nodes: Nodes,
        clock: Callable[[], float],
    ) -> None:
        self._inventory, self._classes, self._reservations = sources.inventory, sources.classes, sources.reservations
        self._claims, self._nodes, self._clock = claims, nodes, clock
        self._next = float("-inf")
        self._next_ids = clock() + ROUND_SECONDS
        self._ending_ids: frozenset[str] = frozenset()

    async def keep(self, claims: Sequence[NodeClaim]) -> float:
        reserved = [claim for claim in claims if _is_reserved(claim)]
        await self._ask(reserved)
        ending = self._ending() | self._ending_ids
        leaving = [claim for claim in reserved if claim.labels.get(names.RESERVATION_ID, "") in ending]
        well = await each(leaving, self._delete, doing="its capacity block ends, and it cannot be deleted")
        now = self._clock()
        if reserved and now >= self._next:
            staying = [claim for claim in reserved if claim not in leaving and claim.provider_id]
            self._next = now + ROUND_SECONDS
            well &= await each(staying, self._compare, doing="its capacity type is not known")
            if not well:
                self._next = now + _AGAIN_SECONDS
        return now + _AGAIN_SECONDS if not well else max(now, self._next) if reserved else now + ROUND_SECONDS

    async def _ask(self, reserved: Sequence[NodeClaim]) -> None:
        """Ask for the reservations by the claims' own labels: the class may have ceased to select them."""
        if self._clock() < self._next_ids:
            return
        self._next_ids = self._clock() + ROUND_SECONDS
        ids = {claim.labels.get(names.RESERVATION_ID, "") for claim in reserved} - {""}
        try:
            self._ending_ids = await self._reservations.ending(ids)
        except Failure as failure:
            _log.warning("cannot find out whether capacity blocks end: %s", failure)

    def _ending(self) -> frozenset[str]:
        """Capacity blocks that any class knows to be within 40 minutes of their end."""
        return frozenset(
            each.id
            for node_class in self._classes.every()
            if isinstance(node_class, NodeClass)
            for each in node_class.status.capacity_reservations or ()
            if each.end_time and is_expiring(each.reservation_type, each.end_time.timestamp(), self._clock())
        )

    async def _delete(self, claim: NodeClaim) -> None:
        if claim.deleting_since is None:
            await self._claims.patch(claim, _BLOCK_ENDS)
        await self._claims.delete(claim.name, claim.uid)

    async def _compare(self, claim: NodeClaim) -> None:
        facts = await self._inventory.recent(instance_id(claim.provider_id), ROUND_SECONDS / 2)
        if facts is None or facts.capacity_type != core.CAPACITY_ON_DEMAND:
            return
        # The node first: as long as the claim says reserved, the next look comes here again.
        for node in await self._nodes.list_by_provider_id(claim.provider_id):
            if node.labels.get(core.CAPACITY_TYPE) == core.CAPACITY_RESERVED and core.REGISTERED in node.labels:
                await self._nodes.patch(node, _DEMOTED)
        await self._claims.patch(
            claim, replace(_DEMOTED, annotations=remembering(claim.annotations, on_demand_since=self._clock()))
        )


def _is_reserved(claim: NodeClaim) -> bool:
    return claim.labels.get(core.CAPACITY_TYPE) == core.CAPACITY_RESERVED and claim.deleting_since is None
