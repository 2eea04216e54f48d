"""The simulated API server as the product's adapter asks it, beyond what the ports ask of every API server."""

from typing import Any

import pytest

from dovetail.adapters.kube.requests import KEYED_PATCH, PARTS_PATCH, Request, object_path
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.requests import ApiServer
from dovetail.model import names
from dovetail.model.pods import Expression
from dovetail.model.values.json import Json
from dovetail.ports.failures import Forbidden, Refused, Unreachable
from dovetail.wiring.simulated import SimulatedAdapter, SimulatedCaller
from tests.adapters.simulator.conftest import Stage
from tests.adapters.simulator.manifests import a_new_claim
from worlds.manifests import node_manifest, pod_manifest

NODE = object_path("/api/v1/nodes", "n1")


@pytest.fixture
def client(stage: Stage, adapter: SimulatedAdapter) -> SimulatedCaller:
    return SimulatedCaller(ApiServer(Calls(adapter.store, "dovetail/test", stage.clock)))


def a_patch(path: str, body: Any, **more: Any) -> Request:
    return Request(method="PATCH", path=path, subject="an object", body=body, **more)


async def test_a_dry_run_is_judged_and_leaves_nothing_behind(stage: Stage, adapter: SimulatedAdapter) -> None:
    last, odd = stage.world.ledger()[-1].id, Expression(key=names.ZONE, operator="Like", values=())

    await adapter.claims.may_create(a_new_claim())
    with pytest.raises(Refused):
        await adapter.claims.may_create(a_new_claim(requirements=(odd,)))

    assert stage.world.objects("NodeClaim") == [] and stage.world.ledger(last) == []


async def test_a_worker_changes_nothing_of_a_pod_but_its_nomination_and_its_deletion_cost(
    stage: Stage, client: SimulatedCaller
) -> None:
    stage.world.apply(pod_manifest("web"))
    pod = object_path("/api/v1/pods", "web", namespace="default")
    status = f"{pod}/status"

    for path, body, policy in (
        (pod, {"metadata": {"labels": {"app": "other"}}}, "dovetail-deletion-costs"),
        (pod, {"metadata": {"annotations": {"a": "b"}}}, "dovetail-deletion-costs"),
        (status, {"status": {"podIP": "10.0.0.1"}}, "dovetail-places"),
    ):
        with pytest.raises(Forbidden, match=policy):
            await client.call(a_patch(path, body))
    await client.call(a_patch(pod, {"metadata": {"annotations": {names.POD_DELETION_COST: "-1"}}}))
    await client.call(a_patch(status, {"status": {"nominatedNodeName": "n1"}}))

    stage.world.patch("Pod", "web", {"metadata": {"labels": {"app": "other"}}})  # anybody else may


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "test", "path": "/metadata/labels/team", "value": "b"}],
        [{"op": "remove", "path": "/spec/taints/7"}],
        [{"op": "add", "path": "/spec/nowhere/-", "value": {}}],
    ],
)
async def test_operations_that_do_not_fit_change_nothing(
    stage: Stage, client: SimulatedCaller, operations: list[Json]
) -> None:
    before = stage.world.apply(node_manifest(team="a"))
    changing = {"op": "add", "path": "/metadata/labels/team", "value": "c"}

    answer = await client.call(
        a_patch(NODE, [changing, *operations], patch_type=PARTS_PATCH, expected=frozenset({422}))
    )

    assert (answer.status, answer.causes) == (422, ())
    assert stage.world.get("Node", "n1") == before


async def test_conditions_are_merged_by_their_type(stage: Stage, client: SimulatedCaller) -> None:
    stage.world.apply(node_manifest())
    other = {"type": "Other", "status": "False"}

    await client.call(a_patch(f"{NODE}/status", {"status": {"conditions": [other]}}, patch_type=KEYED_PATCH))
    body = {"status": {"conditions": [{"type": "Other", "status": "True"}]}}
    await client.call(a_patch(f"{NODE}/status", body, patch_type=KEYED_PATCH))

    found = stage.world.get("Node", "n1")
    assert found is not None
    assert {each["type"]: each["status"] for each in found["status"]["conditions"]} == {
        "Ready": "True",
        "Other": "True",
    }


async def test_what_is_not_served_is_no_answer_about_an_object(client: SimulatedCaller) -> None:
    with pytest.raises(Unreachable):
        await client.call(Request(method="GET", path="/apis/example.com/v1/things/one", subject="Thing/one"))
