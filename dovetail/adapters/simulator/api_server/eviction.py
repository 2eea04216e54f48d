"""The eviction subresource: a pod is deleted if its PodDisruptionBudget allows one more disruption.

As on the real server, several matching budgets are an error (500), and pods that are not running do not count against a
budget. An accepted eviction is taken off the budget at once, so that one allowance does not grant two evictions before
the controller has counted again.
"""

from typing import Any

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.cluster import Cluster
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.api_server.selecting import selected
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time

# The API server's own sentences; callers must not depend on them, since the adapter classifies by code and cause.
_BLOCKED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def evict(cluster: Cluster, key: str, uid: str) -> None:
    """Evict a pod of that UID, or raise what the server answers."""
    body = {"kind": "Pod", "metadata": {"name": key.partition("/")[2], "namespace": key.partition("/")[0], "uid": uid}}
    with cluster.recorded("evict", body):
        pod = cluster.read("Pod", key)
        if pod is None:
            raise Rejected(404, "NotFound", f"Pod {key} not found")
        if uid and pod["metadata"]["uid"] != uid:
            raise Rejected(409, "Conflict", f"Pod {key} has another UID")
        if not _is_free(pod):
            _take_allowance(cluster, pod)
        cluster.end(pod)


def budgets_of(cluster: Cluster, pod: Json) -> list[Json]:
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
    return [
        pdb
        for pdb in objects.every(cluster.connection, "PodDisruptionBudget")
        if pdb["metadata"]["namespace"] == namespace and selected(pdb["spec"].get("selector"), labels)
    ]


def is_ready(pod: Json) -> bool:
    """Whether the pod's condition Ready is True."""
    conditions: list[dict[str, Any]] = (pod.get("status") or {}).get("conditions") or []
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _is_free(pod: Json) -> bool:
    """Whether no budget protects the pod: it has ended, is not running yet, or is being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _take_allowance(cluster: Cluster, pod: Json) -> None:
    budgets = budgets_of(cluster, pod)
    if len(budgets) > 1:
        raise Rejected(500, "", _SEVERAL)  # without a reason, which an internal error has
    if not budgets or _is_exempt(budgets[0], pod):
        return
    pdb, status = budgets[0], dict(budgets[0].get("status") or {})
    counted = status.get("observedGeneration", 0) >= pdb["metadata"].get("generation", 1)
    if not counted or status.get("disruptionsAllowed", 0) <= 0:
        which = f"The disruption budget {objects.key_of(pdb)} allows none now."
        raise Rejected(429, "TooManyRequests", _BLOCKED, {"reason": "DisruptionBudget", "message": which})
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {
        **(status.get("disruptedPods") or {}),
        pod["metadata"]["name"]: format_time(cluster.now),
    }
    objects.put(cluster.connection, {**pdb, "status": status})


def _is_exempt(pdb: Json, pod: Json) -> bool:
    """Whether a pod that is not ready may be evicted without using up the budget: by its policy or its healthy pods."""
    if is_ready(pod):
        return False
    if pdb["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = pdb.get("status") or {}
    healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return bool(healthy >= wanted > 0)
