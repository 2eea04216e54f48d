"""The smallest objects that the API server accepts, as JSON, and claims as the ports take them."""

from typing import Any

from dovetail.model.names import PLAN, TERMINATION_FINALIZER
from dovetail.model.pods import Expression
from dovetail.model.values.json import Json
from dovetail.ports.objects import NewClaim
from worlds.disruption import EC2_CLASS
from worlds.manifests import node_manifest, pod_manifest, pool_manifest

NODE_CLASS = EC2_CLASS


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


def a_least_node(name: str, provider_id: str = "") -> Json:
    """Of which nobody has said whether it is ready."""
    amounts = {"cpu": "2", "pods": "10"}
    spec = {"providerID": provider_id} if provider_id else {}
    return {**node_manifest(name), "spec": spec, "status": {"capacity": amounts, "allocatable": amounts}}


def a_least_pod(name: str, node: str = "", labels: dict[str, str] | None = None, grace: int = 30) -> Json:
    """Bound pods stay where they are put: nothing plays the kubelet of these nodes."""
    return pod_manifest(
        name,
        labels or {"app": name},
        containers=[{"name": "c", "image": "none", "resources": {"requests": {"cpu": "100m"}}}],
        terminationGracePeriodSeconds=grace,
        tolerations=[{"operator": "Exists"}],
        **({"nodeName": node} if node else {}),
    )


def a_running_pod(name: str, node: str, labels: dict[str, str] | None = None) -> Json:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {**a_least_pod(name, node, labels), "status": {"phase": "Running", "conditions": [ready]}}


def a_budget(name: str, app: str, **spec: Any) -> Json:
    selector = {"matchLabels": {"app": app}}
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": {"selector": selector, **spec},
    }


def a_least_pool(name: str, **template: Any) -> Json:
    return pool_manifest(name, NODE_CLASS, template)
