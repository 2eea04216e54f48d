"""Counts a NodePool's nodes against its budgets once more, before a mark: what asks for it may be no decision of ours.

The cache is counted, which costs no request. Where it says that no more may go, it may only be behind: then the API
server is asked about those that it counts as busy. What this process has let go counts before the cache shows it.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from dovetail.activities.shared.waits.side_by_side import side_by_side
from dovetail.disruption.live_check import BudgetCount, claims_of_pool, is_busy, is_going
from dovetail.messages.plans import Target
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.ports.objects import NodeClaims, Nodes

LOOKED_SECONDS: Final = 0.5
SEEN_SECONDS: Final = 10.0  # within which the cache shows a mark
AT_ONCE: Final = 10
MOST_ASKED: Final = 50  # where more are busy, the cache is believed


class LiveBudgets:
    """What budgets let go now, and what this process has let go. `fleet`: nodes and claims as the cache has them."""

    def __init__(
        self, fleet: Callable[[], Snapshot], claims: NodeClaims, nodes: Nodes, now: Callable[[], float]
    ) -> None:
        self.fleet, self.claims, self.nodes, self.now = fleet, claims, nodes, now
        self._known: dict[str, tuple[float, list[tuple[NodeClaim, bool, bool]]]] = {}
        self._let: dict[str, float] = {}  # UID -> until when the cache may not show it; without end before its mark

    async def take(self, pool: NodePool, reason: str, targets: Sequence[Target], *, whole: bool) -> dict[str, str]:
        """Let the targets go as far as the pool's budgets do; answers the claims of the others, and why. `whole`: all
        of them or none."""
        count = self._count(pool, reason, targets)
        if count.left < len(targets) and len(count.busy) <= MOST_ASKED:
            idle = await self._idle(count.busy)
            count = self._count(pool, reason, targets, idle)  # others may have begun meanwhile
        granted = 0 if whole and count.left < len(targets) else count.left
        self._let.update((target.claim_uid, inf) for target in targets[:granted])
        return {target.claim: count.says for target in targets[granted:]}

    def end(self, targets: Sequence[Target]) -> None:
        """Their marks are made, or have been refused: the cache, or the API server, will say."""
        for target in targets:
            if target.claim_uid in self._let:
                self._let[target.claim_uid] = self.now() + SEEN_SECONDS

    def _count(
        self, pool: NodePool, reason: str, targets: Sequence[Target], idle: frozenset[str] = frozenset()
    ) -> BudgetCount:
        now = self.now()
        self._let = {uid: until for uid, until in self._let.items() if until > now}
        going = frozenset(target.claim_uid for target in targets)
        counted = [(claim, busy) for claim, counts, busy in self._of_pool(pool.name) if counts or claim.uid in going]
        repaired = reason == DisruptionReason.UNHEALTHY  # what is only not ready would use up its own budget
        busy = tuple(
            claim
            for claim, busy in counted
            if ((busy and not repaired) or is_going(claim) or claim.uid in self._let)
            and claim.uid not in going
            and claim.uid not in idle
        )
        return BudgetCount(pool=pool, reason=reason, nodes=len(counted), busy=busy, now=now)

    def _of_pool(self, pool: str) -> list[tuple[NodeClaim, bool, bool]]:
        """The claims of the pool, looked over once for the marks of a wave: 20 ms where they are 5,000."""
        at, known = self._known.get(pool, (-inf, []))
        if not 0.0 <= self.now() - at < LOOKED_SECONDS:
            known = claims_of_pool(self.fleet(), pool)
            self._known[pool] = (self.now(), known)
        return known

    async def _idle(self, busy: Sequence[NodeClaim]) -> frozenset[str]:
        """Those that are not busy any more, by UID, as the API server has them. What is being marked is."""
        asked = [claim for claim in busy if self._let.get(claim.uid) != inf]
        answers = await side_by_side([self._is_idle(claim) for claim in asked], AT_ONCE)
        return frozenset(claim.uid for claim, idle in zip(asked, answers, strict=True) if idle)

    async def _is_idle(self, known: NodeClaim) -> bool:
        claim = await self.claims.read(known.name)
        if claim is None or claim.uid != known.uid:
            return True
        return not is_busy(claim, await self.nodes.read(claim.node_name) if claim.node_name else None)
