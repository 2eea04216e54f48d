"""Publishes which objects cannot be read. Those that cannot be judged are published by the decision that met them."""

from functools import partial

from dovetail.activities.shared.looks.look import Look, Write
from dovetail.model.snapshot import Snapshot
from dovetail.notices.faults import unreadable_notices
from dovetail.ports.objects import Notices


class FaultUpkeep:
    """Finds the objects that no notice is about yet."""

    def __init__(self, notices: Notices) -> None:
        self.notices = notices
        self.published: frozenset[tuple[str, str, str]] = frozenset()  # kind, name and what is wrong

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The notices that are due; time alone changes nothing."""
        faults = {(u.kind, u.name, u.message): u for u in snapshot.unreadable}
        new = [fault for key, fault in sorted(faults.items()) if key not in self.published]
        self.published = frozenset(faults)
        return Look(due=[partial(self.notices.publish, notice) for notice in unreadable_notices(new)])
