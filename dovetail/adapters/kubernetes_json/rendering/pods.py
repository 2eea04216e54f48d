"""What is written on a pod."""

from dovetail.model.pods import Pod
from dovetail.model.values.json import Json


def render_nomination(pod: Pod, node: str) -> Json:
    """The change that nominates this pod at this version for a node; an empty name removes the nomination."""
    return {
        "metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version},
        "status": {"nominatedNodeName": node or None},
    }


def render_annotation(pod: Pod, key: str, value: str | None) -> Json:
    """The change that annotates this pod at this version; None removes the annotation."""
    return {
        "metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version, "annotations": {key: value}},
    }
