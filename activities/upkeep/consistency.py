"""Is each node what was bought? Said on the claim, and to people; nothing acts on it (L-75 to L-77)."""

from collections.abc import Awaitable, Callable
from functools import partial

from dovetail.activities.shared.revisions import set_conditions
from dovetail.lifecycle.conditions import claim_conditions_with, false, true
from dovetail.lifecycle.node_checks import CONSISTENT, LOOK_SECONDS, shape_issues
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.notices.claims import consistency_check_failed
from dovetail.ports.objects import NodeClaims, Notices

Difference = Callable[[], Awaitable[object]]

SETTLED_SECONDS = 10.0  # after its initialisation a claim is written by others; this can wait


class ConsistencyUpkeep:
    """Finds nodes that are smaller than what was bought."""

    def __init__(self, claims: NodeClaims, notices: Notices, now: Callable[[], float]) -> None:
        self.claims, self.notices, self.now = claims, notices, now
        self.looked: dict[str, float] = {}  # claim UID -> when

    async def differences(self, snapshot: Snapshot) -> tuple[list[Difference], float]:
        """The writes that are due, and when the next claim's ten minutes are over."""
        now, writes = self.now(), []
        soon = now + 3600.0
        self.looked = {uid: at for uid, at in self.looked.items() if now - at < LOOK_SECONDS}
        for claim in snapshot.claims.values():
            managed = (claim.node_class.group, claim.node_class.kind) in snapshot.supported_node_classes
            node = snapshot.pairing.node_of(claim)
            if node is None or not managed or claim.deleting_since is not None or claim.uid in self.looked:
                continue
            began = claim.condition(names.INITIALIZED_CONDITION)
            if began is None or began.status != "True":
                continue  # its ten minutes begin when there is something to compare
            if now - began.changed < SETTLED_SECONDS:
                soon = min(soon, began.changed + SETTLED_SECONDS)
                continue
            self.looked[claim.uid] = now
            issues = shape_issues(claim, node)
            wish = self._condition(issues)
            if issues or claim_conditions_with(claim, wish) is not None:
                writes.append(partial(self._write, claim, wish, issues))
        return list(writes), min([soon, *[at + LOOK_SECONDS for at in self.looked.values()]])

    def _condition(self, issues: tuple[str, ...]) -> Condition:
        if issues:
            return false(CONSISTENT, self.now(), ("ConsistencyCheckFailed", "Consistency Check Failed"))
        return true(CONSISTENT, self.now())

    async def _write(self, claim: NodeClaim, wish: Condition, issues: tuple[str, ...]) -> None:
        await self.notices.publish(*[consistency_check_failed(claim, issue) for issue in issues])
        await set_conditions(self.claims, claim, wish)
