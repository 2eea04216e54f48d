"""Publishes which nodes have drifted and have not begun to leave for a week: when that comes to be so, and again with
each run of upkeep, once an hour, because an Event is kept for no longer."""

from functools import partial
from typing import Final

from dovetail.activities.shared.looks.look import Look, Write
from dovetail.disruption.upkeep.waiting_drift import next_overdue, overdue_drift, why_waiting
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.watched_kinds import POLICIES
from dovetail.model.snapshot import Snapshot
from dovetail.notices.waiting_drift import drift_waits
from dovetail.ports.objects import Notices

MOST: Final = 20  # nodes of a NodePool that get a notice; the gauge counts all


class WaitingDriftUpkeep:
    """Finds those that nothing has been published of."""

    def __init__(self, notices: Notices) -> None:
        self.notices = notices
        self.published: dict[str, float] = {}  # UID of the NodeClaim -> since when it has drifted

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The notices that are due, and when the next may be. Each says what holds the drift, so that must be known."""
        if not snapshot.stale.isdisjoint(POLICIES):
            return Look()
        writes: list[Write] = []
        published: dict[str, float] = {}
        for pool, claims in overdue_drift(snapshot).items():
            why = why_waiting(snapshot, pool) if claims else ""
            for claim in claims[:MOST]:
                since = _since(claim)
                published[claim.uid] = since
                node = snapshot.nodes.get(claim.node_name)
                if node is not None and self.published.get(claim.uid) != since:
                    notice = drift_waits(node, snapshot.now - since, why)
                    writes.append(partial(self.notices.publish, notice))
        self.published = published
        return Look(due=writes, again=next_overdue(snapshot))


def _since(claim: NodeClaim) -> float:
    drifted = claim.condition(names.DRIFTED)
    assert drifted is not None  # it has drifted
    return drifted.changed
