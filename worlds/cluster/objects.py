"""The objects that tests on real servers write and read."""

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.up import CLUSTER
from worlds.disruption import EC2_CLASS
from worlds.manifests import pool_manifest

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
BUFFERS = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers"
RULES = ("disruptionpolicies", "freezes", "noderollouts")
TEMPLATES = "/api/v1/namespaces/default/podtemplates"
NAMESPACED = {
    "Deployment": DEPLOYMENTS,
    "PodDisruptionBudget": BUDGETS,
    "CapacityBuffer": BUFFERS,
    "PodTemplate": TEMPLATES,
}
KUBELET = "dovetail.test/kubelet"


def claim_id(claim: Json) -> str:
    """The id of the claim's workflow."""
    return f"{CLUSTER}/claim/{claim['metadata']['name']}"


def owner_of(claim: Json) -> str:
    """The disruption whose mark the claim carries."""
    return str((claim["metadata"].get("annotations") or {}).get(names.OWNER, ""))


def is_tainted(node: Json) -> bool:
    return any(t["key"] == names.DISRUPTED_TAINT for t in node["spec"].get("taints") or [])


def has_condition(body: Json, kind: str) -> bool:
    """Whether that condition is True."""
    conditions = body.get("status", {}).get("conditions") or []
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def node_pool(colour: str = "blue", instance_type: str = "m5.xlarge", consolidate_after: str = "0s") -> Json:
    """A pool of one instance type; another colour makes its nodes drift."""
    requirements = [
        {"key": names.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]},
        {"key": names.INSTANCE_TYPE, "operator": "In", "values": [instance_type]},
    ]
    disruption = {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": consolidate_after,
        "budgets": [{"nodes": "100%"}],
    }
    template = {"requirements": requirements, "expireAfter": "720h"}
    body = pool_manifest("web", EC2_CLASS, template, disruption=disruption)
    body["spec"]["template"]["metadata"] = {"labels": {"colour": colour}}
    return body


def deployment(replicas: int, cpu: str = "1") -> Json:
    """Pods of one size."""
    labels = {"app": "web"}
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": cpu, "memory": "512Mi"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def no_eviction() -> Json:
    """A budget that refuses every eviction."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    }
