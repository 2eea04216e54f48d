"""The gate `nodes` of a NodeRollout: do pods run as well on nodes at the target as on the others, and as before?

Each owner's pods are compared with those of the same owner on the other nodes of the pool, so that an application that
breaks everywhere at once is not blamed on the change, and with what it lacked when the step began (before.py): neither
is what was broken before. One that has no pods on other nodes any more is compared with the step's beginning alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from dovetail.model.objects.pod_rules import is_active
from dovetail.model.own.gates import WRITTEN, GateResult
from dovetail.model.own.rollouts import NODES_GATE, NodesGate, NodesRule, Rollout, RolloutStatus
from dovetail.model.pods import Pod, controller_of
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Claims, Snapshot
from dovetail.model.values.listing import shown
from dovetail.rules.rollout.before import (
    NOBODY,
    STARTS_WITHIN,
    Fares,
    OwnerKey,
    digest_of,
    entries_of,
    fares_of,
    is_starting,
    owner_of,
)
from dovetail.rules.rollout.moves import CONFIRMED, LONGEST_WORDS
from dovetail.rules.rollout.nodes import split_of, was_made_of

WORSE: Final = 2  # times the share of unready pods on the other nodes
SWITCHED_OFF: Final = "it is switched off: no pods are compared"
_PASSES: Final = 600.0  # seconds after which it is written again that it passes
_NAMED: Final = 3
_WORSE_THAN: Final = {
    True: "pods are not ready on nodes at the target and are on the others: ",
    False: "pods are missing or not ready that were when the step began: ",
}
_ANY: Final = Rollout(name="")


@dataclass(slots=True)
class _Counts:
    """An owner's pods by where they are. `rejected`: by a kubelet at the target, a moment ago."""

    name: str = ""
    ready: int = 0
    starting: int = 0
    unready: int = 0
    rejected: int = 0
    elsewhere: int = 0
    unready_elsewhere: int = 0
    fares: Fares = field(default_factory=Fares)
    before: Fares | None = None  # when the step began

    @property
    def absent(self) -> int:
        """How many are not even made of those that it wanted before: what it wants beyond them is no evidence."""
        return 0 if self.before is None else max(0, min(self.fares.wants, self.before.wants) - self.fares.present)

    @property
    def bad(self) -> int:
        return self.unready + min(self.rejected, self.starting) + self.absent

    @property
    def is_compared(self) -> bool:
        return bool(self.elsewhere) or self.before is not None

    def is_worse(self, rule: NodesRule) -> bool:
        """Whether more of them are unready at the target; a pod that starts elsewhere counts as unready there."""
        bad, here = self.bad, self.ready + self.starting + self.unready + self.absent
        by_others = not self.elsewhere or bad * self.elsewhere > WORSE * self.unready_elsewhere * here
        known = None if self.before is None else self.before.excuses(not self.elsewhere)
        more = bad if known is None else self.fares.lacks - self.unready + bad - known
        return bool(bad) and self.is_compared and by_others and more > rule.tolerates(self.fares.wants)

    @property
    def is_open(self) -> bool:
        """Whether it is too early to say: they are fine elsewhere or were before, and none is ready at the target."""
        was_well = self.before is not None and not self.elsewhere and self.before.lacking < self.before.wants
        return (self.elsewhere > self.unready_elsewhere or was_well) and not self.ready and bool(self.starting)


def nodes_gate(snapshot: Snapshot, pool: NodePool, known: NodesGate, now: float, rollout: Rollout = _ANY) -> NodesGate:
    """The gate now. `known`: what it said last; a worse result is blamed on the target only after a minute. What nobody
    looked at, while all workers were away, counts for nothing, but what failed before them fails still."""
    rule = rollout.nodes_rule or NodesRule()
    if not rule.enabled:
        return _written(known, NodesGate(result=GateResult.PASSING, message=SWITCHED_OFF), now)
    counts = _counted(snapshot, pool, rollout.status, now)
    worse = [each for each in counts if each.is_worse(rule)]
    if worse:
        goes_on = known.since is not None and now - known.asked <= NODES_GATE.counts_for
        since = known.since if known.since is not None and goes_on else float(int(now))
        fails = known.result == GateResult.FAILING or now - since >= CONFIRMED
        result = GateResult.FAILING if fails else GateResult.UNKNOWN
        message = "; ".join(_worse_than(worse))
        return _written(known, NodesGate(result=result, since=since, message=message[:LONGEST_WORDS]), now)
    starting = named(each.name for each in counts if each.is_open)
    if starting:
        message = f"no pod is ready yet on nodes at the target: {starting}"
        return _written(known, NodesGate(message=message[:LONGEST_WORDS]), now)
    alone = named(each.name for each in counts if each.bad and not each.is_compared)
    message = f"nothing is known to compare these with, which are not ready at the target: {alone}" if alone else ""
    return _written(known, NodesGate(result=GateResult.PASSING, message=message[:LONGEST_WORDS]), now)


def _worse_than(worse: Iterable[_Counts]) -> Iterator[str]:
    for by_others, words in _WORSE_THAN.items():
        owners = named(each.name for each in worse if bool(each.elsewhere) == by_others)
        if owners:
            yield words + owners


def _written(known: NodesGate, found: NodesGate, now: float) -> NodesGate:
    """What is found now, with its moment; what says the same as a moment ago is not written again."""
    lasts = WRITTEN if found.message else _PASSES
    is_same = known.asked and known == replace(found, asked=known.asked) and now - known.asked < lasts
    return known if is_same else replace(found, asked=float(int(now)))


def _counted(snapshot: Snapshot, pool: NodePool, status: RolloutStatus, now: float) -> tuple[_Counts, ...]:
    """The counts of each owner with an unready pod at the target, or with fewer pods than it wants and had: the other
    owners prove nothing against the target. A node that was made of it and has drifted by itself is evidence still."""
    others, target = split_of(snapshot, pool)
    since, stable = status.begun or inf, {image.id for image in status.stable.images}
    drifted = {claim.uid: claim for claim in others if was_made_of(claim, pool, since, stable)}
    old, target = tuple(claim for claim in others if claim.uid not in drifted), (*target, *drifted.values())
    nodes, before = {claim.node_name for claim in target}, entries_of(status.owners)
    unready = {owner_of(pod) for pod in snapshot.unready_pods if pod.node_name in nodes} - {NOBODY}
    asked = [each for each in snapshot.selector_sources.values() if before and each.replicas]
    sources = {key: each for each in asked if digest_of(key := (each.namespace, each.uid)) in before}
    counts: dict[OwnerKey, _Counts] = {}
    for owner, fares in fares_of(snapshot, unready | sources.keys(), now).items():
        found = _Counts(fares=fares, before=before.get(digest_of(owner)))
        if owner in unready or found.absent:
            counts[owner] = found
            found.name = _named(sources[owner].kind, owner[0], sources[owner].name) if owner in sources else ""
    for claims, at_target in ((target, True), (old, False)) if counts else ():
        for pod in _pods(snapshot, claims):
            if (owner := owner_of(pod)) in counts:
                _count(counts[owner], pod, at_target, now)
    return tuple(counts.values())


def _pods(snapshot: Snapshot, claims: Claims) -> Iterator[Pod]:
    for claim in claims:
        yield from snapshot.pods_by_node.get(claim.node_name, ())


def _named(kind: str, namespace: str, name: str) -> str:
    """The owner's name for people."""
    return f"{kind} {namespace}/{name}"


def _count(counts: _Counts, pod: Pod, at_target: bool, now: float) -> None:
    owner = controller_of(pod.owners)
    if owner is not None:
        counts.name = _named(owner.kind, pod.namespace, owner.name)
    if not is_active(pod):
        counts.rejected += at_target and pod.phase == "Failed" and now - pod.created < STARTS_WITHIN
    elif not at_target:
        counts.elsewhere += 1
        counts.unready_elsewhere += not pod.ready
    elif pod.ready:
        counts.ready += 1
    elif is_starting(pod, now):
        counts.starting += 1
    else:
        counts.unready += 1


def named(which: Iterable[str]) -> str:
    """A few of them by name, and how many more there are."""
    return shown(sorted(which), _NAMED)
