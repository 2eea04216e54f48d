"""Which nodes are to be repaired, and which are held back because too many are unhealthy.

What counts as unhealthy is the cloud's to say; a cloud that names no policy repairs nothing. Nodes held back are told
of, at most every 15 minutes (V-12).
"""

from collections.abc import Callable

from dovetail.activities.orders.finders import MINUTE
from dovetail.lifecycle.repair import find_repairs
from dovetail.messages.orders import Order
from dovetail.model.snapshot import Snapshot
from dovetail.notices.nodes import repair_blocked
from dovetail.ports.cloud import Catalogues
from dovetail.ports.objects import Notices


class RepairFinder:
    """The looker at unhealthy nodes."""

    def __init__(self, catalogues: Catalogues, notices: Notices, now: Callable[[], float]) -> None:
        self.catalogues = catalogues
        self.notices = notices
        self.now = now

    async def look(self, snapshot: Snapshot) -> tuple[list[Order], float]:
        """Delete what has been unhealthy for too long; say what is held back."""
        found = find_repairs(snapshot, await self.catalogues.repair_policies())
        await self.notices.publish(*[repair_blocked(snapshot.nodes[one.node], one.where) for one in found.blocked])
        return [*found.orders], found.next_due if found.next_due is not None else self.now() + MINUTE
