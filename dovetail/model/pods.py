"""A pod as placement, disruption and draining see it.

A pod is split in two: its *shape* (everything that decides where it may go, but not how much it needs), which the
parser shares among the replicas of a workload so that each rule is evaluated once per shape and not once per pod, and
the pod itself (identity, requests, state).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from dovetail.model.values.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One entry of metadata.ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


def controller_of(owners: Iterable[Owner]) -> Owner | None:
    """The owner that makes such objects anew; the API server admits one at most."""
    return next((owner for owner in owners if owner.controller), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A toleration as written; operator Exists with an empty key tolerates everything."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """One matchExpressions entry of a node selector term or a label selector, or one requirement of a NodePool."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerm:
    """One node selector term: its expressions are and-ed. Weight 0 for required terms."""

    expressions: tuple[Expression, ...]
    weight: int = 0
    has_match_fields: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """A label selector; matchLabels are kept as In expressions. No expressions at all selects everything."""

    expressions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTerm:
    """One pod affinity or anti-affinity term. Weight 0 for required terms; selector None matches nothing."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    weight: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadConstraint:
    topology_key: str
    max_skew: int
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    selector: LabelSelector | None
    min_domains: int | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    match_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPort:
    """A port on the node's own address. An empty address is 0.0.0.0."""

    address: str
    port: int
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeUse:
    """A volume that leads to a PersistentVolumeClaim: by name, or made for this pod (generic ephemeral).

    An ephemeral one keeps the volume's own name, so that replicas share a shape: its claim is `<pod>-<volume>`.
    """

    claim_name: str
    ephemeral: bool = False
    storage_class: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClaimUse:
    """An entry of spec.resourceClaims: a ResourceClaim that it names, or one that a template makes for this pod."""

    name: str
    claim: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class PodShape:
    """What decides where a pod may go, except its requests. Shared among equal pods; compared by identity."""

    namespace: str
    labels: Mapping[str, str]
    node_selector: tuple[tuple[str, str], ...] = ()
    required_terms: tuple[NodeTerm, ...] = ()
    preferred_terms: tuple[NodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    preferred_affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    preferred_anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    volumes: tuple[VolumeUse, ...] = ()
    uses_resource_claims: bool = False
    device_claims: tuple[DeviceClaimUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod. Times are seconds since the epoch, UTC."""

    name: str
    uid: str
    shape: PodShape
    requests: Resources  # PLC-72, with pods: 1
    created: float = 0.0
    resource_version: str = ""
    node_name: str = ""
    phase: str = "Pending"
    deleting_since: float | None = None  # metadata.deletionTimestamp: the moment at which its grace ends
    grace_seconds: int | None = None  # spec.terminationGracePeriodSeconds
    started: float | None = None  # status.startTime
    ready: bool | None = None  # condition Ready; None if it is absent or Unknown
    failing: bool = False  # not ready: a container cannot be started, or has ended more than once
    unschedulable: bool = False  # condition PodScheduled has reason Unschedulable (PLC-20)
    nominated_node: str = ""
    owners: tuple[Owner, ...] = ()
    priority: int | None = None
    preempts: bool = True  # whether pods of lower priority make way for it
    do_not_disrupt: str | None = None  # the annotation's text; dovetail.model.objects.pod_rules judges it
    disruption_window: str | None = None  # the annotation's text; dovetail.model.own.pod_windows judges it
    deletion_cost: str | None = None
    disruption_cost: str | None = None  # the annotation's text; it comes before the deletion cost
    annotations: Mapping[str, str] | None = None  # only those that rules read; None for most pods

    @property
    def own_grace(self) -> int:
        """Seconds that it has to end: what Kubernetes gives to one that names none."""
        return 30 if self.grace_seconds is None else self.grace_seconds

    @property
    def asks_to_stay(self) -> bool:
        """Whether one of its annotations may keep its node; pod_rules.protection says whether it does."""
        return self.do_not_disrupt is not None or self.disruption_window is not None

    @property
    def namespace(self) -> str:
        """The namespace, which all pods of a shape share."""
        return self.shape.namespace

    @property
    def key(self) -> str:
        """namespace/name, as events and messages print it."""
        return f"{self.shape.namespace}/{self.name}"


def claim_key(pod: Pod, use: VolumeUse) -> str:
    """namespace/name of the PersistentVolumeClaim that a volume of the pod leads to."""
    name = f"{pod.name}-{use.claim_name}" if use.ephemeral else use.claim_name
    return f"{pod.namespace}/{name}"
