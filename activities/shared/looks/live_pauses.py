"""What is paused, frozen or closed, as the API server has it now: asked before anything voluntary begins.

A decision reads the same from its snapshot. But somebody may have paused between the two, and a person who has read
"paused" must not see a node leave a moment later.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dovetail.activities.shared.looks.shared_reads import Reads
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.workloads import Namespace
from dovetail.model.own.claim_memory import Pin
from dovetail.model.own.health import Readiness
from dovetail.model.own.pauses import Pause
from dovetail.model.own.policies import Policy, TimeRules, policies_of
from dovetail.model.own.rollout_places import RolloutBasis
from dovetail.model.own.rollouts import pin_of
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Failure
from dovetail.rules.beginnings import hold_of
from dovetail.rules.expiry.expiries import deleted_at
from dovetail.rules.health.hold import readiness_of
from dovetail.rules.pause.pauses import pause_of_pool, pauses_of_all
from dovetail.rules.rollout.hold import why_not_made
from dovetail.rules.said import Cause, PoolHold, Said, rollouts_of

EVERYTHING = ""  # time rules are read together
_DRIFTED = "drifted"  # for which replacements of a change are made


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePauses:
    """Where pauses and the objects by which people hold nodes are kept."""

    pools: Reads[NodePool | None]
    namespaces: Reads[Namespace | None]
    now: Callable[[], float]
    rules: Reads[TimeRules]
    fleet: Callable[[], Snapshot]  # for the health of nodes, which the cache has as new as its watches

    async def of_all(self) -> tuple[Pause, ...]:
        """What holds for all NodePools. Launches continue where Freezes cannot be read, because pods wait for them."""
        try:
            rules = await self._rules()
        except Failure:
            rules = TimeRules()
        return self._of_all(await self.namespaces.read(names.SYSTEM_NAMESPACE), rules)

    async def pins(self, pools: Iterable[str], reason: str) -> dict[str, Pin | None]:
        """How claims of these pools take images of before a change, or no other target. Where roll-outs cannot be read,
        launches use what their NodeClass makes, and drift waits."""
        try:
            rules = await self._rules()
        except Failure:
            if reason == _DRIFTED:
                raise
            return {}
        return {pool: pin_of(rollouts_of(rules.rollouts, pool), reason) for pool in pools}

    async def other_targets(self, pools: Mapping[str, NodePool | None], basis: RolloutBasis) -> dict[str, str]:
        """By pool, why a roll-out does not make the replacement that was decided on when its steps stood like this."""
        rules, found = await self._rules(), dict[str, str]()
        for name, pool in pools.items():
            policies = policies_of(rules.policies, pool) if pool is not None else ()
            found[name] = why_not_made(policies, rollouts_of(rules.rollouts, name), name, basis)
        return found

    def in_pool(self, pool: NodePool | None) -> Pause | None:
        """The own pause of a pool that has just been read."""
        return pause_of_pool(pool, self.now()) if pool is not None else None

    async def hold(self, name: str, cause: Cause, *, replaced: bool = False) -> PoolHold | None:
        """What keeps nodes of the pool from beginning to leave for that cause; None where they may."""
        return hold_of(await self.said(name), cause, replaced=replaced)

    async def said(self, name: str) -> Said:
        """All that people say about the pool."""
        rules = await self._rules()
        general = self._of_all(await self.namespaces.read(names.SYSTEM_NAMESPACE), rules)
        pool = await self.pools.read(name) if name else None
        own = self.in_pool(pool)
        policies = policies_of(rules.policies, pool) if pool is not None else ()
        return Said(
            now=self.now(),
            pool=pool,
            pauses=general if own is None else (*general, own),
            policies=policies,
            readiness=self._readiness(policies),
            rollouts=rollouts_of(rules.rollouts, name),
        )

    async def deleted_at(self, claim: NodeClaim) -> float | None:
        """When the claim is deleted for its age, as its NodePool and policies have it now."""
        rules, pool = await self._rules(), claim.labels.get(names.NODE_POOL, "")
        return deleted_at(rules.policies, await self.pools.read(pool) if pool else None, claim)

    def _readiness(self, policies: tuple[Policy, ...]) -> Mapping[str, Readiness]:
        if not any(policy.health for policy in policies):
            return {}
        try:
            return readiness_of(policies, self.fleet())
        except Failure as failure:  # a watch is broken: hard expiry goes on, what is voluntary waits
            return {policy.name: Readiness(fault=str(failure)) for policy in policies}

    def _of_all(self, system: Namespace | None, rules: TimeRules) -> tuple[Pause, ...]:
        return pauses_of_all(system, rules.freezes, self.now())

    async def _rules(self) -> TimeRules:
        return await self.rules.read(EVERYTHING)
