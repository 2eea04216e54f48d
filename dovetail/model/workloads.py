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
    """A PersistentVolumeClaim."""

    name: str
    namespace: str
    uid: str = ""
    volume_name: str = ""
    storage_class: str | None = None
    phase: str = ""
    deleting: bool = False
    bind_completed: bool = False
    single_pod: bool = False  # ReadWriteOncePod: one pod at a time may use it


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A PersistentVolume. `driver` is the CSI driver's name ("" is not tracked); `local` for Local and HostPath."""

    name: str
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
    """A volume attached to a node."""

    name: str
    node_name: str
    volume_name: str
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A namespace and its labels, for namespace selectors. Of its annotations only those that pause us are kept."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    resource_version: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSource:
    """What the pods of a PodTemplate or a workload are like, but for volumes, and how many there are to be (PLC-211).

    `pod` is None where the template cannot be read; `fault` says why.
    """

    pod: Pod | None = None
    fault: str = ""
    replicas: int = 0
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorSource:
    """A Service, ReplicationController, ReplicaSet or StatefulSet, from which a default spread deduces its selector."""

    kind: str
    name: str
    namespace: str
    uid: str = ""
    selector: LabelSelector | None = None
    owners: tuple[Owner, ...] = ()
    pods: PodSource | None = None  # read only where buffers may follow it
