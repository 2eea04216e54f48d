"""Claims that the API server refused are proposed again only once it would take them.

An admission policy that refuses the claims of one pool would otherwise be asked with every plan, as often as pods of
that pool ask, and each time with a workflow's events. Whether it still refuses is asked by a dry run, without effects,
after 10 s, then less and less often, once a minute at last; other pods' plans do not wait for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.activities.provisioning.create_node_claims import new_claim
from dovetail.messages.plans import ProposedNode, ProvisioningPlan
from dovetail.messages.requests import CreateRequest
from dovetail.ports.failures import Permanent
from dovetail.ports.objects import NodeClaims

FIRST_SECONDS: Final = 10.0
LONGEST_SECONDS: Final = 60.0


@dataclass(slots=True)
class RefusedClaims:
    """The pods whose claims were refused, and when the API server is asked again."""

    claims: NodeClaims
    pods: frozenset[str]
    now: Callable[[], float]
    pause: float = FIRST_SECONDS
    again: float = field(init=False)

    def __post_init__(self) -> None:
        self.again = self.now() + self.pause

    async def without_refused(self, plan: ProvisioningPlan) -> ProvisioningPlan:
        """The plan without the claims that would be refused now, or were a short time ago."""
        doubtful = [one for one in plan.proposed if self._is_doubtful(one)]
        if not doubtful:
            return plan
        refused_pools: set[str] = set()
        if self.now() >= self.again:
            refused_pools = {one.pool for one in doubtful if await self._is_refused(plan, one)}
            self.pause = min(self.pause * 2, LONGEST_SECONDS) if refused_pools else FIRST_SECONDS
            self.again = self.now() + self.pause
        else:
            refused_pools = {one.pool for one in doubtful}
        kept = tuple(one for one in plan.proposed if not self._is_doubtful(one) or one.pool not in refused_pools)
        return replace(plan, proposed=kept)

    def _is_doubtful(self, proposed: ProposedNode) -> bool:
        return any(pod.uid in self.pods for pod in proposed.pods)

    async def _is_refused(self, plan: ProvisioningPlan, proposed: ProposedNode) -> bool:
        request = CreateRequest(plan_id="dry-run", proposed=(proposed,), type_lists=plan.type_lists)
        try:
            await self.claims.may_create(new_claim(request, 0))
        except Permanent:
            return True
        return False
