"""Which kinds of object are watched, where they are served, how each is read, and where a snapshot keeps it.

NodeClasses belong to a cloud: their kinds are added where the cloud is wired, and are kept raw.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from dovetail.adapters.kubernetes_json.parsing.buffers import (
    parse_capacity_buffer,
    parse_pod_template,
    parse_workload,
)
from dovetail.adapters.kubernetes_json.parsing.deployments import parse_deployment, parse_guard
from dovetail.adapters.kubernetes_json.parsing.devices import (
    parse_claim_template,
    parse_device_class,
    parse_resource_claim,
    parse_resource_slice,
)
from dovetail.adapters.kubernetes_json.parsing.overlays import parse_node_overlay
from dovetail.adapters.kubernetes_json.parsing.policies import parse_freeze, parse_policy
from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_rollout
from dovetail.adapters.kubernetes_json.parsing.workloads import (
    parse_csi_node,
    parse_daemon_set,
    parse_pdb,
    parse_selector_source,
    parse_storage_class,
    parse_volume,
    parse_volume_attachment,
    parse_volume_claim,
)
from dovetail.adapters.kubernetes_json.pod_kind import POD
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.adapters.kubernetes_json.written_kinds import NAMESPACE, NODE, NODE_CLAIM, NODE_POOL
from dovetail.model.objects.workloads import Deployment, PodDisruptionBudget, VolumeAttachment
from dovetail.model.places.move_changes import GUARD_KINDS
from dovetail.model.scheduling.devices import ResourceSlice


def _node_of_attachment(attachment: VolumeAttachment) -> str:
    return attachment.node_name


def _namespace_of_budget(budget: PodDisruptionBudget) -> str:
    return budget.namespace


def _selector_source(kind: str, path: str) -> Kind:
    parse = partial(parse_selector_source, kind)
    return Kind(kind, path, parse, snapshot_field="selector_sources", shares_field=True)


# Optional: where their definitions are not installed, nobody has said when nodes may leave.
DISRUPTION_POLICY: Final = Kind(
    "DisruptionPolicy",
    "/apis/dovetail.sh/v1alpha1/disruptionpolicies",
    parse_policy,
    snapshot_field="policies",
    optional=True,
)
FREEZE: Final = Kind(
    "Freeze", "/apis/dovetail.sh/v1alpha1/freezes", parse_freeze, snapshot_field="freezes", optional=True
)
NODE_ROLLOUT: Final = Kind(
    "NodeRollout",
    "/apis/dovetail.sh/v1alpha1/noderollouts",
    parse_rollout,
    snapshot_field="rollouts",
    optional=True,
)

CLUSTER_KINDS: Final = (
    NODE_POOL,
    NODE_CLAIM,
    NODE,
    POD,
    Kind("DaemonSet", "/apis/apps/v1/daemonsets", parse_daemon_set, snapshot_field="daemon_sets"),
    Kind(
        "PodDisruptionBudget",
        "/apis/policy/v1/poddisruptionbudgets",
        parse_pdb,
        snapshot_field="pdbs",
        index=_namespace_of_budget,
    ),
    Kind("PersistentVolumeClaim", "/api/v1/persistentvolumeclaims", parse_volume_claim, snapshot_field="volume_claims"),
    Kind("PersistentVolume", "/api/v1/persistentvolumes", parse_volume, snapshot_field="volumes"),
    Kind(
        "StorageClass", "/apis/storage.k8s.io/v1/storageclasses", parse_storage_class, snapshot_field="storage_classes"
    ),
    Kind("CSINode", "/apis/storage.k8s.io/v1/csinodes", parse_csi_node, snapshot_field="csi_nodes"),
    Kind(
        "VolumeAttachment",
        "/apis/storage.k8s.io/v1/volumeattachments",
        parse_volume_attachment,
        snapshot_field="attachments",
        index=_node_of_attachment,
    ),
    NAMESPACE,
    _selector_source("Service", "/api/v1/services"),
    _selector_source("ReplicationController", "/api/v1/replicationcontrollers"),
    _selector_source("ReplicaSet", "/apis/apps/v1/replicasets"),
    _selector_source("StatefulSet", "/apis/apps/v1/statefulsets"),
    DISRUPTION_POLICY,
    FREEZE,
    NODE_ROLLOUT,
)

# Watched only where the feature gate is open, so that decisions need not distinguish a closed gate from no overlays.
NODE_OVERLAY: Final = Kind(
    "NodeOverlay",
    "/apis/karpenter.sh/v1alpha1/nodeoverlays",
    parse_node_overlay,
    snapshot_field="overlays",
    optional=True,
)


CAPACITY_BUFFER: Final = Kind(
    "CapacityBuffer",
    "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers",
    parse_capacity_buffer,
    snapshot_field="buffers",
    optional=True,
)


def _followed(kind: str, path: str) -> Kind:
    return Kind(kind, path, partial(parse_workload, kind), snapshot_field="selector_sources", shares_field=True)


def _left_node(deployment: Deployment) -> str:
    begun = deployment.roll_out.begun if deployment.roll_out is not None else None
    return begun.node if begun is not None else ""


def _deployments(*, moves: bool, followed: bool) -> Kind:
    parse = partial(parse_deployment, moves=moves, followed=followed)
    return Kind("Deployment", "/apis/apps/v1/deployments", parse, snapshot_field="deployments", index=_left_node)


def _guards(kind: str) -> Kind:
    plural = kind.lower() + "s" if kind.endswith("Binding") else kind.lower().removesuffix("y") + "ies"
    path = f"/apis/admissionregistration.k8s.io/v1/{plural}"
    return Kind(kind, path, partial(parse_guard, kind), snapshot_field="guards", shares_field=True, optional=True)


# What buffers refer to. Their ReplicaSets and StatefulSets are read in more detail, and take the place of the kinds of
# the same name, so that nothing is watched twice.
BUFFER_KINDS: Final = (
    CAPACITY_BUFFER,
    Kind("PodTemplate", "/api/v1/podtemplates", parse_pod_template, snapshot_field="pod_templates"),
    _deployments(moves=False, followed=True),
    _followed("ReplicaSet", "/apis/apps/v1/replicasets"),
    _followed("StatefulSet", "/apis/apps/v1/statefulsets"),
)


# What a move asks, where pods may be moved.
MOVE_KINDS: Final = (_deployments(moves=True, followed=False), *map(_guards, GUARD_KINDS))


def _node_of_slice(found: ResourceSlice) -> str:
    return found.node_name


def _device_kind(name: str, parse: Callable[[Any], Any], field: str) -> Kind:
    index = _node_of_slice if name == "ResourceSlice" else None
    plural = f"{name.lower()}{'es' if name.endswith('s') else 's'}"
    return Kind(name, f"/apis/resource.k8s.io/v1/{plural}", parse, snapshot_field=field, index=index, optional=True)


# Dynamic resource allocation, where it is not ignored. API servers before 1.34 do not serve it.
DEVICE_KINDS: Final = (
    _device_kind("ResourceSlice", parse_resource_slice, "resource_slices"),
    _device_kind("ResourceClaim", parse_resource_claim, "resource_claims"),
    _device_kind("ResourceClaimTemplate", parse_claim_template, "claim_templates"),
    _device_kind("DeviceClass", parse_device_class, "device_classes"),
)


def gated_kinds(*, buffers: bool, moves: bool, devices: bool = False) -> tuple[Kind, ...]:
    """What is watched because buffers, moves or devices are on, each kind once."""
    kinds = (
        *(BUFFER_KINDS if buffers else ()),
        *(MOVE_KINDS if moves else ()),
        *(DEVICE_KINDS if devices else ()),
    )
    both = (_deployments(moves=True, followed=True),) if buffers and moves else ()
    return tuple({kind.name: kind for kind in (*kinds, *both)}.values())


def as_it_is(raw: dict[str, Any]) -> dict[str, Any]:
    """The parser of kinds that are kept raw."""
    return raw


def raw_kind(name: str, path: str) -> Kind:
    """A kind kept as raw dictionaries; its definition may be absent."""
    return Kind(name, path, as_it_is, optional=True)
