"""Keeps conditions, hashes and stamps true as facts change.

Asked by the Caretaker as one long step that returns after an hour. Level-triggered: each look compares what stands on
an object with what should, and writes only the difference, so there is nothing to remember but which pods stood on
which node at the last look (D-163). After a restart the pods' own times stand in for that memory (Q-12).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from temporalio import activity

from activities.beating import report
from activities.keeping_claims import ClaimKeeper
from activities.keeping_pools import PoolKeeper
from activities.snapshots import whole_snapshot
from core.model.snapshot import Snapshot
from ports.cloud import Catalogues
from ports.failures import Failure
from ports.view import ClusterView

_log = logging.getLogger(__name__)

RETURN_SECONDS = 3600.0
QUIET_SECONDS = 0.2  # changes come in bursts
AT_ONCE = 20


class Upkeep:
    """The long step."""

    def __init__(
        self,
        view: ClusterView,
        catalogues: Catalogues,
        claims: ClaimKeeper,
        pools: PoolKeeper,
        now: Callable[[], float],
    ) -> None:
        self.view = view
        self.catalogues = catalogues
        self.claims = claims
        self.pools = pools
        self.now = now

    @activity.defn
    async def keep_up(self) -> None:
        """Look, write what differs, sleep until something changes or a moment is due."""
        until = self.now() + RETURN_SECONDS
        self.claims.forget()
        while self.now() < until:
            revision = self.view.revision()
            snapshot = await whole_snapshot(self.view, self.catalogues)
            wrote, again = await self._once(snapshot)
            report(f"wrote {wrote} objects, look again at the latest in {max(again - self.now(), 0):.0f} s")
            await self._changed(revision, min(until, again) - self.now())

    async def _once(self, snapshot: Snapshot) -> tuple[int, float]:
        """All objects once. One that cannot be written is said and tried again; the others go on."""
        claims, claims_again = await self.claims.differences(snapshot)
        pools, pools_again = await self.pools.differences(snapshot)
        wrote = await _carry_out([*claims, *pools])
        return wrote, min(claims_again, pools_again)

    async def _changed(self, revision: int, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self.view.changed(revision)
                await asyncio.sleep(QUIET_SECONDS)
        except TimeoutError:
            return


async def _carry_out(writes: Iterable[Callable[[], Awaitable[object]]]) -> int:
    slots = asyncio.Semaphore(AT_ONCE)
    done = await asyncio.gather(*[_one(slots, write) for write in writes])
    return sum(done)


async def _one(slots: asyncio.Semaphore, write: Callable[[], Awaitable[object]]) -> int:
    async with slots:
        try:
            await write()
        except Failure as failure:
            _log.warning("upkeep: %s", failure)
            return 0
    return 1
