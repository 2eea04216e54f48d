"""What the API server fills in and what it refuses, as far as the product can notice.

The custom resources are judged by the models of `api/`, which also generate the CRDs of the real API server, so that
both accept the same objects. Of the built-in kinds' defaults there are only those that something reads.
"""

from collections.abc import Collection
from typing import Final

from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.api.kinds import KINDS
from dovetail.api.schema.structural import ApiModel
from dovetail.api.validation import InvalidObject, parse, refuse_change
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time

NAMESPACED: Final = frozenset(
    {
        "CapacityBuffer",
        "ConfigMap",
        "DaemonSet",
        "Deployment",
        "EndpointSlice",
        "Event",
        "Job",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "PodTemplate",
        "ReplicaSet",
        "ReplicationController",
        "Service",
        "StatefulSet",
    }
)

# Kinds whose status is written only through their status subresource, creation included. A kubelet creates its Node
# with a status, and the API server keeps it.
STATUS_ONLY_THROUGH_SUBRESOURCE: Final = frozenset(
    {
        "CapacityBuffer",
        "DaemonSet",
        "Deployment",
        "DisruptionPolicy",
        "Freeze",
        "NodeClaim",
        "NodePool",
        "NodeRollout",
        "Pod",
        "PodDisruptionBudget",
        "ReplicaSet",
    }
)

# The API server keeps no generation for these.
WITHOUT_GENERATION: Final = frozenset({"ConfigMap", "Event", "Namespace", "Node", "Service"})

_MODELS: Final[dict[str, type[ApiModel]]] = {kind.kind: kind.model for kind in KINDS}

# What a move of a one-replica Deployment reads of its spec.
_ROLLING: Final = {
    "replicas": 1,
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    "progressDeadlineSeconds": 600,
}

_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences")

_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def admitted(body: Json, now: float) -> Json:
    """A new object with what the API server adds to it, or 422."""
    if body["kind"] in _MODELS:
        return {**body, "spec": _parsed(body).as_object()["spec"]}
    match body["kind"]:
        case "Pod":
            return _pod(body)
        case "Deployment":
            return {**body, "spec": {**_ROLLING, **body["spec"]}}
        case "EmbeddedNodeClass":
            return _node_class(body, now)
        case _:
            return body


def without_empty(body: Json) -> Json:
    """As the API server stores it: its own types keep no empty list or map, such as one of taints."""
    kept = {**body, "metadata": _filled(body["metadata"], _METADATA)}
    return {**kept, "spec": _filled(body.get("spec") or {}, ("taints",))} if body["kind"] == "Node" else kept


def _filled(part: Json, names: Collection[str]) -> Json:
    return {name: value for name, value in part.items() if value or name not in names}


def check_change(old: Json, new: Json) -> None:
    """Refuse a change that the API server refuses."""
    before, after = old["metadata"].get("finalizers") or [], new["metadata"].get("finalizers") or []
    added = sorted(set(after) - set(before))
    if added and old["metadata"].get("deletionTimestamp"):
        message = f"metadata.finalizers: no new finalizers can be added if the object is being deleted: {added}"
        raise Rejected(422, "Invalid", message, {"field": "metadata.finalizers"})
    if old["kind"] in _MODELS:
        _check_models(old, new)


def _check_models(old: Json, new: Json) -> None:
    """The rules of the kind. An object that broke them before may still be changed, as on the API server."""
    try:
        before = parse(_MODELS[old["kind"]], old)
    except InvalidObject:
        return
    try:
        refuse_change(before, _parsed(new))
    except InvalidObject as error:
        raise Rejected(422, "Invalid", str(error)) from None


def _parsed(body: Json) -> ApiModel:
    try:
        return parse(_MODELS[body["kind"]], body)
    except InvalidObject as error:
        raise Rejected(422, "Invalid", str(error)) from None


def _pod(body: Json) -> Json:
    spec = {"terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler", **body.get("spec", {})}
    priority = _PRIORITIES.get(spec.get("priorityClassName", ""))
    spec.setdefault("priority", 0 if priority is None else priority)
    return {**body, "spec": spec, "status": {"phase": "Pending"}}


def _node_class(body: Json, now: float) -> Json:
    """Ready from the start unless its author says otherwise, like the class of upstream's simulator (KWK-1)."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": format_time(now),
    }
    return {**body, "status": body.get("status") or {"conditions": [ready]}}
