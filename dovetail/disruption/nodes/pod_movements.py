"""When pods came to a node or left it, as far as this process has seen and the claim's stamp does not say yet.

Upkeep writes the stamp (DIS-163) a moment after the pods have left, and the same change wakes the decision. By the old
stamp, a node whose pods have just left would be taken at once, as if its consolidateAfter were over, with only the 15 s
of the second look.
"""

from dataclasses import replace

from dovetail.disruption.upkeep.timers import is_stamp_due
from dovetail.model.nodes import NodeClaim
from dovetail.model.pod_rules import is_daemon, is_terminal, is_terminating
from dovetail.model.snapshot import Snapshot

Pods = dict[str, frozenset[str]]


class Movements:
    """Compares each snapshot with the one before it."""

    def __init__(self) -> None:
        self._before: tuple[float, Pods] | None = None
        self._moved: dict[str, float] = {}  # by node

    def seen(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot, with the moments of movements that are not stamped yet. The first snapshot shows none."""
        before, pods = self._before, living_pods(snapshot)
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
                late[name] = replace(claim, last_pod_event=moved)
            else:
                del self._moved[claim.node_name]  # stamped, or too close to another stamp to count
        return replace(snapshot, claims={**snapshot.claims, **late}) if late else snapshot

    def _notice(self, snapshot: Snapshot, pods: Pods, before: tuple[float, Pods]) -> None:
        """Keep the movements since the snapshot before, but for claims that were stamped later than it."""
        moment, others = before
        nodes = {claim.node_name for claim in snapshot.claims.values()}
        self._moved = {node: at for node, at in self._moved.items() if node in nodes}
        for claim in snapshot.claims.values():
            node = claim.node_name
            if pods.get(node) != others.get(node) and (claim.last_pod_event or 0.0) < moment:
                self._moved[node] = snapshot.now


def living_pods(snapshot: Snapshot) -> Pods:
    """The pods on each node that have neither ended nor been deleted, without those of DaemonSets."""
    by_node: dict[str, set[str]] = {}
    for uid, pod in snapshot.pods.items():
        if pod.node_name and not (is_terminal(pod) or is_terminating(pod) or is_daemon(pod)):
            by_node.setdefault(pod.node_name, set()).add(uid)
    return {node: frozenset(uids) for node, uids in by_node.items()}
