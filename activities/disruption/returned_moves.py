"""Writes on a NodePool what consolidation has removed, and how much of it was launched again for waiting pods.

A write that fails is only logged: neither a delete nor a launch waits for it.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable

from dovetail.activities.shared.writes.pool_revisions import Annotations, changed, revise_pool
from dovetail.messages.plans import Target
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.notices.launch_stops import consolidation_slowed
from dovetail.ports.failures import Failure
from dovetail.ports.objects import NodePools, Notices
from dovetail.rules.brake.returned_moves import RETURNED, TAKEN, moves_brake, returned_nodes, with_moved
from dovetail.telemetry.metrics.ours.launch_brake import nodes_returned

_log = logging.getLogger(__name__)


class ReturnedMoves:
    """The memory of consolidation that was reverted. Only nodes with pods count: removing an empty node disturbs
    nobody."""

    def __init__(self, pools: NodePools, notices: Notices, now: Callable[[], float]) -> None:
        self.pools, self.notices, self.now = pools, notices, now

    async def taken(self, targets: Iterable[Target], reason: str) -> None:
        if reason != DisruptionReason.UNDERUTILIZED:
            return
        for name, nodes in Counter(target.pool for target in targets).items():
            await self._write(name, TAKEN, nodes)

    async def launched(self, pools: Iterable[NodePool]) -> None:
        """A node was made of each of these pools for pods that waited; a pool is listed once for each node."""
        count, known = Counter[str](), {}
        for pool in pools:
            count[pool.name] += 1
            known[pool.name] = pool
        for name, nodes in count.items():
            back = returned_nodes(known[name], nodes, self.now())
            if back > 0:
                await self._came_back(name, back)

    async def _came_back(self, name: str, nodes: int) -> None:
        after = await self._write(name, RETURNED, nodes)
        nodes_returned(name, nodes)
        brake = moves_brake(after, self.now()) if after is not None else None
        if after is not None and brake is not None:
            await self.notices.publish(consolidation_slowed(after, brake.says(name)))

    async def _write(self, name: str, what: str, nodes: int) -> NodePool | None:
        def change_of(pool: NodePool) -> Annotations:
            return changed(pool, with_moved(pool, what, nodes, self.now()))

        try:
            before = await self.pools.read(name)
            return await revise_pool(self.pools, before, change_of) if before is not None else None
        except Failure as failure:
            _log.warning("NodePool %s: could not record the result of its consolidation: %s", name, failure)
            return None
