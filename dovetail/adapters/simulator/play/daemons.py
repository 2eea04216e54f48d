"""DaemonSets keep one pod on every node that accepts it.

Each pod is tied to its node by a required affinity and bound by the scheduler, as on a real cluster, so that decisions
recognise an unbound one. It gets the tolerations that the real controller adds; without them, nodes with the usual
taints would stay without daemons.
"""

from typing import Any

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.play.fitting import obstacle
from dovetail.adapters.simulator.play.tick import Tick, is_deleting, is_true
from dovetail.adapters.simulator.play.workloads import cluster_status, pod_from, pods_by_controller
from dovetail.model.values.json import Json

DAEMON_SETS = "daemonset-controller"

# The tolerations that the DaemonSet controller adds to every pod.
_ADDED: list[dict[str, Any]] = [
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
]


def keep_daemon_sets(tick: Tick) -> None:
    """A pod for every node that should have one and has none; none where it should not be."""
    daemon_sets = tick.mirror.every("DaemonSet")
    pods = pods_by_controller(tick) if daemon_sets else {}
    for daemon_set in daemon_sets:
        if not is_deleting(daemon_set):
            _keep(tick, daemon_set, pods.get(daemon_set["metadata"]["uid"], []))


def _keep(tick: Tick, daemon_set: Json, pods: list[Json]) -> None:
    cluster = tick.cluster(DAEMON_SETS)
    by_node = {_target(pod): pod for pod in pods}
    wanted = []
    for node in tick.mirror.every("Node"):
        name = node["metadata"]["name"]
        pod = _pod_for(daemon_set, name)
        if obstacle(pod, node):
            continue
        wanted.append(name)
        if name not in by_node:
            cluster.create(pod)
    for name, pod in sorted(by_node.items()):
        if name not in wanted and not _merely_tainted(tick, name):
            cluster.delete("Pod", objects.key_of(pod), pod["metadata"]["uid"])
    status = {
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(is_true(pod, "Ready") for pod in pods),
        "observedGeneration": daemon_set["metadata"].get("generation", 1),
    }
    cluster_status(tick, DAEMON_SETS, daemon_set, status)


def _merely_tainted(tick: Tick, name: str) -> bool:
    """Whether the node has a NoSchedule taint: one that was added later does not remove a daemon."""
    node = tick.mirror.get("Node", name)
    return node is not None and any(t.get("effect") == "NoSchedule" for t in node["spec"].get("taints") or [])


def _pod_for(daemon_set: Json, node: str) -> Json:
    pod = pod_from(daemon_set["spec"]["template"], daemon_set)
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    own = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [{**term, "matchFields": [field]} for term in own.get("nodeSelectorTerms") or [{}]]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {
        **pod,
        "spec": {
            **spec,
            "affinity": {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}},
            "tolerations": [*(spec.get("tolerations") or []), *_ADDED],
        },
    }


def _target(pod: Json) -> str:
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
