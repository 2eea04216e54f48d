"""Claims that the API server refused are proposed again only once it would take them.

An admission policy that refuses the claims of one pool would otherwise be asked with every plan, as often as pods of
that pool ask, and each time with a workflow's events. Whether it refuses is asked by a dry run, without effects,
after 10 s, then less and less often, once a minute at last; other pods' plans do not wait for it. Meanwhile the pool
counts as stopped for its pods, so that another pool takes those that it can, as in a shortage.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.activities.provisioning.create_node_claims import new_claim
from dovetail.messages.plans import ProposedNode, ProvisioningPlan
from dovetail.messages.requests import CreateRequest
from dovetail.model.judging import LONGEST_TEXT
from dovetail.model.quoting import one_line
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
    refusals: dict[str, str] = field(default_factory=dict)  # pool -> why, as far as it was asked

    def __post_init__(self) -> None:
        self.again = self.now() + self.pause

    async def without_refused(self, plan: ProvisioningPlan) -> ProvisioningPlan:
        """The plan without the claims that would be refused now, or were a short time ago."""
        doubtful = [one for one in plan.proposed if self._is_doubtful(one)]
        if not doubtful:
            return plan
        due = self.now() >= self.again
        asked = due or bool(self.refusals)
        if due:
            self.refusals.clear()
        for one in doubtful if asked else ():
            if one.pool not in self.refusals and (why := await self._refusal(plan, one)):
                self.refusals[one.pool] = why
        if due:
            self.pause = min(self.pause * 2, LONGEST_SECONDS) if self.refusals else FIRST_SECONDS
            self.again = self.now() + self.pause
        kept = [n for n in plan.proposed if not self._is_doubtful(n) or (asked and n.pool not in self.refusals)]
        return replace(plan, proposed=tuple(kept))

    def _is_doubtful(self, proposed: ProposedNode) -> bool:
        return any(pod.uid in self.pods for pod in proposed.pods)

    async def _refusal(self, plan: ProvisioningPlan, proposed: ProposedNode) -> str:
        """Why the API server would refuse the claim; empty where it would take it."""
        request = CreateRequest(plan_id="dry-run", proposed=(proposed,), type_lists=plan.type_lists)
        try:
            await self.claims.may_create(new_claim(request, 0))
        except Permanent as refusal:
            return one_line(str(refusal))[:LONGEST_TEXT] or "no reason was given"
        return ""
