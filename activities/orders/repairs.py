"""Which nodes to repair as until 1.14, and which are held back because too many are unhealthy; where repair is a
disruption, nothing but reboots that have begun.

The cloud defines what counts as unhealthy; a cloud that names no policy repairs nothing. A notice is published for each
node that is held back, at most every 15 minutes (EVT-12). A reboot that has begun is continued even when nothing is to
be repaired any more.
"""

from collections.abc import Callable

from dovetail.activities.orders.finders import MINUTE
from dovetail.activities.shared.looks.last_answers import LastAnswer
from dovetail.activities.shared.looks.look import Look
from dovetail.lifecycle.repair import find_repairs
from dovetail.messages.orders import Order
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.watched_kinds import STANDING_CLAIMS
from dovetail.model.snapshot import Snapshot
from dovetail.notices.nodes import repair_blocked
from dovetail.ports.cloud import Catalogues
from dovetail.ports.objects import Notices


class RepairFinder:
    def __init__(
        self,
        catalogues: Catalogues,
        notices: Notices,
        now: Callable[[], float],
        *,
        repairs: bool,
    ) -> None:
        self.catalogues = catalogues
        self.notices = notices
        self.now = now
        self.repairs = repairs
        self.any_reboots = LastAnswer(STANDING_CLAIMS, _any_reboots)

    async def look(self, snapshot: Snapshot) -> Look[Order]:
        """Delete what has been unhealthy for too long."""
        if not self.repairs and not self.any_reboots.of(snapshot):
            return Look()
        policies = await self.catalogues.repair_policies() if self.repairs else ()
        found = find_repairs(snapshot, policies)
        await self.notices.publish(*[repair_blocked(snapshot.nodes[one.node], one.where) for one in found.blocked])
        again = found.next_due if found.next_due is not None else self.now() + MINUTE
        return Look(due=[*found.orders, *found.reboots], again=again)

    async def finds_again(self, snapshot: Snapshot, claim: NodeClaim) -> bool:
        """Whether the claim's node is to be replaced now."""
        policies = await self.catalogues.repair_policies() if self.repairs else ()
        nodes = snapshot.pairing.nodes_of(claim)
        found = find_repairs(snapshot, policies, of=nodes)
        return any(order.claim.uid == claim.uid for order in found.orders)


def _any_reboots(snapshot: Snapshot) -> bool:
    return any(claim.is_rebooting for claim in snapshot.claims.values())
