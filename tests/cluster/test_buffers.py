"""CapacityBuffers on real servers, under the worker's own limited rights (PLC-211 to PLC-214, DIS-68)."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import yaml

from dovetail.api.crds import crd
from dovetail.api.kinds import KINDS
from dovetail.model import names
from testbed.up import DEFINITIONS
from worlds.cluster.ground import Ground
from worlds.cluster.objects import BUFFERS, deployment, has_condition, node_pool

pytestmark = pytest.mark.cluster


GATES = "CapacityBuffer=true"
[KIND] = [kind for kind in KINDS if kind.kind == "CapacityBuffer"]
MANIFESTS = """
apiVersion: v1
kind: PodTemplate
metadata: {name: spare, namespace: default}
template:
  metadata: {labels: {app: spare}}
  spec:
    containers: [{name: main, image: "main:1", resources: {requests: {cpu: "3", memory: 512Mi}}}]
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare, namespace: default}
spec: {podTemplateRef: {name: spare}, replicas: 1}
"""


@pytest_asyncio.fixture(loop_scope="session")
async def gated(ground: Ground) -> AsyncIterator[Ground]:
    """No worker runs; those of the test are gone afterwards, and the kind is installed."""
    ground.kill_workers()
    yield ground
    ground.kill_workers()
    await ground.api.post(DEFINITIONS, crd(KIND))


async def keep_room(ground: Ground) -> None:
    """A PodTemplate whose pods have a node each to themselves, and a buffer of one."""
    for body in yaml.safe_load_all(MANIFESTS):
        await ground.apply(body)


async def fits(ground: Ground, nodes: int) -> bool:
    """That many nodes, all initialised, and the buffer has its room."""
    claims = await ground.claims()
    ready = [c for c in claims if has_condition(c, names.INITIALIZED_CONDITION)]
    found = (await ground.api.get(f"{BUFFERS}/spare")).body
    return len(ready) == len(claims) == nodes and has_condition(found, names.PROVISIONING)


async def test_a_buffer_gets_a_node_a_pod_takes_its_room_and_it_is_filled_again(gated: Ground) -> None:
    """PLC-1, PLC-211 to PLC-214, DIS-20, DIS-68: the pool's empty nodes go at once, but for this one."""
    since = gated.audit.end()
    gated.ensure_workers(gates=GATES)
    await gated.apply(node_pool())
    await keep_room(gated)
    await gated.until(lambda: fits(gated, 1), 120, "the buffer has a node")
    [first] = await gated.claims()
    await asyncio.sleep(20.0)  # an empty node is marked 15 s after it was found
    assert [c["metadata"]["uid"] for c in await gated.claims()] == [first["metadata"]["uid"]]

    await gated.apply(deployment(1, "3"))
    await gated.until(lambda: gated.settled(1), 60, "the pod runs")
    [pod] = await gated.objects("Pod")
    await gated.until(lambda: fits(gated, 2), 120, "the buffer has another node")

    assert pod["spec"]["nodeName"] == first["status"]["nodeName"]
    status = (await gated.api.get(f"{BUFFERS}/spare")).body["status"]
    assert (status["replicas"], status["podTemplateRef"], status["podTemplateGeneration"]) == (1, {"name": "spare"}, 1)
    assert {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]} == {
        names.READY_FOR_PROVISIONING: ("True", "Resolved"),
        names.PROVISIONING: ("True", "FitsExistingCapacity"),
    }
    published = [e.request or {} for e in gated.worker_calls(since) if e.resource == "events"]
    assert [event for event in published if event.get("reason") == "Nominated"] == []
    await gated.assert_one_instance_per_claim()

    await gated.delete("CapacityBuffer", "spare")

    async def given_back() -> bool:
        return [c["metadata"]["uid"] for c in await gated.claims()] == [first["metadata"]["uid"]]

    await gated.until(given_back, 120, "the node that no pod needs any more is gone")
    await gated.assert_nothing_tainted_or_leaked()


@pytest.mark.soak
async def test_without_the_kind_one_line_says_so_and_the_rest_goes_on_until_it_is_installed(gated: Ground) -> None:
    await gated.api.delete(f"{DEFINITIONS}/{KIND.crd_name}")
    await gated.api.wait_for(f"{DEFINITIONS}/{KIND.crd_name}", lambda answer: answer.status == 404)
    log = gated.everything.folder / "worker.log"
    before = len(log.read_text())
    gated.ensure_workers(gates=GATES)
    await gated.apply(node_pool())
    await gated.apply(deployment(1, "3"))
    await gated.until(lambda: gated.settled(1), 120, "the pod runs")

    said = [line for line in log.read_text()[before:].splitlines() if "CapacityBuffer is not installed" in line]
    assert len(said) == 1
    assert "CapacityBuffer is not installed: the server has nothing at /apis/autoscaling.x-k8s.io" in said[0]

    await gated.api.post(DEFINITIONS, crd(KIND))
    await gated.api.wait_for(BUFFERS, lambda answer: answer.status == 200)
    await keep_room(gated)
    await gated.until(lambda: fits(gated, 2), 120, "the buffer has a node")
