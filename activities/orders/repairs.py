"""Which nodes to repair, and which are held back because too many are unhealthy.

What counts as unhealthy is the cloud's to say; a cloud that names no policy repairs nothing. A notice is published for
each node that is held back, at most every 15 minutes (EVT-12).
"""

from collections.abc import Callable

from dovetail.activities.orders.finders import MINUTE
from dovetail.activities.shared.looks.look import Look
from dovetail.lifecycle.repair import find_repairs
from dovetail.messages.orders import Order
from dovetail.model.snapshot import Snapshot
from dovetail.notices.nodes import repair_blocked
from dovetail.ports.cloud import Catalogues
from dovetail.ports.objects import Notices


class RepairFinder:
    def __init__(self, catalogues: Catalogues, notices: Notices, now: Callable[[], float]) -> None:
        self.catalogues = catalogues
        self.notices = notices
        self.now = now

    async def look(self, snapshot: Snapshot) -> Look[Order]:
        """Delete what has been unhealthy for too long."""
        found = find_repairs(snapshot, await self.catalogues.repair_policies())
        await self.notices.publish(*[repair_blocked(snapshot.nodes[one.node], one.where) for one in found.blocked])
        again = found.next_due if found.next_due is not None else self.now() + MINUTE
        return Look(due=[*found.orders], again=again)
