"""When pods came to a node or left it, as far as this process has seen and the claim's stamp does not say yet.

Upkeep writes the stamp (DIS-163) a moment after the pods have left, and the same change wakes the decision. By the old
stamp, a node whose pods have just left would be taken at once, as if its consolidateAfter were over, with only the 15 s
of the second look.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from dovetail.disruption.upkeep.timers import is_stamp_due
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.rules.pod_rules import is_daemon, is_terminal, is_terminating
from dovetail.model.snapshot import Snapshot

Pods = dict[str, frozenset[str]]
PART: Final = 10_000  # pods that are taken up at once


class Movements:
    """Compares each snapshot with the one before it."""

    def __init__(self) -> None:
        self._living = LivingPods()
        self._before: tuple[float, Pods] | None = None
        self._moved: dict[str, float] = {}  # by node
        self._late: dict[str, tuple[NodeClaim, NodeClaim]] = {}  # by claim: as it is, and with its movement

    def catch_up(self, snapshot: Snapshot) -> Iterator[None]:
        """Before `seen`: most of its work, in parts."""
        return self._living.catch_up(snapshot)

    def seen(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot, with the moments of movements that are not stamped yet. The first snapshot shows none."""
        before, pods = self._before, self._living.of(snapshot)
        self._before = (snapshot.now, pods)
        if before is None:
            return snapshot
        self._notice(snapshot, pods, before)
        late: dict[str, NodeClaim] = {}
        for name, claim in snapshot.claims.items():
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
        """The claim with that stamp: the object of the snapshot before where neither has changed, as a stamp may be
        minutes late."""
        standing, known = self._late.get(claim.name, (None, claim))
        return known if standing is claim and known.last_pod_event == moved else replace(claim, last_pod_event=moved)

    def _notice(self, snapshot: Snapshot, pods: Pods, before: tuple[float, Pods]) -> None:
        """Keep the movements since the snapshot before, but for claims that were stamped later than it."""
        moment, others = before
        nodes = {claim.node_name for claim in snapshot.claims.values()}
        self._moved = {node: at for node, at in self._moved.items() if node in nodes}
        for claim in snapshot.claims.values():
            node = claim.node_name
            now, then = pods.get(node), others.get(node)
            if now is not then and now != then and (claim.last_pod_event or 0.0) < moment:
                self._moved[node] = snapshot.now


class LivingPods:
    """The pods on each node that have neither ended nor been deleted, without those of DaemonSets.

    Of a further snapshot only the pods that have changed are looked at: a view gives the same object for the others."""

    def __init__(self) -> None:
        self._seen: dict[str, Pod] = {}  # by UID
        self._by_node: Pods = {}

    def of(self, snapshot: Snapshot) -> Pods:
        """Their UIDs by node, as of this snapshot. A set that has not changed is the same object as before."""
        pods, before = snapshot.pods, self._seen
        changed = self._changed(pods)
        gone = before.keys() - pods.keys() if len(before) + len(changed) > len(pods) else ()
        self._take(pods, changed, gone)
        self._seen = dict(pods)
        return self._by_node

    def catch_up(self, snapshot: Snapshot) -> Iterator[None]:
        """Take up most of what has changed, in parts between which the caller may do something else: a first snapshot
        takes a tenth of a second. What is asked for next has the rest."""
        pods, changed = snapshot.pods, self._changed(snapshot.pods)
        yield
        for begin in range(0, len(changed) - PART, PART):
            part = changed[begin : begin + PART]
            self._take(pods, part, ())
            self._seen.update((uid, pods[uid]) for uid in part)
            yield

    def _changed(self, pods: Mapping[str, Pod]) -> list[str]:
        before = self._seen
        return [uid for uid, pod in pods.items() if before.get(uid) is not pod]

    def _take(self, pods: Mapping[str, Pod], changed: Iterable[str], gone: Iterable[str]) -> None:
        before = self._seen
        by_node: dict[str, set[str]] = {}
        for uid in (*changed, *gone):
            for pod, is_there in ((before.get(uid), False), (pods.get(uid), True)):
                if pod is not None and _lives(pod):
                    uids = by_node.setdefault(pod.node_name, set(self._by_node.get(pod.node_name, ())))
                    uids.add(uid) if is_there else uids.discard(uid)
        if by_node:
            self._by_node = self._by_node | {node: frozenset(uids) for node, uids in by_node.items()}
            self._by_node = {node: uids for node, uids in self._by_node.items() if uids}


def _lives(pod: Pod) -> bool:
    return bool(pod.node_name) and not (is_terminal(pod) or is_terminating(pod) or is_daemon(pod))
