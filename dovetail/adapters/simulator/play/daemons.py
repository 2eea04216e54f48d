"""DaemonSets keep one pod on every node that takes it.

Each pod is tied to its node by a required affinity and bound by the scheduler, as on a real cluster, so an unbound one
is seen by planners as what it is. The trap avoided: a daemon that new nodes with the usual taints never get.
"""

from typing import Any

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.objects import Body
from dovetail.adapters.simulator.play.fitting import obstacle
from dovetail.adapters.simulator.play.moment import Turn, is_deleting, is_true
from dovetail.adapters.simulator.play.workloads import cluster_status, pod_from, pods_by_controller

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


def keep_daemon_sets(turn: Turn) -> None:
    """A pod for every node that should have one and has none; none where it should not be."""
    pods = pods_by_controller(turn)
    for daemon_set in turn.mirror.every("DaemonSet"):
        if not is_deleting(daemon_set):
            _keep(turn, daemon_set, pods.get(daemon_set["metadata"]["uid"], []))


def _keep(turn: Turn, daemon_set: Body, pods: list[Body]) -> None:
    cluster = turn.cluster(DAEMON_SETS)
    by_node = {_target(pod): pod for pod in pods}
    wanted = []
    for node in turn.mirror.every("Node"):
        name = node["metadata"]["name"]
        pod = _pod_for(daemon_set, name)
        if obstacle(pod, node):
            continue
        wanted.append(name)
        if name not in by_node:
            cluster.create(pod)
    for name, pod in sorted(by_node.items()):
        if name not in wanted and not _merely_tainted(turn, name):
            cluster.delete("Pod", objects.key_of(pod), pod["metadata"]["uid"])
    status = {
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(is_true(pod, "Ready") for pod in pods),
        "observedGeneration": daemon_set["metadata"].get("generation", 1),
    }
    cluster_status(turn, DAEMON_SETS, daemon_set, status)


def _merely_tainted(turn: Turn, name: str) -> bool:
    """A NoSchedule taint that came later does not chase a daemon away."""
    node = turn.mirror.get("Node", name)
    return node is not None and any(t.get("effect") == "NoSchedule" for t in node["spec"].get("taints") or [])


def _pod_for(daemon_set: Body, node: str) -> Body:
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


def _target(pod: Body) -> str:
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
