"""Writes on a NodePool that a replacement of one of its nodes did not become ready in time.

A write that fails is only logged: an undo does not wait for it.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from dovetail.activities.shared.looks.live_pauses import LivePauses
from dovetail.activities.shared.writes.pool_revisions import Annotations, changed, revise_pool
from dovetail.disruption.choose import METHODS
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.rollouts import is_of_target
from dovetail.model.pools import NodePool
from dovetail.ports.failures import Failure
from dovetail.ports.objects import NodePools
from dovetail.rules.brake.breakers import Breaker, breaker_of, with_breaker
from dovetail.rules.said import Cause

_log = logging.getLogger(__name__)

HAD_ITS_TIME: Final = 540.0  # seconds since it was made: a disruption that was called off or failed before says nothing


class BreakerMemory:
    """The memory of replacements that never became ready."""

    def __init__(self, pools: NodePools, pauses: LivePauses, now: Callable[[], float]) -> None:
        self.pools, self.pauses, self.now = pools, pauses, now

    async def given_back(self, claim: NodeClaim, method: str, plan_id: str) -> None:
        """Remember that a replacement of this plan was given back, once for each plan, if its instance had enough time,
        its node is not ready and the pool's target is still the one that it was made for."""
        reason = next((str(each.reason) for each in METHODS if each.name == method), "")
        had_its_time = self.now() - claim.created >= HAD_ITS_TIME
        if not had_its_time or not claim.provider_id or claim.is_true(names.INITIALIZED_CONDITION):
            return
        if not reason or not Cause.of(reason).is_paced:
            return
        name = claim.labels.get(names.NODE_POOL, "")
        try:
            said = await self.pauses.said(name)
            if said.pool is not None and is_of_target(claim, said.pool, said.rollouts):
                failed = partial(Breaker.failed, what=plan_id, rule=said.breaker_rule, now=self.now())
                await revise_pool(self.pools, said.pool, partial(_failed, claim, reason, failed))
        except Failure as failure:
            _log.warning("NodePool %s: could not record the result of its replacements: %s", name, failure)


def _failed(claim: NodeClaim, reason: str, failed: Callable[[Breaker], Breaker], pool: NodePool) -> Annotations:
    known = breaker_of(pool, reason) or Breaker(reason=reason)
    return changed(pool, with_breaker(pool, failed(known)) if known.judges(claim) else pool)
