"""The kind Pod, separate from the kinds that a person's order writes: an order about a node reads no pods."""

from typing import Final

from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.objects.pod_index import NodePods, PodIndex
from dovetail.model.pods import Pod


def _node_of(pod: Pod) -> str:
    return pod.node_name


POD: Final = Kind(
    "Pod",
    "/api/v1/pods",
    parse_pod,
    snapshot_field="pods",
    by_uid=True,
    index=_node_of,
    snapshot_index=("pod_index", PodIndex),
    grouped=NodePods,
)
