"""Which pods should a shrinking ReplicaSet give up first? (the gate PodDeletionCostManagement, of Karpenter 1.15)

Those on nodes that leave anyway, then those on the nodes that disruption would take next: drifted ones, then the others
by what they are worth, each as far as its pool's budgets let nodes leave. Pods of all other nodes carry no deletion
cost.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from dovetail.disruption.budgets.allowances import allowances_for
from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.nodes.fleet import Fleet, Member
from dovetail.disruption.nodes.screening import screen
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.pods import Pod
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.rules.rollout.nodes import leaves_for_drift

LOWEST: Final = str(-(2**31))
MOST_NODES: Final = 50  # whose pods are written in one turn, besides those of leaving nodes
# Owners whose pods are recreated on another node. A pod of any other owner keeps its node from being ranked.
_RECREATING: Final = frozenset({("apps/v1", "ReplicaSet"), ("batch/v1", "Job"), ("apps/v1", "DaemonSet")})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionCost:
    """What a pod's annotation should say; None: it should have none."""

    pod: Pod
    value: str | None


def deletion_costs(snapshot: Snapshot, settings: DisruptionSettings) -> tuple[DeletionCost, ...]:
    """The annotations that are not as they should be, of pods whose ReplicaSet reads them."""
    fleet = Fleet(snapshot, settings)
    managed = sorted((m for m in fleet.members if m.managed and m.node is not None), key=lambda m: m.name)
    leaving = [member for member in managed if _leaves(fleet, member)]
    going = {member.name for member in leaving}
    ranked = [member for member in _ranked(fleet) if member.name not in going]
    first = {member.name for member in ranked} | going
    due = [change for member in leaving for change in _changes(member, LOWEST)]
    turn = [(member, str(number - len(ranked))) for number, member in enumerate(ranked)]
    rest: list[tuple[Member, str | None]] = [*turn, *[(m, None) for m in managed if m.name not in first]]
    changed = 0
    for member, value in rest:
        mine = list(_changes(member, value))
        due += mine
        changed += bool(mine)
        if changed == MOST_NODES:
            break
    return tuple(due)


def _ranked(fleet: Fleet) -> list[Member]:
    """The nodes that disruption would take next, in that order (DIS-35)."""
    candidates = [c for c in screen(fleet).graceful if not _is_pinned(c.member.pods) and c.instance_type is not None]
    candidates.sort(key=lambda c: (-c.ratio, c.name))
    drifted = [c for c in candidates if leaves_for_drift(c.claim, fleet.snapshot) and not c.is_static]
    names_of_drifted = {c.name for c in drifted}
    others = [
        c for c in candidates if c.name not in names_of_drifted and c.pool.disruption.consolidate_after is not None
    ]
    return [
        *_within_budgets(fleet, drifted, DisruptionReason.DRIFTED),
        *_within_budgets(fleet, others, DisruptionReason.UNDERUTILIZED),
    ]


def _within_budgets(fleet: Fleet, candidates: Iterable[Candidate], reason: DisruptionReason) -> Iterator[Member]:
    left = {pool: allowance.left for pool, allowance in allowances_for(fleet, reason).items()}
    for candidate in candidates:
        if left.get(candidate.pool.name, 0) > 0:
            left[candidate.pool.name] -= 1
            yield candidate.member


def _leaves(fleet: Fleet, member: Member) -> bool:
    tainted = member.node is not None and any(t.key == names.DISRUPTED_TAINT for t in member.node.taints)
    return fleet.is_leaving(member) or tainted


def _is_pinned(pods: Iterable[Pod]) -> bool:
    """Whether a pod would not be recreated elsewhere; those of kube-system do not count."""
    return any(pod.namespace != "kube-system" and not (_controllers(pod) & _RECREATING) for pod in pods)


def _controllers(pod: Pod) -> frozenset[tuple[str, str]]:
    return frozenset((owner.api_version, owner.kind) for owner in pod.owners if owner.controller)


def _changes(member: Member, value: str | None) -> Iterator[DeletionCost]:
    for pod in member.pods:
        if ("apps/v1", "ReplicaSet") in _controllers(pod) and pod.deletion_cost != value:
            yield DeletionCost(pod=pod, value=value)
