"""The smallest objects that the API server accepts, as JSON, and claims as the ports take them."""

from typing import Any

from dovetail.model.names import PLAN, TERMINATION_FINALIZER
from dovetail.model.nodes import NodeClassRef
from dovetail.model.pods import Expression
from dovetail.model.values.json import Json
from dovetail.ports.objects import NewClaim

NODE_CLASS = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")


def a_new_claim(name: str, plan: str = "plan/0", **changes: Any) -> NewClaim:
    fields: dict[str, Any] = {
        "labels": {"karpenter.sh/nodepool": "general"},
        "annotations": {PLAN: plan},
        "finalizers": (TERMINATION_FINALIZER,),
        "owner": None,
        "node_class": NODE_CLASS,
        "requirements": (Expression(key="kubernetes.io/arch", operator="In", values=("amd64",)),),
        "requests": {"cpu": 1_500_000_000, "memory": 2**30},
    }
    return NewClaim(name=name, **{**fields, **changes})


def a_node(name: str, provider_id: str = "", **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {**({"providerID": provider_id} if provider_id else {}), **spec},
        "status": {"capacity": {"cpu": "2", "pods": "10"}, "allocatable": {"cpu": "2", "pods": "10"}},
    }


def a_pod(name: str, node: str = "", labels: dict[str, str] | None = None, grace: int = 30) -> Json:
    """Bound pods stay where they are put: nothing plays the kubelet of these nodes."""
    spec: Json = {
        "containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "100m"}}}],
        "terminationGracePeriodSeconds": grace,
        "tolerations": [{"operator": "Exists"}],
    }
    if node:
        spec["nodeName"] = node
    meta = {"name": name, "namespace": "default", "labels": labels or {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def a_running_pod(name: str, node: str, labels: dict[str, str] | None = None) -> Json:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {**a_pod(name, node, labels), "status": {"phase": "Running", "conditions": [ready]}}


def a_budget(name: str, app: str, **spec: Any) -> Json:
    selector = {"matchLabels": {"app": app}}
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": {"selector": selector, **spec},
    }


def a_pool(name: str, **template: Any) -> Json:
    reference = {"group": NODE_CLASS.group, "kind": NODE_CLASS.kind, "name": NODE_CLASS.name}
    spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": [], **template}}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
