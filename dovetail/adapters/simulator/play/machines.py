"""Instances boot, join as Nodes, become ready, fall silent and end.

The cloud's own clock, the kubelet's registration and the cloud's node controller. A Node appears as a kubelet makes it:
labels and taints from the user data, the label and the taint that say "not ready yet", providerID, capacity. The trap
avoided: a Node taken away while its finalizer holds it; only a delete is asked for, as the real controller does.
"""

from typing import Any

import orjson

from dovetail.adapters.simulator.api_server.objects import Body
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.cloud import instances
from dovetail.adapters.simulator.cloud.catalogue import Offer
from dovetail.adapters.simulator.cloud.instances import Machine
from dovetail.adapters.simulator.cloud.offers import Shelf
from dovetail.adapters.simulator.play.moment import Turn, is_deleting, is_true
from dovetail.model import names
from dovetail.model.resources import format_resources
from dovetail.model.time import format_time

KUBELET = "kubelet"
NODE_CONTROLLER = "node-controller"
CLOUD_NODE_CONTROLLER = "cloud-node-controller"

# On a Node: its kubelet does nothing more, and its conditions stay as somebody set them.
SILENT = "embedded.dovetail.sh/kubelet-silent"

_NOT_READY: dict[str, Any] = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_UNREACHABLE: list[dict[str, Any]] = [
    {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
]


def move_machines(turn: Turn) -> None:
    """Bring every instance and its Node to where they should be now."""
    alive: dict[str, Machine] = {}
    for machine in instances.unended(turn.connection):
        now = _moved(turn, machine)
        if now.state != "terminated":
            alive[now.provider_id] = now
    for node in turn.mirror.every("Node"):
        provider_id = node.get("spec", {}).get("providerID") or ""
        if turn.shelf.is_sold_here(provider_id):
            _keep_node(turn, node, alive.get(provider_id))


def lives(turn: Turn, node: Body) -> bool:
    """Whether a Node's kubelet works. A Node that no instance of ours stands behind is a matter of the settings."""
    if SILENT in (node["metadata"].get("annotations") or {}):
        return False
    provider_id = node.get("spec", {}).get("providerID") or ""
    if not turn.shelf.is_sold_here(provider_id):
        return turn.settings.foreign_kubelets
    machine = instances.by_provider_id(turn.connection, provider_id)
    return machine is not None and machine.state == "running"


def _moved(turn: Turn, machine: Machine) -> Machine:
    """The next state of an instance, if its time has come."""
    if machine.state == "terminating":
        if machine.ends is not None and turn.reached(machine.ends):
            return instances.set_state(turn.connection, machine, "terminated")
        return machine
    if machine.state == "pending":
        if machine.boots is None or not turn.reached(machine.boots):
            return machine
        machine = instances.set_state(turn.connection, machine, "running")
    if machine.joins and not machine.node:
        _join(turn, machine)
    return machine


def _join(turn: Turn, machine: Machine) -> None:
    """A kubelet registers its Node under the instance's id."""
    instances.set_joined(turn.connection, machine, machine.id, turn.now)
    try:
        turn.cluster(KUBELET).create(_node_of(turn.shelf, machine, turn.now))
    except Rejected as rejected:
        if rejected.reason != "AlreadyExists":
            raise


def _node_of(shelf: Shelf, machine: Machine, now: float) -> Body:
    user_data = orjson.loads(machine.user_data)
    sold = Offer(price=0.0, instance_type=machine.instance_type, zone=machine.zone, capacity_type=machine.capacity_type)
    kind = shelf.machines[machine.instance_type]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.id,
            "labels": {**user_data["labels"], **shelf.labels_of(sold), names.HOSTNAME: machine.id},
        },
        "spec": {"providerID": machine.provider_id, "taints": [*user_data["taints"], _NOT_READY]},
        "status": {
            "capacity": format_resources(kind.capacity),
            "allocatable": format_resources(kind.allocatable),
            "conditions": [_ready("False", "KubeletNotReady", now)],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "operatingSystem": dict(kind.labels)[names.OS]},
        },
    }


def _keep_node(turn: Turn, node: Body, machine: Machine | None) -> None:
    if machine is not None and machine.state == "running":
        if SILENT not in (node["metadata"].get("annotations") or {}):
            _keep_ready(turn, node, machine)
        return
    if is_true(node, names.READY):
        _fall_silent(turn, node)
    if machine is None and not is_deleting(node):
        turn.cluster(CLOUD_NODE_CONTROLLER).delete("Node", node["metadata"]["name"], node["metadata"]["uid"])


def _keep_ready(turn: Turn, node: Body, machine: Machine) -> None:
    """The kubelet says Ready after a while; the node controller then takes its taint off."""
    name = node["metadata"]["name"]
    if not is_true(node, names.READY):
        if machine.joined is None or not turn.reached(machine.joined + turn.settings.delay("node_ready")):
            return
        ready = {"status": {"conditions": [_ready("True", "KubeletReady", turn.now)]}}
        turn.cluster(KUBELET).patch("Node", name, ready, "status")
    taints = node["spec"].get("taints") or []
    left = [t for t in taints if t["key"] != _NOT_READY["key"]]
    if left != taints:
        turn.cluster(NODE_CONTROLLER).patch("Node", name, {"spec": {"taints": left or None}})


def _fall_silent(turn: Turn, node: Body) -> None:
    name, cluster = node["metadata"]["name"], turn.cluster(NODE_CONTROLLER)
    unknown = {"status": {"conditions": [_ready("Unknown", "NodeStatusUnknown", turn.now)]}}
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
