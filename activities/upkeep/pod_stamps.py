"""When a pod last came to a claim's node or left it, as the claim should say.

If the NodePool asks for no quiet, nothing depends on that moment: it is written five minutes later, once for all pods
that have moved until then, and so never on a node that is gone by then. It is written at once when the pool comes to
ask for quiet.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from dovetail.disruption.nodes.pod_movements import LivingPods, Pods
from dovetail.disruption.upkeep.timers import UNASKED_AFTER, is_stamp_due, stamp_from_list
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot


class _Unwritten(NamedTuple):
    """Movements that nobody asks about: the first of them, and the last."""

    first: float
    last: float


@dataclass(slots=True)
class PodStamps:
    """Compares the pods of each look with those of the one before."""

    living: LivingPods = field(default_factory=LivingPods)
    before: Pods | None = None  # None: there was no look yet
    now: Pods = field(default_factory=dict)
    moved: frozenset[str] = frozenset()  # nodes whose pods may be others than at the look before
    unstamped: dict[str, list[Pod]] = field(default_factory=dict)  # the first look's, on nodes without a stamp
    unwritten: dict[str, _Unwritten] = field(default_factory=dict)  # by claim UID

    def begin(self, snapshot: Snapshot) -> Iterator[None]:
        """A look begins; in parts, between which the caller may do something else."""
        yield from self.living.catch_up(snapshot)
        self.now = self.living.of(snapshot)
        before = self.before or {}
        other = [node for node, pods in self.now.items() if before.get(node) is not pods]
        self.moved = frozenset([*other, *(before.keys() - self.now.keys())])
        yield
        self.unstamped = _on_unstamped_nodes(snapshot) if self.before is None else {}
        yield

    def end(self, snapshot: Snapshot) -> Iterator[None]:
        """It is over: the next one compares with it. In parts as well.

        Pods of nodes that are not initialised are left for a later look, because LaunchNode writes to these claims now.
        Nothing is lost: the quiet after which a node may be consolidated begins when it is initialised."""
        yield
        before = self.before or {}
        there = [claim for claim in snapshot.claims.values() if claim.node_name in self.moved]
        starting = [claim.node_name for claim in there if not _is_initialized(claim)]
        self.before = {**self.now, **{node: before.get(node, frozenset()) for node in starting}}
        if self.unwritten:
            stand = {claim.uid for claim in snapshot.claims.values()}
            self.unwritten = {uid: moments for uid, moments in self.unwritten.items() if uid in stand}

    def due(self, claim: NodeClaim, pool: NodePool, moment: float) -> float | None:
        """The stamp to write now (DIS-163); None for none."""
        moved = self._moved(claim, moment)
        known = self.unwritten.pop(claim.uid, None)
        if moved is None and known is None:
            return None
        last = moved if moved is not None else known.last if known is not None else moment
        first = known.first if known is not None else moment
        if not pool.disruption.consolidate_after and moment < first + UNASKED_AFTER:
            self.unwritten[claim.uid] = _Unwritten(first, last)
            return None
        return last if is_stamp_due(claim, last) else None

    def not_written(self, claim: NodeClaim, stamp: float) -> None:
        """The write of a stamp failed: it is due again, as its pods are no news any more."""
        self.unwritten[claim.uid] = _Unwritten(stamp, stamp)

    def next_due(self, claim: NodeClaim) -> float | None:
        """When what nobody asks about is written."""
        known = self.unwritten.get(claim.uid)
        return None if known is None else known.first + UNASKED_AFTER

    def _moved(self, claim: NodeClaim, moment: float) -> float | None:
        """When a pod came or went since the look before, unless the claim's stamp is young."""
        node = claim.node_name
        if not node or not _is_initialized(claim):
            return None
        if self.before is None:
            return stamp_from_list(claim, self.unstamped.get(node, ()))
        if self.before.get(node, frozenset()) == self.now.get(node, frozenset()):
            return None
        return moment if is_stamp_due(claim, moment) else None


def _on_unstamped_nodes(snapshot: Snapshot) -> dict[str, list[Pod]]:
    """The pods by node, where nothing was stamped: what is written already is what was seen then."""
    found: dict[str, list[Pod]] = {c.node_name: [] for c in snapshot.claims.values() if c.last_pod_event is None}
    for pod in snapshot.pods.values() if found else ():
        if pod.node_name in found:
            found[pod.node_name].append(pod)
    return found


def _is_initialized(claim: NodeClaim) -> bool:
    return claim.is_true(names.INITIALIZED_CONDITION)
