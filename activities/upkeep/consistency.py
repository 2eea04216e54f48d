"""Is each node as large as what was launched? A condition and a notice say so; nothing acts on it (LIF-75 to
LIF-77)."""

from collections.abc import Callable
from functools import partial

from dovetail.activities.shared.looks.look import Look, Write, earliest
from dovetail.activities.shared.turns import each_by_turns
from dovetail.activities.shared.writes.revisions import set_conditions
from dovetail.lifecycle.conditions import claim_conditions_with, false, true
from dovetail.lifecycle.node_checks import CONSISTENT, LOOK_SECONDS, shape_issues
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.snapshot import Snapshot
from dovetail.notices.claims import consistency_check_failed
from dovetail.ports.objects import NodeClaims, Notices

SETTLED_SECONDS = 10.0  # just after its initialisation a claim is written by others; this can wait


class ConsistencyUpkeep:
    """Finds nodes that are smaller than what was launched."""

    def __init__(self, claims: NodeClaims, notices: Notices, now: Callable[[], float]) -> None:
        self.claims, self.notices, self.now = claims, notices, now
        self.looked: dict[str, float] = {}  # claim UID -> when

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due, and when the next claim's ten minutes are over."""
        now = self.now()
        writes: list[Write] = []
        settled: list[float] = []
        self.looked = {uid: at for uid, at in self.looked.items() if now - at < LOOK_SECONDS}
        async for claim in each_by_turns([c for c in snapshot.claims.values() if c.uid not in self.looked]):
            managed = snapshot.is_ours(claim.node_class)
            node = snapshot.pairing.node_of(claim)
            if node is None or not managed or claim.deleting_since is not None:
                continue
            began = claim.condition(names.INITIALIZED_CONDITION)
            if began is None or began.status != "True":
                continue  # its ten minutes begin when there is something to compare
            if now - began.changed < SETTLED_SECONDS:
                settled.append(began.changed + SETTLED_SECONDS)
                continue
            self.looked[claim.uid] = now
            found = Judging().judge(claim, "consistency", shape_issues, claim, node)
            issues = (found.says,) if isinstance(found, Unjudged) else found
            wanted = self._condition(issues)
            if issues or claim_conditions_with(claim, wanted) is not None:
                writes.append(partial(self._write, claim, wanted, issues))
        first = min(self.looked.values(), default=None)
        return Look(due=writes, again=earliest(*settled, None if first is None else first + LOOK_SECONDS))

    def _condition(self, issues: tuple[str, ...]) -> Condition:
        if issues:
            return false(CONSISTENT, self.now(), ("ConsistencyCheckFailed", "Consistency Check Failed"))
        return true(CONSISTENT, self.now())

    async def _write(self, claim: NodeClaim, wanted: Condition, issues: tuple[str, ...]) -> None:
        await self.notices.publish(*[consistency_check_failed(claim, issue) for issue in issues])
        await set_conditions(self.claims, claim, wanted)
