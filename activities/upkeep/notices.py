"""Publishes what has become of NodeClaims, NodePools and Nodes: ready or not, and gone.

Upstream publishes each transition of each condition (EVT-13): six Events in a claim's start alone, a third of all its
requests. Here there is one for the root condition, which sums up the others; each of those is on the object with its
time, and in the workflow's history. What existed at the first look after a restart is not published again.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from dovetail.activities.shared.looks.last_answers import LastAnswer
from dovetail.activities.shared.looks.look import Look, Write
from dovetail.lifecycle.pool_readiness import CLASS_NOT_FOUND, CLASS_TERMINATING
from dovetail.model import names
from dovetail.model.names import CLASS_READY
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.objects.watched_kinds import NODES_AND_STANDING_CLAIMS, POOLS
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice
from dovetail.ports.objects import Notices

Observed = NodeClaim | NodePool | Node


class NoticeUpkeep:
    """Finds the notices that are not published yet."""

    def __init__(self, notices: Notices) -> None:
        self.notices = notices
        self.before: Mapping[str, Observed] | None = None
        self.observed = LastAnswer(NODES_AND_STANDING_CLAIMS | POOLS, _by_uid)

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The notices that are due; time alone changes nothing."""
        before, after = self.before, self.observed.of(snapshot)
        self.before = after
        if before is None or before is after:
            return Look()
        notices = [*_transitions(before, after), *_lost_classes(before, after), *_ends(before, after)]
        return Look(due=[partial(self.notices.publish, notice) for notice in notices])


def _by_uid(snapshot: Snapshot) -> dict[str, Observed]:
    """Ours, and the nodes that carry our finalizer."""
    claims = [claim for claim in snapshot.claims.values() if snapshot.is_ours(claim.node_class)]
    pools = [pool for pool in snapshot.pools.values() if snapshot.is_ours(pool.template.node_class)]
    nodes = [n for n in snapshot.nodes.values() if names.TERMINATION_FINALIZER in n.finalizers]
    observed: list[Observed] = [*claims, *pools, *nodes]
    return {one.uid: one for one in observed}


def _transitions(before: Mapping[str, Observed], after: Mapping[str, Observed]) -> Iterator[Notice]:
    """EVT-13, of the root condition."""
    for uid, one in after.items():
        old = before.get(uid)
        if isinstance(one, Node) or old is None:
            continue
        was, now = _ready(old), _ready(one)
        if now is None or now.status == ("Unknown" if was is None else was.status):
            continue
        text = f"Status condition transitioned, Type: Ready, Status: {'Unknown' if was is None else was.status}"
        message = f"{text} -> {now.status}, Reason: {now.reason}" + (f", Message: {now.message}" if now.message else "")
        yield notice_about(one, names.READY, message, distinct=message)


def _lost_classes(before: Mapping[str, Observed], after: Mapping[str, Observed]) -> Iterator[Notice]:
    """A pool whose NodeClass is missing or leaving has no instance types at all any more (AWS-168)."""
    for uid, one in after.items():
        old = before.get(uid)
        if not isinstance(one, NodePool):
            continue
        now, was = _lost_class(one), _lost_class(old) if isinstance(old, NodePool) else None
        if now is not None and (was is None or was.reason != now.reason):
            text = f"Failed resolving NodeClass: {now.message}"
            yield notice_about(one, "FailedResolvingNodeClass", text, "Warning", distinct=text)


def _lost_class(pool: NodePool) -> Condition | None:
    reasons = (CLASS_NOT_FOUND, CLASS_TERMINATING)
    return next((c for c in pool.conditions if c.type == CLASS_READY and c.reason in reasons), None)


def _ends(before: Mapping[str, Observed], after: Mapping[str, Observed]) -> Iterator[Notice]:
    """EVT-14: what carried our finalizer and was leaving is gone."""
    for uid, one in before.items():
        if uid in after or isinstance(one, NodePool) or names.TERMINATION_FINALIZER not in one.finalizers:
            continue
        text = f"Finalized {names.TERMINATION_FINALIZER}"
        yield notice_about(one, "Finalized", text, distinct=text)


def _ready(one: Observed) -> Condition | None:
    return next((condition for condition in one.conditions if condition.type == names.READY), None)
