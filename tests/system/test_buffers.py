"""CapacityBuffers on the simulated world, workers and all, behind their gate (PLC-1, PLC-211 to PLC-214, DIS-68)."""

import asyncio
from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.system.beside import beside
from worlds.stage.stage import Stage, has_condition

pytestmark = pytest.mark.temporal

GATES = "CapacityBuffer=true"


def pod_template(cpu: str = "1500m") -> Json:
    """Pods that fill a node of two cpu each."""
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    template = {"metadata": {"labels": {"app": "spare"}}, "spec": {"containers": [container]}}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "spare"}, "template": template}


def buffer(name: str = "spare", **spec: Any) -> Json:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec or {"podTemplateRef": {"name": "spare"}, "replicas": 2},
    }


def says(stage: Stage, kind: str, name: str = "spare") -> tuple[str, str]:
    """Status and reason of a buffer's condition."""
    found = stage.world.get("CapacityBuffer", name) or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return next(((c["status"], c["reason"]) for c in conditions if c["type"] == kind), ("", ""))


def stands(stage: Stage, nodes: int) -> bool:
    """That many nodes, all initialised, none leaving, and the buffer has its room."""
    claims = stage.claims()
    ready = all(has_condition(c, names.INITIALIZED_CONDITION) for c in claims)
    fits = says(stage, names.PROVISIONING) == ("True", "FitsExistingCapacity")
    return len(claims) == len(stage.world.live_instances()) == nodes and ready and fits


def nominations(stage: Stage) -> list[str]:
    return [e["involvedObject"]["name"] for e in stage.world.objects("Event") if e["reason"] == "Nominated"]


@beside
async def test_a_buffer_gets_nodes_keeps_them_is_filled_again_and_gives_them_back(stage: Stage) -> None:
    """PLC-211 to PLC-214, PLC-1, DIS-20, DIS-68: nodes are emptied at once here, but for the buffer's."""
    stage.start_worker(FEATURE_GATES=GATES)
    stage.apply_pool()
    stage.world.apply(pod_template())
    stage.world.apply(buffer())
    await stage.until(lambda: stands(stage, 2), 60, "the buffer has two nodes")
    first = {c["metadata"]["uid"] for c in stage.claims()}
    status = (stage.world.get("CapacityBuffer", "spare") or {})["status"]

    await asyncio.sleep(20.0)  # an empty node is marked 15 s after it was found
    assert {c["metadata"]["uid"] for c in stage.claims()} == first

    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stands(stage, 3), 60, "the room that the pod took is back")
    bound = [e for e in stage.world.ledger() if e.operation == "cluster:bind"]

    stage.world.delete("CapacityBuffer", "spare")
    await stage.until(lambda: len(stage.claims()) == 1, 90, "the nodes that no pod needs are gone")

    assert status["replicas"] == 2 and status["podTemplateRef"] == {"name": "spare"}
    assert [e.outcome for e in bound] == ["ok"]
    assert stage.running_pods() == 1
    assert nominations(stage) == []
    assert len(stage.world.instances()) == 3


@beside
async def test_a_buffer_follows_its_workload_and_bad_ones_say_why_and_delay_no_other(stage: Stage) -> None:
    """PLC-211: one percent of a workload is one pod; what is missing is named by object and field."""
    stage.start_worker(FEATURE_GATES=GATES)
    stage.apply_pool()
    stage.deploy(1)
    web = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
    stage.world.apply(buffer(scalableRef=web, percentage=1))
    stage.world.apply(buffer("lost", podTemplateRef={"name": "nowhere"}, replicas=1))
    stage.world.apply(buffer("astray", scalableRef={**web, "name": "nowhere"}, replicas=1))
    stage.world.apply(buffer("job", scalableRef={"apiGroup": "batch", "kind": "Job", "name": "web"}, replicas=1))
    stage.world.apply(buffer("nothing", scalableRef=web, replicas=0))
    stage.world.put_raw(unreadable())

    await stage.until(
        lambda: stage.running_pods() == 1 and stands(stage, 2), 60, "the pod runs beside the buffer's room"
    )
    code, _, _ = await stage.dovetail("status", FEATURE_GATES=GATES)

    ready = names.READY_FOR_PROVISIONING
    assert {name: says(stage, ready, name) for name in ("spare", "lost", "astray", "job", "nothing")} == {
        "spare": ("True", "Resolved"),
        "lost": ("False", "PodTemplateNotFound"),
        "astray": ("False", "ScalableRefNotFound"),
        "job": ("False", "ResolutionFailed"),
        "nothing": ("True", "Resolved"),
    }
    assert says(stage, names.PROVISIONING, "lost") == ("False", "NotReadyForProvisioning")
    assert says(stage, names.PROVISIONING, "nothing") == ("False", "BufferEmpty")
    assert says(stage, ready, "odd") == ("False", "ResolutionFailed")
    assert code == 0 and "Traceback" not in (stage.folder / "worker.log").read_text()


def unreadable() -> Json:
    odd = buffer("odd", podTemplateRef={"name": "spare"}, replicas="many")
    odd["metadata"] |= {"uid": "odd", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
    return odd


@beside
async def test_with_the_gate_closed_a_buffer_is_not_looked_at(stage: Stage) -> None:
    stage.start_worker()
    stage.apply_pool()
    stage.world.apply(pod_template())
    stage.world.apply(buffer())
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1, 60, "the pod runs")
    await asyncio.sleep(3.0)

    assert len(stage.claims()) == 1
    assert "status" not in (stage.world.get("CapacityBuffer", "spare") or {})
