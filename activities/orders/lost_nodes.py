"""Claims whose Node is gone: deleted, and its finalizer taken off by hand.

The object says nothing about when, so each worker counts from when it first saw that, and anew when it has not looked
for a while.
"""

import time
from collections.abc import Callable

from dovetail.activities.orders.finders import MINUTE
from dovetail.activities.shared.looks.look import Look
from dovetail.lifecycle import unfinished
from dovetail.messages.orders import Order
from dovetail.model.snapshot import Snapshot


class LostNodeFinder:
    def __init__(self, now: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self.now, self.clock = now, clock
        self.looked = float("-inf")
        self.since: dict[str, float] = {}  # since when every look has shown the claim without its Node

    async def look(self, snapshot: Snapshot) -> Look[Order]:
        """Delete the claims whose Node has been gone for long enough."""
        now, found = self.clock(), unfinished.without_node(snapshot)
        before = self.since if now - self.looked < 2 * MINUTE else {}
        self.since = {each.claim.uid: before.get(each.claim.uid, now) for each in found}
        self.looked = now
        settled = unfinished.seen_for(self.since, now, unfinished.LOST_NODE_SECONDS)
        coming = [since + unfinished.LOST_NODE_SECONDS - now for uid, since in self.since.items() if uid not in settled]
        again = self.now() + min(coming) if coming else None
        return Look(due=[each for each in found if each.claim.uid in settled], again=again)
