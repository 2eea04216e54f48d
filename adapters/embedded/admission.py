"""What the API server fills in and what it refuses, as far as the product can notice.

Asked by the cluster's create and patch. Only defaults that somebody reads are here; the rules of the custom resources
stand in `api/`. The trap avoided: an object that only the embedded world would accept.
"""

from typing import Final

from adapters.embedded.objects import Body
from adapters.embedded.rejected import Rejected
from core.model.pod_rules import format_moment

NAMESPACED: Final = frozenset(
    {
        "ConfigMap",
        "DaemonSet",
        "Deployment",
        "Event",
        "Job",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "ReplicaSet",
        "ReplicationController",
        "Service",
        "StatefulSet",
    }
)

# Kinds whose status is written only through their status subresource, creation included. A kubelet creates its Node
# with a status, and the API server keeps it.
STATUS_ONLY_THROUGH_SUBRESOURCE: Final = frozenset(
    {"DaemonSet", "Deployment", "NodeClaim", "NodePool", "Pod", "PodDisruptionBudget", "ReplicaSet"}
)

# The API server keeps no generation for these.
WITHOUT_GENERATION: Final = frozenset({"ConfigMap", "Event", "Namespace", "Node", "Service"})

NODE_CLASS_GROUP: Final = "dovetail.sh"
NODE_CLASS_KIND: Final = "EmbeddedNodeClass"

_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def with_defaults(body: Body, now: float) -> Body:
    """A new object with what the API server adds to it."""
    match body["kind"]:
        case "Pod":
            return _pod(body)
        case "NodePool":
            return _node_pool(body)
        case "NodeClaim":
            return {**body, "spec": {"expireAfter": "720h", **body.get("spec", {})}}
        case "EmbeddedNodeClass":
            return _node_class(body, now)
        case _:
            return body


def _pod(body: Body) -> Body:
    spec = {"terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler", **body.get("spec", {})}
    priority = _PRIORITIES.get(spec.get("priorityClassName", ""))
    spec.setdefault("priority", 0 if priority is None else priority)
    return {**body, "spec": spec, "status": {"phase": "Pending"}}


def _node_pool(body: Body) -> Body:
    spec = body.get("spec", {})
    disruption = {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
        **spec.get("disruption", {}),
    }
    template = spec.get("template", {})
    template = {**template, "spec": {"expireAfter": "720h", **template.get("spec", {})}}
    return {**body, "spec": {**spec, "template": template, "disruption": disruption}}


def _node_class(body: Body, now: float) -> Body:
    """Ready from the start unless its author says otherwise, as the class of upstream's simulator is (K-1)."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": format_moment(now),
    }
    return {**body, "status": body.get("status") or {"conditions": [ready]}}


def check_change(old: Body, new: Body) -> None:
    """Refuse what the API server refuses of a change."""
    if old["kind"] == "NodeClaim" and old.get("spec") != new.get("spec"):
        raise Rejected(422, "Invalid", "spec: Invalid value: spec is immutable")
    before, after = old["metadata"].get("finalizers") or [], new["metadata"].get("finalizers") or []
    added = sorted(set(after) - set(before))
    if added and old["metadata"].get("deletionTimestamp"):
        message = (
            f"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted: {added}"
        )
        raise Rejected(422, "Invalid", message)
