"""Objects for a simulated world: valid by default, a test says only what matters."""

from typing import Any

from dovetail.adapters.simulator.play.tick import is_true
from dovetail.model import names
from dovetail.model.nodes import NodeClassRef
from dovetail.model.pods import Expression
from dovetail.model.values.json import Json
from dovetail.model.values.resources import parse_resources
from dovetail.ports.objects import NewClaim
from testbed.simulated_world import SimulatedWorld

CLASS = NodeClassRef(group="dovetail.sh", kind="EmbeddedNodeClass", name="default")


def a_node_class(name: str = "default", **spec: Any) -> Json:
    return {
        "apiVersion": "dovetail.sh/v1",
        "kind": "EmbeddedNodeClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def a_pool(name: str = "default", **spec: Any) -> Json:
    reference = {"group": CLASS.group, "kind": CLASS.kind, "name": CLASS.name}
    template = {"spec": {"nodeClassRef": reference, "requirements": []}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def a_pod_spec(cpu: str = "500m", **spec: Any) -> Json:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}}}], **spec}


def a_pod(name: str = "lone", labels: dict[str, str] | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": a_pod_spec(**spec),
    }


def a_deployment(replicas: int, name: str = "web", **spec: Any) -> Json:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": a_pod_spec(**spec)},
        },
    }


def a_pdb(app: str = "web", **spec: Any) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{app}-pdb", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def a_node(name: str = "n1", cpu: str = "4", taints: list[Json] | None = None, **labels: str) -> Json:
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


def a_new_claim(name: str = "default-1", plan: str = "plan/0", **more: Any) -> NewClaim:
    return NewClaim(
        **{
            "name": name,
            "labels": {names.NODE_POOL: "default"},
            "annotations": {names.PLAN: plan},
            "finalizers": (names.TERMINATION_FINALIZER,),
            "owner": None,
            "node_class": CLASS,
            "requirements": (linux(), amd64()),
            "requests": parse_resources({"cpu": "2", "memory": "2Gi", "pods": "5"}),
            **more,
        }
    )


def linux() -> Expression:
    return Expression(key=names.OS, operator="In", values=("linux",))


def amd64() -> Expression:
    return Expression(key=names.ARCH, operator="In", values=("amd64",))


def ready_pods(world: SimulatedWorld) -> list[Json]:
    return [pod for pod in world.objects("Pod") if is_true(pod, "Ready")]


def nodes_of_pods(world: SimulatedWorld) -> list[str]:
    return [pod["spec"].get("nodeName", "") for pod in world.objects("Pod")]
