"""Publishes on each NodePool what is paused for it, and that it goes on.

What is paused when a worker begins is published once more: who looks at the Events after a restart must find it.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from dovetail.activities.shared.looks.look import Look, Write
from dovetail.model.own.pauses import Pause
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.notices.notice import Notice
from dovetail.notices.pauses import not_understood, paused, resumed
from dovetail.ports.objects import Notices
from dovetail.rules.pause.pauses import EVERY_POOL, next_end, pauses

Known = Mapping[tuple[str, str, str], Pause]  # by UID of the pool that it is about, and where the pause is kept


class PauseUpkeep:
    """Finds the pauses that no notice is about yet."""

    def __init__(self, notices: Notices) -> None:
        self.notices = notices
        self.published: Known = {}

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The notices that are due, and when the first pause ends by itself."""
        pools = {pool.uid: pool for pool in snapshot.pools.values()}
        before, after = self.published, _by_pool(snapshot)
        self.published = after
        notices = [*_begun(before, after, pools), *_ended(before, after, pools)]
        return Look(due=[partial(self.notices.publish, notice) for notice in notices], again=next_end(snapshot))


def _by_pool(snapshot: Snapshot) -> Known:
    found = pauses(snapshot)
    ours = [pool for pool in snapshot.pools.values() if snapshot.is_ours(pool.template.node_class)]
    return {
        (pool.uid, pause.pool, pause.freeze): pause
        for pool in ours
        for pause in found
        if pause.pool in (EVERY_POOL, pool.name)
    }


def _begun(before: Known, after: Known, pools: Mapping[str, NodePool]) -> Iterator[Notice]:
    for key, pause in after.items():
        if before.get(key) != pause:
            yield paused(pools[key[0]], pause)
            yield from (not_understood(pools[key[0]], fault) for fault in pause.faults)


def _ended(before: Known, after: Known, pools: Mapping[str, NodePool]) -> Iterator[Notice]:
    for key, pause in before.items():
        if key not in after and key[0] in pools:
            yield resumed(pools[key[0]], pause)
