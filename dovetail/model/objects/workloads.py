"""The other objects that a decision reads: DaemonSets, PodDisruptionBudgets, volumes, namespaces, services, workloads.

They have only the fields that some rule reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.model.pods import Expression, LabelSelector, NodeTerm, Owner, Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSet:
    """A DaemonSet; `pod` is synthesised from its template, with limits copied into missing requests (PLC-75)."""

    name: str
    namespace: str
    uid: str = ""
    pod: Pod
    created: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDisruptionBudget:
    """A PDB. Selector None matches nothing. The two bounds are kept as text: "0", "0%", "100%" (DIS-46)."""

    name: str
    namespace: str
    selector: LabelSelector | None
    disruptions_allowed: int = 0
    max_unavailable: str | None = None
    min_available: str | None = None
    always_allow_unhealthy: bool = False
    disrupted_pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeClaim:
    name: str
    namespace: str
    uid: str = ""
    volume_name: str = ""
    storage_class: str | None = None
    phase: str = ""
    deleting: bool = False
    bind_completed: bool = False
    many_nodes: bool = False  # ReadWriteMany or ReadOnlyMany: pods of several nodes may use it at once
    single_pod: bool = False  # ReadWriteOncePod: one pod at a time may use it
    selected_node: str = ""  # for which node its volume is to be made, if it is not there yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A PersistentVolume. `driver` is the CSI driver's name ("" is not tracked); `local` for Local and HostPath.
    `claim_uid`: of the volume claim that it is bound to; users write none on a volume."""

    name: str
    claim_uid: str = ""
    deleting: bool = False
    driver: str = ""
    local: bool = False
    node_terms: tuple[NodeTerm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClass:
    """A StorageClass; each allowed topology is a list of In expressions."""

    name: str
    provisioner: str = ""
    immediate: bool = True
    topologies: tuple[tuple[Expression, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CsiNode:
    """How many volumes of each driver a node may attach; a driver without a count is unlimited."""

    name: str
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeAttachment:
    name: str
    node_name: str
    volume_name: str
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A namespace and its labels, for namespace selectors. Only annotations that pause us or say how its pods move are
    kept."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    resource_version: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSource:
    """What the pods of a PodTemplate or a workload are like, except volumes, and how many there should be (PLC-211).

    `pod` is None if the template cannot be read; `fault` says why.
    """

    pod: Pod | None = None
    fault: str = ""
    replicas: int = 0
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A move that is under way, as its Deployment records it: from which node, at which generation of the Deployment,
    since when, and what `dovetail.sh/moved` said before (empty: it was not there)."""

    node: str  # UID
    former: str
    generation: int
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The last move, taken back: at which generation of the Deployment, and when."""

    generation: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RollOut:
    """How a Deployment replaces its pods, and how far it has got. `settled`: no replacement is under way."""

    generation: int
    replicas: int
    surges: bool  # a new pod is available before an old one leaves
    paused: bool
    settled: bool
    timed_out: bool  # its condition says ProgressDeadlineExceeded
    progress_seconds: int | None  # None: without an end
    names_node: bool  # its pods are bound to one node by name
    wish: str | None = None  # dovetail.sh/move
    moved: str = ""  # dovetail.sh/moved of its template
    begun: Begun | None = None
    failed: Failed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A Deployment: `roll_out` is read only if pods may be moved, `pods` only if buffers may follow it."""

    name: str
    namespace: str
    uid: str = ""
    resource_version: str = ""
    roll_out: RollOut | None = None
    pods: PodSource | None = None

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionGuard:
    """A ValidatingAdmissionPolicy or its binding: whether it refuses what it should refuse, everywhere."""

    name: str
    refuses: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorSource:
    """A Service, ReplicationController, ReplicaSet or StatefulSet, from which a default spread deduces its selector."""

    kind: str
    name: str
    namespace: str
    uid: str = ""
    selector: LabelSelector | None = None
    owners: tuple[Owner, ...] = ()
    replicas: int | None = None  # how many pods it wants; None for a Service
    pods: PodSource | None = None  # read only if buffers may follow it
