"""The gate `nodes` of a NodeRollout: do pods do as well on nodes at the target as on the others?

Each owner's pods are compared with those of the same owner, so that an application that breaks everywhere at once is
not blamed on the change. Where an owner has no pods on other nodes any more nothing is compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dovetail.disruption.upkeep.rollout_moves import CONFIRMED, LONGEST_WORDS
from dovetail.model.gates import GateResult
from dovetail.model.pod_rules import is_active
from dovetail.model.pods import Owner, Pod
from dovetail.model.pools import NodePool
from dovetail.model.rollout_nodes import is_old
from dovetail.model.rollouts import NodesGate
from dovetail.model.snapshot import Snapshot

STARTS_WITHIN: Final = 300.0  # seconds in which a pod that runs well elsewhere is ready, unless it fails before
WORSE: Final = 2  # so many times the share of unready pods on the others
_NAMED: Final = 3


@dataclass(slots=True)
class _Counts:
    """The pods of one owner."""

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
        """Whether it cannot be said yet: they are fine elsewhere, and none is ready at the target."""
        return self.elsewhere > self.unready_elsewhere and not self.ready and bool(self.starting)


def nodes_gate(snapshot: Snapshot, pool: NodePool, known: NodesGate, now: float) -> NodesGate:
    """What it says now. `known`: what it said last; what is worse is blamed once it has been for a minute."""
    counts: dict[str, _Counts] = {}
    for pod, owner, at_target in _pods(snapshot, pool):
        _count(counts.setdefault(f"{owner.kind} {pod.namespace}/{owner.name}", _Counts()), pod, at_target, now)
    worse = _names(owner for owner, each in counts.items() if each.is_worse)
    if worse:
        since = known.since if known.since is not None else float(int(now))
        result = GateResult.FAILING if now - since >= CONFIRMED else GateResult.UNKNOWN
        message = f"pods are not ready on nodes at the target and are on the others: {worse}"
        return NodesGate(result=result, since=since, message=message[:LONGEST_WORDS])
    starting = _names(owner for owner, each in counts.items() if each.is_open)
    if starting:
        message = f"no pod is ready yet on nodes at the target: {starting}"
        return NodesGate(message=message[:LONGEST_WORDS])
    return NodesGate(result=GateResult.PASSING)


def _pods(snapshot: Snapshot, pool: NodePool) -> Iterator[tuple[Pod, Owner, bool]]:
    """Those on nodes of the pool that run for good, and whether their node is at the target."""
    claims = snapshot.claims_by_pool.get(pool.name, ())
    nodes = {claim.node_name: not is_old(claim, pool) for claim in claims if claim.node_name}
    for pod in snapshot.pods.values():
        at_target = nodes.get(pod.node_name)
        if at_target is None or not is_active(pod):
            continue
        owner = next((each for each in pod.owners if each.controller), None)
        if owner is not None and owner.kind != "Job":
            yield pod, owner, at_target


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


def _names(owners: Iterator[str]) -> str:
    found = sorted(owners)
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{', '.join(found[:_NAMED])}{more}"
