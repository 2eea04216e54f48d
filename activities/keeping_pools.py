"""What should stand on each NodePool and be lent to its claims: the hash of its template.

Asked by upkeep. A pool last hashed by another version of the algorithm lends its claims the new hash before it is
stamped itself, so that taking over a cluster drifts nothing (N-5, D-177 to D-179).
"""

from collections.abc import Awaitable, Callable
from functools import partial

from activities.revising import revise_claim
from core.disruption.migration import Stamps, hash_stamps
from core.model.nodes import NodeClaim
from core.model.pools import NodePool
from core.model.snapshot import Snapshot
from ports.objects import MetadataChange, NodeClaims, NodePools

Difference = Callable[[], Awaitable[object]]


class PoolKeeper:
    """Finds what differs on pools."""

    def __init__(self, pools: NodePools, claims: NodeClaims, now: Callable[[], float]) -> None:
        self.pools = pools
        self.claims = claims
        self.now = now

    async def differences(self, snapshot: Snapshot) -> tuple[list[Difference], float]:
        """The writes that are due, and when to look again although nothing has changed."""
        writes: list[Difference] = []
        for pool in snapshot.pools.values():
            stamps = hash_stamps(pool, snapshot.claims.values())
            if stamps.claims or stamps.pool:
                writes.append(partial(self._stamp, pool, stamps, snapshot))
        return writes, self.now() + 3600.0

    async def _stamp(self, pool: NodePool, stamps: Stamps, snapshot: Snapshot) -> None:
        """The claims first: stamping the pool first would forget them if we stopped in between."""
        for name, annotations in stamps.claims:
            change = MetadataChange(annotations=dict(annotations))
            await revise_claim(self.claims, snapshot.claims[name], partial(_always, change))
        if stamps.pool:
            await self.pools.patch(pool, MetadataChange(annotations=dict(stamps.pool)))


def _always(change: MetadataChange, found: NodeClaim) -> MetadataChange:
    return change
