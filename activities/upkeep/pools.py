"""What each NodePool should say: the hash of its template, what it uses, whether it may be used, and its health.

One writer for a pool's metadata and status, one request each, the second at the version that the first has produced:
two writers of one object would cause conflicts for each other. The claims get a new hash before the pool does, so that
taking over a cluster drifts nothing (NPL-5, DIS-177 to DIS-179). A pool is left alone until the cache shows our last
write, for some seconds: another write at the old version would be a conflict, and a server that was restored from a
backup shows lower versions for long.
"""

from collections.abc import Callable
from functools import partial

from dovetail.activities.shared.looks.last_answers import LastAnswer
from dovetail.activities.shared.looks.look import Look, Write, earliest
from dovetail.activities.shared.writes.revisions import revise_claim
from dovetail.activities.upkeep.pool_status import PoolStatuses, PoolWrites
from dovetail.disruption.upkeep.hash_migration import Stamps, hash_stamps
from dovetail.lifecycle.pool_health import RESULTS as HEALTH_RESULTS
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.watched_kinds import POOLS, STANDING_CLAIMS
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import NODES
from dovetail.ports.cloud import Catalogues
from dovetail.ports.objects import MetadataChange, NodeClaims, NodePools, PoolStatus

SHOWN_SECONDS = 0.5  # until the cache is asked again whether it shows our write
LEFT_ALONE_SECONDS = 10.0  # at most


class PoolUpkeep:
    """Finds what differs on pools, and writes it."""

    def __init__(self, pools: NodePools, claims: NodeClaims, catalogues: Catalogues, now: Callable[[], float]) -> None:
        self.pools, self.claims, self.now = pools, claims, now
        self.statuses = PoolStatuses(catalogues, now)
        self.stamps = LastAnswer(STANDING_CLAIMS | POOLS, _stamps)
        self.written: dict[str, tuple[int, float]] = {}  # pool UID -> version of our last write, and how long it counts

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due, and when a pool's status may change."""
        writes: list[Write] = []
        statuses, again = await self.statuses.wanted(snapshot)
        for name, stamps in self.stamps.of(snapshot).items():
            pool, wanted = snapshot.pools[name], statuses.get(name)
            if not stamps.claims and not stamps.pool and wanted is None:
                continue
            version, until = self.written.get(pool.uid, (0, 0.0))
            if int(pool.resource_version or 0) < version and self.now() < until:
                again = earliest(again, self.now() + SHOWN_SECONDS)
                continue
            writes.append(partial(self._write, pool, stamps, wanted or PoolWrites(), snapshot))
        return Look(due=writes, again=again)

    async def _write(self, pool: NodePool, stamps: Stamps, wanted: PoolWrites, snapshot: Snapshot) -> None:
        """The claims, then the status, then the pool's annotations: each follows from the one before it."""
        for name, annotations in stamps.claims:
            change = MetadataChange(annotations=dict(annotations))
            await revise_claim(self.claims, snapshot.claims[name], partial(_always, change))
        written = await self._write_status(pool, wanted)
        record = {} if wanted.record is None else {HEALTH_RESULTS: wanted.record}
        if written is not None and (stamps.pool or record):
            written = await self.pools.patch(written, MetadataChange(annotations={**dict(stamps.pool), **record}))
        if written is not None:
            self.written[pool.uid] = int(written.resource_version or 0), self.now() + LEFT_ALONE_SECONDS

    async def _write_status(self, pool: NodePool, wanted: PoolWrites) -> NodePool | None:
        if wanted.usage is None and wanted.conditions is None:
            return pool
        status = PoolStatus(
            usage=wanted.usage,
            node_count=None if wanted.usage is None else wanted.usage[NODES],
            class_generation=wanted.class_generation or None,
            conditions=wanted.conditions,
        )
        return await self.pools.patch_status(pool, status)


def _always(change: MetadataChange, found: NodeClaim) -> MetadataChange:
    return change


def _stamps(snapshot: Snapshot) -> dict[str, Stamps]:
    """What hashes are to be written, for each pool of ours by name."""
    claims = [claim for claim in snapshot.claims.values() if snapshot.is_ours(claim.node_class)]
    ours = [pool for _, pool in sorted(snapshot.pools.items()) if snapshot.is_ours(pool.template.node_class)]
    return {pool.name: hash_stamps(pool, claims) for pool in ours}
