"""Objects for a simulated world: valid by default, a test says only what matters."""

from typing import Any

from dovetail.adapters.simulator.play.tick import is_true
from dovetail.model import names
from dovetail.model.pods import Expression
from dovetail.model.values.json import Json
from dovetail.model.values.resources import parse_resources
from dovetail.ports.objects import NewClaim
from testbed.simulated_world import SimulatedWorld
from worlds.manifests import EMBEDDED_CLASS, pod_spec


def a_node_class(name: str = "default", **spec: Any) -> Json:
    return {
        "apiVersion": "dovetail.sh/v1",
        "kind": "EmbeddedNodeClass",
        "metadata": {"name": name},
        "spec": spec,
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
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(**spec)},
        },
    }


def a_pdb(app: str = "web", **spec: Any) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{app}-pdb", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def a_new_claim(name: str = "default-1", plan: str = "plan/0", **more: Any) -> NewClaim:
    return NewClaim(
        **{
            "name": name,
            "labels": {names.NODE_POOL: "default"},
            "annotations": {names.PLAN: plan},
            "finalizers": (names.TERMINATION_FINALIZER,),
            "owner": None,
            "node_class": EMBEDDED_CLASS,
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
