"""Which kinds of object are watched, where they are served, how each is read, and where a snapshot keeps it.

NodeClasses belong to a cloud: their kinds are added where the cloud is wired, and are kept raw.
"""

from functools import partial
from typing import Any, Final

from dovetail.adapters.kubernetes_json.parsing.buffers import (
    parse_capacity_buffer,
    parse_deployment,
    parse_pod_template,
    parse_workload,
)
from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node, parse_node_claim
from dovetail.adapters.kubernetes_json.parsing.overlays import parse_node_overlay
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.adapters.kubernetes_json.parsing.workloads import (
    parse_csi_node,
    parse_daemon_set,
    parse_namespace,
    parse_pdb,
    parse_selector_source,
    parse_storage_class,
    parse_volume,
    parse_volume_attachment,
    parse_volume_claim,
)
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.nodes import Node
from dovetail.model.pods import Pod
from dovetail.model.workloads import PodDisruptionBudget, VolumeAttachment


def _node_of_pod(pod: Pod) -> str:
    return pod.node_name


def _provider_id(node: Node) -> str:
    return node.provider_id


def _node_of_attachment(attachment: VolumeAttachment) -> str:
    return attachment.node_name


def _namespace_of_budget(budget: PodDisruptionBudget) -> str:
    return budget.namespace


def _selector_source(kind: str, path: str) -> Kind:
    parse = partial(parse_selector_source, kind)
    return Kind(kind, path, parse, snapshot_field="selector_sources", shares_field=True)


POD: Final = Kind("Pod", "/api/v1/pods", parse_pod, snapshot_field="pods", by_uid=True, index=_node_of_pod)
NODE: Final = Kind("Node", "/api/v1/nodes", parse_node, snapshot_field="nodes", index=_provider_id)
NODE_CLAIM: Final = Kind("NodeClaim", "/apis/karpenter.sh/v1/nodeclaims", parse_node_claim, snapshot_field="claims")
NAMESPACE: Final = Kind("Namespace", "/api/v1/namespaces", parse_namespace, snapshot_field="namespaces")
NODE_POOL: Final = Kind("NodePool", "/apis/karpenter.sh/v1/nodepools", parse_node_pool, snapshot_field="pools")

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


# What buffers refer to. Their ReplicaSets and StatefulSets are read in more detail, and take the place of the kinds of
# the same name, so that nothing is watched twice.
BUFFER_KINDS: Final = (
    CAPACITY_BUFFER,
    Kind("PodTemplate", "/api/v1/podtemplates", parse_pod_template, snapshot_field="pod_templates"),
    Kind("Deployment", "/apis/apps/v1/deployments", parse_deployment, snapshot_field="deployments"),
    _followed("ReplicaSet", "/apis/apps/v1/replicasets"),
    _followed("StatefulSet", "/apis/apps/v1/statefulsets"),
)


def as_it_is(raw: dict[str, Any]) -> dict[str, Any]:
    """The parser of kinds that are kept raw."""
    return raw


def raw_kind(name: str, path: str) -> Kind:
    """A kind kept as raw dictionaries; its definition may be absent."""
    return Kind(name, path, as_it_is, optional=True)
