"""Instances boot, join as Nodes, become ready, fall silent and end.

The cloud's own clock, the kubelet's registration and the cloud's node controller. A Node appears as a kubelet makes it:
labels and taints from the user data, the condition and the taint of a node that is not ready, providerID, capacity. A
Node whose instance is gone is deleted through the API, so that its finalizers are honoured.
"""

from typing import Any

import orjson

from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.cloud import instances
from dovetail.adapters.simulator.cloud.catalogue import WorldCatalogue
from dovetail.adapters.simulator.cloud.instances import InstanceRow
from dovetail.adapters.simulator.play.tick import Tick, is_deleting, is_true
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.resources import format_resources
from dovetail.model.values.time import format_time

KUBELET = "kubelet"
NODE_CONTROLLER = "node-controller"
CLOUD_NODE_CONTROLLER = "cloud-node-controller"

# On a Node: its kubelet does nothing any more, and its conditions stay as they are.
SILENT = "embedded.dovetail.sh/kubelet-silent"

_NOT_READY: dict[str, Any] = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_UNREACHABLE: list[dict[str, Any]] = [
    {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
]


def move_instances(tick: Tick) -> None:
    """Bring every instance and its Node to the state that they should have now."""
    alive: dict[str, InstanceRow] = {}
    for row in instances.unended(tick.connection):
        now = _moved(tick, row)
        if now.state != "terminated":
            alive[now.provider_id] = now
    for node in tick.mirror.every("Node"):
        provider_id = node.get("spec", {}).get("providerID") or ""
        if tick.catalogue.is_of_this_cloud(provider_id):
            _keep_node(tick, node, alive.get(provider_id))


def lives(tick: Tick, node: Json) -> bool:
    """Whether a Node's kubelet works. For Nodes without an instance of this cloud the settings decide."""
    if SILENT in (node["metadata"].get("annotations") or {}):
        return False
    provider_id = node.get("spec", {}).get("providerID") or ""
    if not tick.catalogue.is_of_this_cloud(provider_id):
        return tick.settings.foreign_kubelets
    row = instances.by_provider_id(tick.connection, provider_id)
    return row is not None and row.state == "running"


def _moved(tick: Tick, row: InstanceRow) -> InstanceRow:
    """The next state of an instance, if its time has come."""
    if row.state == "terminating":
        if row.ends is not None and tick.reached(row.ends):
            return instances.set_state(tick.connection, row, "terminated")
        return row
    if row.state == "pending":
        if row.boots is None or not tick.reached(row.boots):
            return row
        row = instances.set_state(tick.connection, row, "running")
    if row.joins and not row.node:
        _join(tick, row)
    return row


def _join(tick: Tick, row: InstanceRow) -> None:
    """A kubelet registers its Node under the instance's id."""
    instances.set_joined(tick.connection, row, row.id, tick.now)
    try:
        tick.cluster(KUBELET).create(_node_of(tick.catalogue, row, tick.now))
    except Rejected as rejected:
        if rejected.reason != "AlreadyExists":
            raise


def _node_of(catalogue: WorldCatalogue, row: InstanceRow, now: float) -> Json:
    user_data = orjson.loads(row.user_data)
    kind = catalogue.types[row.instance_type]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": row.id,
            "labels": {**user_data["labels"], **catalogue.labels_of(row.pool), names.HOSTNAME: row.id},
        },
        "spec": {"providerID": row.provider_id, "taints": [*user_data["taints"], _NOT_READY]},
        "status": {
            "capacity": format_resources(kind.capacity),
            "allocatable": format_resources(kind.allocatable),
            "conditions": [_ready("False", "KubeletNotReady", now)],
            "nodeInfo": {
                "kubeletVersion": "v1.36.3",
                "operatingSystem": kind.labels[names.OS][0],
                "bootID": _boot_id(row),
            },
        },
    }


def _keep_node(tick: Tick, node: Json, row: InstanceRow | None) -> None:
    if row is not None and row.state == "running":
        if SILENT not in (node["metadata"].get("annotations") or {}):
            _keep_ready(tick, node, row)
        return
    if is_true(node, names.READY):
        _fall_silent(tick, node)
    if row is None and not is_deleting(node):
        tick.cluster(CLOUD_NODE_CONTROLLER).delete("Node", node["metadata"]["name"], node["metadata"]["uid"])


def _keep_ready(tick: Tick, node: Json, row: InstanceRow) -> None:
    """The kubelet says Ready after a while; the node controller then takes its taint off."""
    name = node["metadata"]["name"]
    if not is_true(node, names.READY):
        if row.joined is None or not tick.reached(row.joined + tick.settings.delay("node_ready")):
            return
        ready: Json = {"status": {"conditions": [_ready("True", "KubeletReady", tick.now)]}}
        if (node["status"].get("nodeInfo") or {}).get("bootID") != _boot_id(row):
            ready["status"]["nodeInfo"] = {"bootID": _boot_id(row)}
        tick.cluster(KUBELET).patch("Node", name, ready, "status")
    taints = node["spec"].get("taints") or []
    left = [t for t in taints if t["key"] != _NOT_READY["key"] and t not in _UNREACHABLE]
    if left != taints:
        tick.cluster(NODE_CONTROLLER).patch("Node", name, {"spec": {"taints": left or None}})


def _boot_id(row: InstanceRow) -> str:
    return f"{row.id}/{row.boots}"


def _fall_silent(tick: Tick, node: Json) -> None:
    name, cluster = node["metadata"]["name"], tick.cluster(NODE_CONTROLLER)
    unknown = {"status": {"conditions": [_ready("Unknown", "NodeStatusUnknown", tick.now)]}}
    cluster.patch("Node", name, unknown, "status")
    others = [t for t in node["spec"].get("taints") or [] if t not in _UNREACHABLE]
    cluster.patch("Node", name, {"spec": {"taints": [*others, *_UNREACHABLE]}})


def _ready(status: str, reason: str, now: float) -> dict[str, Any]:
    return {
        "type": names.READY,
        "status": status,
        "reason": reason,
        "message": "",
        "lastHeartbeatTime": format_time(now),
        "lastTransitionTime": format_time(now),
    }
