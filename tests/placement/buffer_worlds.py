"""CapacityBuffers and what they refer to, for tests: valid by default, a test says only what matters."""

from dataclasses import replace
from typing import Any

from dovetail.model.objects.buffers import CapacityBuffer, WorkloadRef
from dovetail.model.objects.workloads import Deployment, PodSource, SelectorSource
from dovetail.model.pods import Pod, PodShape
from dovetail.model.values.resources import parse_resources

DEPLOYMENT = WorkloadRef(group="apps", kind="Deployment", name="web")


def a_template(cpu: str = "1", **fields: Any) -> Pod:
    """What the pods of a template are like."""
    shape = PodShape(namespace="default", labels={"app": "web"})
    requests = {**parse_resources({"cpu": cpu, "memory": "1Gi"}), "pods": 1}
    return replace(Pod(name="", uid="", shape=shape, requests=requests), **fields)


def a_source(replicas: int = 0, cpu: str = "1", **fields: Any) -> PodSource:
    """A PodTemplate, or a workload with this number of replicas."""
    return replace(PodSource(pod=a_template(cpu), replicas=replicas, generation=1), **fields)


def a_buffer(name: str = "spare", **fields: Any) -> CapacityBuffer:
    """A buffer of three pods of the PodTemplate `small`, unless it follows a workload."""
    made = CapacityBuffer(name=name, namespace="default", uid=f"buffer-{name}", generation=1)
    return replace(made if "workload" in fields else replace(made, template="small", replicas=3), **fields)


def with_buffers(*buffers: CapacityBuffer, cpu: str = "1", **workloads: PodSource) -> dict[str, Any]:
    """Fields of a snapshot: the buffers, the PodTemplate `small`, and workloads `web` by kind."""
    deployment = workloads.pop("Deployment", None)
    return {
        "buffers": {buffer.key: buffer for buffer in buffers},
        "pod_templates": {"default/small": a_source(cpu=cpu)},
        "deployments": {}
        if deployment is None
        else {"default/web": Deployment(name="web", namespace="default", pods=deployment)},
        "selector_sources": {
            f"{kind}/default/web": SelectorSource(kind=kind, name="web", namespace="default", pods=source)
            for kind, source in workloads.items()
        },
    }
