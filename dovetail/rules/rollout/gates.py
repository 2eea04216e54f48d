"""The gate `nodes` of a NodeRollout: do pods run as well on nodes at the target as on the others?

Each owner's pods are compared with those of the same owner, so that an application that breaks everywhere at once is
not blamed on the change. If an owner has no pods on other nodes any more, nothing is compared.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dovetail.model.objects.pod_rules import is_active
from dovetail.model.own.gates import WRITTEN, GateResult
from dovetail.model.own.rollouts import NODES_GATE, NodesGate
from dovetail.model.pods import Pod, controller_of
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Claims, Snapshot
from dovetail.model.values.listing import shown
from dovetail.rules.rollout.moves import CONFIRMED, LONGEST_WORDS
from dovetail.rules.rollout.nodes import split_of

STARTS_WITHIN: Final = 300.0  # seconds in which a pod that runs well elsewhere becomes ready, unless it fails before
WORSE: Final = 2  # times the share of unready pods on the other nodes
_PASSES: Final = 600.0  # seconds after which it is written again that it passes
_NAMED: Final = 3


@dataclass(slots=True)
class _Counts:
    ready: int = 0
    starting: int = 0
    unready: int = 0
    elsewhere: int = 0
    unready_elsewhere: int = 0

    @property
    def is_worse(self) -> bool:
        """Whether more of them are unready at the target; a pod that starts elsewhere counts as unready there."""
        here = self.ready + self.starting + self.unready
        return bool(self.elsewhere) and self.unready * self.elsewhere > WORSE * self.unready_elsewhere * here

    @property
    def is_open(self) -> bool:
        """Whether it is too early to say: they are fine elsewhere, and none is ready at the target."""
        return self.elsewhere > self.unready_elsewhere and not self.ready and bool(self.starting)


def nodes_gate(snapshot: Snapshot, pool: NodePool, known: NodesGate, now: float) -> NodesGate:
    """The gate now. `known`: what it said last; a worse result is blamed on the target only after a minute. What nobody
    looked at, while all workers were away, counts for nothing, but what failed before them fails still."""
    counts = _counted(snapshot, pool, now)
    worse = named(owner for owner, each in counts.items() if each.is_worse)
    if worse:
        goes_on = known.since is not None and now - known.asked <= NODES_GATE.counts_for
        since = known.since if known.since is not None and goes_on else float(int(now))
        fails = known.result == GateResult.FAILING or now - since >= CONFIRMED
        result = GateResult.FAILING if fails else GateResult.UNKNOWN
        message = f"pods are not ready on nodes at the target and are on the others: {worse}"
        return _written(known, NodesGate(result=result, since=since, message=message[:LONGEST_WORDS]), now)
    starting = named(owner for owner, each in counts.items() if each.is_open)
    if starting:
        message = f"no pod is ready yet on nodes at the target: {starting}"
        return _written(known, NodesGate(message=message[:LONGEST_WORDS]), now)
    return _written(known, NodesGate(result=GateResult.PASSING), now)


def _written(known: NodesGate, found: NodesGate, now: float) -> NodesGate:
    """What is found now, with its moment; what says the same as a moment ago is not written again."""
    lasts = WRITTEN if found.message else _PASSES
    is_same = known.asked and known == replace(found, asked=known.asked) and now - known.asked < lasts
    return known if is_same else replace(found, asked=float(int(now)))


def _counted(snapshot: Snapshot, pool: NodePool, now: float) -> Mapping[str, _Counts]:
    """The counts of each owner with an unready pod at the target: the other owners prove nothing against the target."""
    old, target = split_of(snapshot, pool)
    nodes = {claim.node_name for claim in target}
    counts = {_owner(pod): _Counts() for pod in snapshot.unready_pods if pod.node_name in nodes}
    counts.pop("", None)
    for claims, at_target in ((target, True), (old, False)) if counts else ():
        for pod in _pods(snapshot, claims):
            if (owner := _owner(pod)) in counts:
                _count(counts[owner], pod, at_target, now)
    return counts


def _pods(snapshot: Snapshot, claims: Claims) -> Iterator[Pod]:
    for claim in claims:
        yield from snapshot.pods_by_node.get(claim.node_name, ())


def _owner(pod: Pod) -> str:
    """The owner's name for people; empty if the pod is not meant to run for good."""
    owner = controller_of(pod.owners) if is_active(pod) else None
    return f"{owner.kind} {pod.namespace}/{owner.name}" if owner is not None and owner.kind != "Job" else ""


def _count(counts: _Counts, pod: Pod, at_target: bool, now: float) -> None:
    if not at_target:
        counts.elsewhere += 1
        counts.unready_elsewhere += not pod.ready
    elif pod.ready:
        counts.ready += 1
    elif not pod.failing and now - (pod.started or pod.created) < STARTS_WITHIN:
        counts.starting += 1
    else:
        counts.unready += 1


def named(which: Iterable[str]) -> str:
    """A few of them by name, and how many more there are."""
    return shown(sorted(which), _NAMED)
