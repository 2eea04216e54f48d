"""When pods came to a node or left it, as far as this process has seen it and the claim's stamp does not show it yet.

Upkeep writes the stamp (DIS-163) a moment after the pods have left, and the same change wakes the decision. By the old
stamp, a node whose pods have just left would be taken at once, as if its consolidateAfter were over, with only the 15 s
of the second look.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import is_
from typing import Final

from dovetail.disruption.upkeep.timers import is_stamp_due
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_index import NO_PODS, NodePods
from dovetail.model.objects.pod_rules import is_daemon, is_terminal, is_terminating
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot

Pods = dict[str, frozenset[str]]
PART: Final = 10_000  # pods that are processed at once
_NONE: Final = frozenset[str]()


class Movements:
    """Compares each snapshot with the one before it."""

    def __init__(self) -> None:
        self._living = LivingPods()
        self._before: tuple[float, Pods] | None = None
        self._moved: dict[str, float] = {}  # by node
        self._late: dict[str, tuple[NodeClaim, NodeClaim]] = {}  # by claim: as it is, and with its movement

    def catch_up(self, snapshot: Snapshot) -> Iterator[None]:
        """Do most of the work of `seen` beforehand, in parts."""
        return self._living.catch_up(snapshot)

    def seen(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the times of movements that are not stamped yet. The first snapshot shows none."""
        before, pods = self._before, self._living.of(snapshot)
        self._before = (snapshot.now, pods)
        if before is None:
            return snapshot
        self._notice(snapshot, pods, before)
        late: dict[str, NodeClaim] = {}
        for name, claim in snapshot.claims.items() if self._moved else ():
            moved = self._moved.get(claim.node_name)
            if moved is None:
                continue
            if is_stamp_due(claim, moved):
                late[name] = self._with(claim, moved)
            else:
                del self._moved[claim.node_name]  # stamped, or too close to another stamp to count
        self._late = {name: (snapshot.claims[name], claim) for name, claim in late.items()}
        return replace(snapshot, claims={**snapshot.claims, **late}) if late else snapshot

    def _with(self, claim: NodeClaim, moved: float) -> NodeClaim:
        """The claim with that stamp: the same object as in the last snapshot if neither has changed, as a stamp may be
        minutes late."""
        standing, known = self._late.get(claim.name, (None, claim))
        return known if standing is claim and known.last_pod_event == moved else replace(claim, last_pod_event=moved)

    def _notice(self, snapshot: Snapshot, pods: Pods, before: tuple[float, Pods]) -> None:
        """Keep the movements since the last snapshot, except for claims that were stamped after it."""
        moment, others = before
        if self._moved:
            nodes = {claim.node_name for claim in snapshot.claims.values()}
            self._moved = {node: at for node, at in self._moved.items() if node in nodes}
        for claim in snapshot.claims.values() if pods is not others else ():
            node = claim.node_name
            now, then = pods.get(node), others.get(node)
            if now is not then and now != then and (claim.last_pod_event or 0.0) < moment:
                self._moved[node] = snapshot.now


class LivingPods:
    """The pods on each node that have neither ended nor been deleted, without those of DaemonSets.

    In later snapshots only nodes with a changed pod are considered: a view gives the same object for the pods of the
    others."""

    def __init__(self) -> None:
        self._seen: dict[str, NodePods] = {}  # by node
        self._by_node: Pods = {}

    def of(self, snapshot: Snapshot) -> Pods:
        """Their UIDs by node, as of this snapshot. A set that has not changed is the same object as before."""
        for _ in self._parts(snapshot.pods_by_node):
            pass
        return self._by_node

    def catch_up(self, snapshot: Snapshot) -> Iterator[None]:
        """Process what has changed, in parts between which the caller may do something else: a first snapshot takes a
        tenth of a second. The next call of `of` then has little to do."""
        yield
        yield from self._parts(snapshot.pods_by_node)

    def _parts(self, now: Mapping[str, NodePods]) -> Iterator[None]:
        before, part, size = self._seen, list[str](), 0
        changed = [node for node, pods in now.items() if before.get(node) is not pods]
        gone = before.keys() - now.keys() if len(before) + len(changed) > len(now) else ()
        for node in (*changed, *gone):
            part.append(node)
            size += len(now.get(node, ()))
            if size >= PART:
                self._take(now, part)
                yield
                part, size = [], 0
        self._take(now, part)

    def _take(self, now: Mapping[str, NodePods], nodes: Iterable[str]) -> None:
        found: dict[str, frozenset[str]] = {}
        for node in nodes:
            pods, seen = now.get(node, NO_PODS), self._seen.get(node, NO_PODS)
            if len(pods) != len(seen) or not all(map(is_, pods, seen)):
                found[node] = pods.kept(_living)
            if node in now:
                self._seen[node] = pods
            else:
                self._seen.pop(node, None)
        other = {node: uids for node, uids in found.items() if uids != self._by_node.get(node, _NONE)}
        if other:
            self._by_node = {node: uids for node, uids in (self._by_node | other).items() if uids}


def _living(pods: NodePods) -> frozenset[str]:
    return frozenset([pod.uid for pod in pods if _lives(pod)])


def _lives(pod: Pod) -> bool:
    return bool(pod.node_name) and not (is_terminal(pod) or is_terminating(pod) or is_daemon(pod))
