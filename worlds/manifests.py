"""Objects as the API writes them, in JSON: valid by default, a test says only what matters.

What a folder needs of another kind is made of these under a name that says what it is. Objects as the product reads
them are in worlds/disruption.py.
"""

from collections.abc import Mapping
from typing import Any, Final

from dovetail.model import names
from dovetail.model.nodes import NodeClassRef
from dovetail.model.values.json import Json

EMBEDDED_CLASS: Final = NodeClassRef(group="dovetail.sh", kind="EmbeddedNodeClass", name="default")


def class_reference(of: NodeClassRef) -> Json:
    """`nodeClassRef`."""
    return {"group": of.group, "kind": of.kind, "name": of.name}


def pool_manifest(
    name: str = "default", of: NodeClassRef = EMBEDDED_CLASS, template: Mapping[str, Any] | None = None, **spec: Any
) -> Json:
    """A NodePool; `template` is in its template's spec."""
    own = {"nodeClassRef": class_reference(of), "requirements": [], **(template or {})}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"spec": own}, **spec},
    }


def claim_manifest(name: str = "default", of: NodeClassRef = EMBEDDED_CLASS, **spec: Any) -> Json:
    """A NodeClaim that nobody has begun to launch."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name},
        "spec": {"nodeClassRef": class_reference(of), "requirements": [], **spec},
    }


def pod_spec(cpu: str = "500m", memory: str = "128Mi", **spec: Any) -> Json:
    """Of one container."""
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}], **spec}


def pod_manifest(name: str = "lone", labels: dict[str, str] | None = None, **spec: Any) -> Json:
    """A pod of nobody's."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": pod_spec(**spec),
    }


def node_manifest(name: str = "n1", cpu: str = "4", taints: list[Json] | None = None, **labels: str) -> Json:
    """A node that is ready."""
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {names.HOSTNAME: name, **labels}},
        "spec": {"taints": taints or []},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
