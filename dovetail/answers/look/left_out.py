"""What a recording leaves out of an object, for size and because it may be secret: no decision reads it."""

from typing import Any, Final

from dovetail.model.values.json import Json

_CONTAINER: Final = ("name", "resources", "ports", "restartPolicy")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_STATUS: Final = ("name", "resources", "allocatedResources")  # what a container was given once it was resized
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def without_secrets(kind: str, raw: Json, *, templates: bool = False) -> Json:
    """The object without what no decision reads. `templates`: CapacityBuffers read those of workloads."""
    metadata = {name: value for name, value in raw.get("metadata", {}).items() if name != "managedFields"}
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {name: value for name, value in annotations.items() if name != _LAST_APPLIED}
    spec, status = raw.get("spec"), raw.get("status")
    kept = {**raw, "metadata": metadata}
    match kind:
        case "Pod":
            kept["spec"] = _pod_spec(spec)
            kept["status"] = _slim(status, _STATUSES, _STATUS)
        case "DaemonSet" if isinstance(spec, dict):
            kept["spec"] = _with_template(spec)
        case "PodTemplate":
            kept = _with_template(kept)
        case "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController" if isinstance(spec, dict):
            read = ("selector", "replicas", "template") if templates else ("selector", "replicas")
            kept["spec"] = _with_template({name: spec[name] for name in read if name in spec})
        case "Node" if isinstance(status, dict):
            kept["status"] = {name: value for name, value in status.items() if name != "images"}
        case _ if isinstance(spec, dict) and "userData" in spec:
            kept["spec"] = {name: value for name, value in spec.items() if name != "userData"}
    return kept


def _with_template(body: Json) -> Json:
    """The body, whose pod template says only what its pods' specs would."""
    template = body.get("template")
    if not isinstance(template, dict):
        return body
    return {**body, "template": {**template, "spec": _pod_spec(template.get("spec") or {})}}


def _pod_spec(spec: Any) -> Any:
    """A pod's spec whose containers say only what they need."""
    return _slim(spec, _CONTAINERS, _CONTAINER)


def _slim(body: Any, lists: tuple[str, ...], kept: tuple[str, ...]) -> Any:
    """The body, of the items of whose lists only some fields are kept. What has another form stays, to be explained."""
    if not isinstance(body, dict):
        return body
    slim = {
        name: [{key: item[key] for key in kept if key in item} if isinstance(item, dict) else item for item in items]
        for name, items in body.items()
        if name in lists and isinstance(items, list)
    }
    return {**body, **slim}
