"""Which pods need room: pending ones, and those whose node is leaving?

A pass begins with this question (PLC-19 to PLC-32). A pod that was planned onto a claim which is not launched yet has
been promised room there. Planning for it again would launch a second node; leaving it out of a simulation would give
its room to others.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.model import names
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.places.kept_places import needs_a_node, planned_pods
from dovetail.model.places.placements import IgnoredPod
from dovetail.model.pods import Expression, Pod, PodShape
from dovetail.model.reasons.endings import is_interrupted
from dovetail.model.scheduling.key_aliases import canonical_key
from dovetail.model.scheduling.requirements import from_expression
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.digits import integer
from dovetail.placement.buffers.virtual_pods import VirtualPods
from dovetail.placement.constraints.volumes import kept_out_by_others, volume_fault
from dovetail.placement.facts.claim_rules import requests_excess, requirement_fault, shape_excess
from dovetail.placement.facts.cluster_nodes import ClusterNode
from dovetail.placement.facts.pod_needs import pod_requirements
from dovetail.placement.pdbs import PdbIndex
from dovetail.placement.settings import PlacementSettings

_CAPACITY_TYPES = frozenset({names.CAPACITY_ON_DEMAND, names.CAPACITY_SPOT, names.CAPACITY_RESERVED})
_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"})
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPods:
    pending: tuple[Pod, ...]
    leaving: tuple[Pod, ...]  # on leaving nodes
    promised: tuple[Pod, ...]  # planned onto a claim that is not launched yet
    ignored: tuple[IgnoredPod, ...]


def _qualified_name(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or len(prefix) > 253 or not _DOMAIN.match(prefix)):
        return False
    return bool(_NAME.match(name))


def _restricted(key: str, well_known: frozenset[str]) -> bool:
    """Whether pods may not select by this label (PLC-36)."""
    if key in well_known:
        return False
    domain = key.rpartition("/")[0]
    return key == names.HOSTNAME or domain == "karpenter.sh" or domain.endswith(".karpenter.sh")


def expression_fault(expression: Expression, well_known: frozenset[str]) -> str:
    """What is wrong with one expression of a pod; empty if nothing is (PLC-23)."""
    key, values = canonical_key(expression.key), expression.values
    if expression.operator not in _OPERATORS:
        return f"key {key} has an unsupported operator {expression.operator}"
    if _restricted(key, well_known):
        return f"label {key} is restricted"
    if not _qualified_name(key):
        return f"label {key} is no qualified name"
    if any(value and not _NAME.match(value) for value in values):
        return f"invalid value for label {key}"
    if expression.operator == "In":
        if not values:
            return f"key {key} with operator In must have a value"
        if key == names.CAPACITY_TYPE and not _CAPACITY_TYPES & set(values):
            return f"no known value for {key}"
    if expression.operator in ("Gt", "Lt", "Gte", "Lte"):
        number = integer(values[0]) if len(values) == 1 else None
        if number is None or number < 0:
            return f"key {key} with operator {expression.operator} must have a single non-negative integer"
    return requirement_fault(from_expression(expression))


def _refuses_pools(shape: PodShape) -> bool:
    """Whether the pod selects against all nodes that belong to a NodePool (PLC-22)."""
    item = pod_requirements(shape, preferences=True).get(names.NODE_POOL)
    return item is not None and item.operator == "DoesNotExist"


def shape_fault(shape: PodShape, well_known: frozenset[str]) -> str:
    """What is wrong with the pod's selector or required node terms; empty if nothing is (PLC-23)."""
    if fault := shape_excess(shape):
        return fault
    selector = (Expression(key=key, operator="In", values=(value,)) for key, value in shape.node_selector)
    for expression in (*selector, *(e for term in shape.required_terms for e in term.expressions)):
        if fault := expression_fault(expression, well_known):
            return fault
    return "node selector term has matchFields" if any(t.has_match_fields for t in shape.required_terms) else ""


def promised_pods(snapshot: Snapshot) -> frozenset[str]:
    """UIDs of the pods that were planned onto claims which are not launched yet."""
    return frozenset(
        uid
        for claim in snapshot.claims.values()
        if not claim.provider_id and claim.deleting_since is None
        for uid in planned_pods(claim)
    )


class _Admission:
    """Whether a pod takes part; what depends only on its shape is worked out once per shape."""

    def __init__(self, snapshot: Snapshot, settings: PlacementSettings) -> None:
        self._snapshot, self._settings = snapshot, settings
        self._faults: dict[PodShape, tuple[str, bool]] = {}

    def why_not(self, pod: Pod) -> tuple[str, bool]:
        """Why the pod takes no part, empty if it does; and whether no Event says so (PLC-22)."""
        shape = pod.shape
        verdict = self._faults.get(shape)
        if verdict is None:
            silent = _refuses_pools(shape)
            why = "it selects against NodePools" if silent else shape_fault(shape, self._settings.well_known)
            verdict = self._faults[shape] = (why, silent)
        if not verdict[0] and (why := requests_excess(pod) or volume_fault(pod, self._snapshot, self._settings)):
            return why, False
        return verdict


def pending_pods(
    snapshot: Snapshot,
    settings: PlacementSettings,
    unbound: Iterable[Pod] | None = None,
    judging: Judging | None = None,
) -> WaitingPods:
    """The pods that wait for a node, those that have been promised room, and those that take no part (PLC-19 to
    PLC-25), including all that cannot be judged.

    `unbound`: the pods without a node, where they are known already.
    """
    pending: list[Pod] = []
    promised: list[Pod] = []
    ignored: list[IgnoredPod] = []
    planned, judging, admission = promised_pods(snapshot), judging or Judging(), _Admission(snapshot, settings)
    may_get_a_node = settings.profile.may_get_a_node
    for pod in snapshot.pods.values() if unbound is None else unbound:
        if not needs_a_node(pod, snapshot) or not may_get_a_node(pod):
            continue
        verdict = judging.judge(pod, "admission", admission.why_not, pod)
        why, silent = (verdict.says, False) if isinstance(verdict, Unjudged) else verdict
        if why:
            ignored.append(IgnoredPod(pod=pod, why=why, silent=silent))
        elif pod.uid in planned:
            promised.append(pod)
        else:
            pending.append(pod)
    others = kept_out_by_others(pending, promised, snapshot) if settings.profile.single_pod_claims else {}
    ignored += [IgnoredPod(pod=pod, why=others[pod.uid]) for pod in pending if pod.uid in others]
    free = tuple(pod for pod in pending if pod.uid not in others) if others else tuple(pending)
    return WaitingPods(pending=free, leaving=(), promised=tuple(promised), ignored=tuple(ignored))


def with_virtual(found: WaitingPods, virtual: VirtualPods) -> WaitingPods:
    """The waiting pods and the buffers' pods, which are not validated (PLC-29)."""
    return replace(
        found,
        pending=(*found.pending, *virtual.pending),
        promised=(*found.promised, *virtual.promised),
    )


def leaving_pods(
    nodes: Iterable[ClusterNode], on_node: Mapping[str, Sequence[Pod]], pdbs: PdbIndex, judging: Judging
) -> list[Pod]:
    """The pods that must move because their node is leaving (PLC-30), without those that cannot be judged."""
    return [
        pod
        for item in nodes
        if item.leaving and item.node is not None
        for pod in on_node.get(item.node_name, ())
        if judging.judge(pod, "leaving", _must_move, item, pdbs, pod) is True
    ]


def _must_move(item: ClusterNode, pdbs: PdbIndex, pod: Pod) -> bool:
    return pdbs.needs_room(pod, ends=item.claim is not None and is_interrupted(item.claim))
