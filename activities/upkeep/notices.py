"""Tells people what has become of NodeClaims and NodePools: ready or not, and gone.

Upstream tells each transition of each condition (V-13): six Events in a claim's start alone, a third of all its
requests. Here the root condition is told, which sums the others up; each of them stands on the object with its time,
and in the workflow's history. The trap avoided: telling everything anew after a restart; what stood there at the first
look is no news.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial

from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.notice import Notice
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.objects import Notices

Difference = Callable[[], Awaitable[object]]
Told = NodeClaim | NodePool | Node


class NoticeUpkeep:
    """Finds what people have not been told."""

    def __init__(self, notices: Notices, now: Callable[[], float]) -> None:
        self.notices, self.now = notices, now
        self.before: Mapping[str, Told] | None = None

    async def differences(self, snapshot: Snapshot) -> tuple[list[Difference], float]:
        """The notices that are due; nothing becomes due by time alone."""
        before, after = self.before, _by_uid(snapshot)
        self.before = after
        if before is None:
            return [], self.now() + 3600.0
        notices = [*_transitions(before, after), *_ends(before, after)]
        return [partial(self.notices.publish, notice) for notice in notices], self.now() + 3600.0


def _by_uid(snapshot: Snapshot) -> dict[str, Told]:
    """Ours, and the nodes that carry our finalizer."""
    supported = snapshot.supported_node_classes
    claims = [c for c in snapshot.claims.values() if (c.node_class.group, c.node_class.kind) in supported]
    nodes = [n for n in snapshot.nodes.values() if names.TERMINATION_FINALIZER in n.finalizers]
    told: list[Told] = [*claims, *snapshot.pools.values(), *nodes]
    return {one.uid: one for one in told}


def _transitions(before: Mapping[str, Told], after: Mapping[str, Told]) -> Iterator[Notice]:
    """V-13, of the root condition."""
    for uid, one in after.items():
        old = before.get(uid)
        if isinstance(one, Node) or old is None:
            continue
        was, now = _ready(old), _ready(one)
        if now is None or now.status == ("Unknown" if was is None else was.status):
            continue
        text = f"Status condition transitioned, Type: Ready, Status: {'Unknown' if was is None else was.status}"
        message = f"{text} -> {now.status}, Reason: {now.reason}" + (f", Message: {now.message}" if now.message else "")
        yield _notice(one, names.READY, message)


def _ends(before: Mapping[str, Told], after: Mapping[str, Told]) -> Iterator[Notice]:
    """V-14: what carried our finalizer and was leaving is gone."""
    for uid, one in before.items():
        if uid in after or isinstance(one, NodePool) or names.TERMINATION_FINALIZER not in one.finalizers:
            continue
        yield _notice(one, "Finalized", f"Finalized {names.TERMINATION_FINALIZER}")


def _ready(one: Told) -> Condition | None:
    return next((condition for condition in one.conditions if condition.type == names.READY), None)


def _notice(one: Told, reason: str, message: str) -> Notice:
    return Notice(kind=type(one).__name__, name=one.name, uid=one.uid, reason=reason, message=message, distinct=message)
