"""What is paused, as the API server has it now: asked before something voluntary is begun.

A decision reads the same from its snapshot. Between the two somebody may have paused, and a person who has been told
"paused" must not see a node go a moment later.
"""

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.activities.shared.shared_reads import Reads
from dovetail.model import names
from dovetail.model.pauses import Activity, Pause, holding, pause_of_all, pause_of_pool
from dovetail.model.pools import NodePool
from dovetail.model.workloads import Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePauses:
    """Where pauses are kept."""

    pools: Reads[NodePool | None]
    namespaces: Reads[Namespace | None]
    now: Callable[[], float]

    async def of_all(self) -> Pause | None:
        """The pause for all NodePools."""
        return pause_of_all(await self.namespaces.read(names.SYSTEM_NAMESPACE), self.now())

    async def of_pool(self, name: str) -> Pause | None:
        """The pool's own pause."""
        return self.in_pool(await self.pools.read(name)) if name else None

    def in_pool(self, pool: NodePool | None) -> Pause | None:
        """The same for a pool that has just been read."""
        return pause_of_pool(pool, self.now()) if pool is not None else None

    async def why_not(self, pool: str, *activities: Activity) -> str:
        """Why none of these may be begun for the pool, in words; empty where they may."""
        known = (await self.of_all(), await self.of_pool(pool))
        return next((p.announces(a) for a in activities for p in known if holding(p, a) and p is not None), "")
