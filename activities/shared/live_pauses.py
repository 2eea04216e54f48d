"""What is paused, frozen or closed, as the API server has it now: asked before something voluntary is begun.

A decision reads the same from its snapshot. Between the two somebody may have paused, and a person who has been told
"paused" must not see a node go a moment later.
"""

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.activities.shared.shared_reads import Reads
from dovetail.model import names
from dovetail.model.expiries import deleted_at
from dovetail.model.nodes import NodeClaim
from dovetail.model.pauses import Activity, Pause, holding, pause_of_pool, pauses_of_all
from dovetail.model.policies import TimeRules, closed
from dovetail.model.pools import NodePool
from dovetail.model.workloads import Namespace
from dovetail.ports.failures import Failure

EVERYTHING = ""  # time rules are read together


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePauses:
    """Where pauses, Freezes and DisruptionPolicies are kept. `rules`: None where there are none of the latter two."""

    pools: Reads[NodePool | None]
    namespaces: Reads[Namespace | None]
    now: Callable[[], float]
    rules: Reads[TimeRules] | None = None

    async def of_all(self) -> tuple[Pause, ...]:
        """What holds for all NodePools. For launches, which go on where Freezes cannot be read: pods wait for them."""
        try:
            rules = await self._rules()
        except Failure:
            rules = TimeRules()
        return self._of_all(await self.namespaces.read(names.SYSTEM_NAMESPACE), rules)

    def in_pool(self, pool: NodePool | None) -> Pause | None:
        """The own pause of a pool that has just been read."""
        return pause_of_pool(pool, self.now()) if pool is not None else None

    async def why_not(self, pool: str, *activities: Activity, reason: str = "") -> str:
        """Why none of these may be begun for the pool, in words; empty where they may. `reason`: that for which a node
        would leave, where windows are about it."""
        rules = await self._rules()
        general = self._of_all(await self.namespaces.read(names.SYSTEM_NAMESPACE), rules)
        found = await self.pools.read(pool) if pool else None
        known = (*general, self.in_pool(found))
        paused = next((p.announces(a) for a in activities if (p := holding(known, a)) is not None), "")
        if paused or not reason or found is None:
            return paused
        shut = closed(rules.policies, found, reason, self.now())
        return "" if shut is None else shut.says

    async def deleted_at(self, claim: NodeClaim) -> float | None:
        """When the claim is deleted for its age, as its NodePool and policies have it now."""
        rules, pool = await self._rules(), claim.labels.get(names.NODE_POOL, "")
        return deleted_at(rules.policies, await self.pools.read(pool) if pool else None, claim)

    def _of_all(self, system: Namespace | None, rules: TimeRules) -> tuple[Pause, ...]:
        return pauses_of_all(system, rules.freezes, self.now())

    async def _rules(self) -> TimeRules:
        return TimeRules() if self.rules is None else await self.rules.read(EVERYTHING)
