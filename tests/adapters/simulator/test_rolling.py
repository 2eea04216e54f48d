"""Deployments of the simulated world roll: nothing falls below what their strategy says, and a move finds its way."""

from typing import Any

import orjson
import pytest

from dovetail.adapters.kube.requests import Request, object_path
from dovetail.adapters.kubernetes_json.kinds import MOVE_KINDS
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.requests import ApiServer
from dovetail.cli.demo.change_objects import policies_that_guard_moves
from dovetail.model import names
from dovetail.model.objects.workloads import Deployment
from dovetail.model.places.move_changes import beginning, taking_back
from dovetail.model.values.json import Json
from dovetail.ports.failures import Forbidden
from dovetail.wiring.simulated import SimulatedAdapter, SimulatedCaller
from tests.adapters.simulator.conftest import Stage
from tests.adapters.simulator.manifests import a_deployment, ready_pods
from worlds.manifests import node_manifest


def changed(replicas: int, **spec: Any) -> Json:
    body = a_deployment(replicas, cpu="250m")
    return {**body, "spec": {**body["spec"], **spec}}


def of(stage: Stage) -> Json:
    return stage.world.get("Deployment", "web") or {}


def a_service() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    }


def slices(stage: Stage) -> list[int]:
    """How many ready addresses each state of the EndpointSlice had."""
    entries = [e for e in stage.world.ledger() if e.kind == "EndpointSlice" and e.operation == "cluster:patch"]
    states = [orjson.loads(e.detail)["endpoints"] for e in entries]
    return [sum(each["conditions"]["ready"] for each in state) for state in states]


@pytest.mark.parametrize(
    ("replicas", "surge", "away", "within"),
    [(1, "25%", "25%", (1, 2)), (4, "25%", "25%", (3, 5)), (4, 0, 1, (3, 4)), (4, 2, 0, (4, 6)), (4, 0, 0, (3, 4))],
)
def test_a_changed_template_rolls_within_its_strategy(
    stage: Stage, replicas: int, surge: int | str, away: int | str, within: tuple[int, int]
) -> None:
    least, most = within
    stage.world.apply(node_manifest(cpu="32"))
    stage.world.apply(a_service())
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": away}}
    before = a_deployment(replicas)
    stage.world.apply({**before, "spec": {**before["spec"], "strategy": strategy}})
    stage.pass_time(3)
    old = {p["metadata"]["uid"] for p in stage.world.objects("Pod")}
    known = len(slices(stage))

    stage.world.apply(changed(replicas, strategy=strategy))
    stage.settle()
    status = of(stage)["status"]
    assert (status["observedGeneration"], status["conditions"][0]["reason"]) == (2, "ReplicaSetUpdated")
    stage.pass_time(20)

    assert min(slices(stage)[known:]) == least and max(slices(stage)[known:]) <= most
    assert old.isdisjoint(p["metadata"]["uid"] for p in stage.world.objects("Pod"))
    status = of(stage)["status"]
    assert {status[name] for name in ("replicas", "updatedReplicas", "availableReplicas")} == {replicas}
    assert status["conditions"][0]["reason"] == "NewReplicaSetAvailable"


def test_recreate_makes_no_new_pod_before_the_old_ones_are_gone(stage: Stage) -> None:
    stage.world.apply(node_manifest(cpu="32"))
    stage.world.apply(a_service())
    stage.world.apply(changed(2, strategy={"type": "Recreate"}, paused=False))
    stage.pass_time(3)
    known = len(slices(stage))
    stage.world.apply({**changed(2), "spec": {**a_deployment(2)["spec"], "strategy": {"type": "Recreate"}}})
    stage.settle()
    assert len(stage.world.objects("Pod")) == 2

    stage.pass_time(5)

    assert min(slices(stage)[known:]) == 0 and len(ready_pods(stage.world)) == 2


def test_one_that_is_paused_does_not_roll_and_is_still_scaled(stage: Stage) -> None:
    stage.world.apply(node_manifest(cpu="32"))
    stage.world.apply(a_deployment(2))
    stage.pass_time(3)
    old = {p["metadata"]["uid"] for p in stage.world.objects("Pod")}

    stage.world.apply(changed(3, paused=True))
    stage.pass_time(5)

    assert old < {p["metadata"]["uid"] for p in stage.world.objects("Pod")}
    assert (len(stage.world.objects("ReplicaSet")), len(ready_pods(stage.world))) == (1, 3)


def test_pods_count_as_available_only_once_they_have_been_ready_for_long_enough(stage: Stage) -> None:
    stage.world.apply(node_manifest(cpu="32"))
    stage.world.apply(changed(1, minReadySeconds=10))
    stage.pass_time(5)
    before = of(stage)["status"]["availableReplicas"]
    stage.pass_time(10)

    assert (before, of(stage)["status"]["availableReplicas"]) == (0, 1)


def deployment(stage: Stage) -> Deployment:
    found = MOVE_KINDS[0].parse(of(stage))
    assert isinstance(found, Deployment) and found.roll_out is not None
    return found


async def test_a_move_goes_from_pod_to_pod_and_one_that_cannot_run_is_taken_back_to_the_same_pod(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    for body in (*policies_that_guard_moves(), node_manifest(cpu="1"), a_service()):
        stage.world.apply(body)
    stage.world.apply(changed(1, progressDeadlineSeconds=30))
    stage.pass_time(3)
    first = {p["metadata"]["uid"] for p in stage.world.objects("Pod")}
    found = deployment(stage)
    assert found.roll_out is not None and found.roll_out.settled and found.roll_out.surges

    await adapter.deployments.annotate(found, beginning(found.roll_out, "n-uid", stage.clock.now))
    begun = deployment(stage)
    assert begun.roll_out is not None and not begun.roll_out.settled
    stage.pass_time(5)
    moved = {p["metadata"]["uid"] for p in stage.world.objects("Pod")}
    assert len(moved) == 1 and moved.isdisjoint(first) and min(slices(stage)[1:]) == 1

    stage.world.patch("Node", "n1", {"spec": {"unschedulable": True}})
    again = deployment(stage)
    assert again.roll_out is not None and again.roll_out.settled
    await adapter.deployments.annotate(again, beginning(again.roll_out, "n-uid", stage.clock.now))
    stage.pass_time(31)
    stuck = deployment(stage)
    assert stuck.roll_out is not None and stuck.roll_out.timed_out and stuck.roll_out.begun is not None
    change = taking_back(stuck.roll_out, stuck.roll_out.begun, stage.clock.now, failed=True)
    await adapter.deployments.annotate(stuck, change)
    stage.pass_time(3)

    assert {p["metadata"]["uid"] for p in stage.world.objects("Pod")} == moved
    assert len(stage.world.objects("ReplicaSet")) == 3 and min(slices(stage)[1:]) == 1
    left = await adapter.deployments.read(stuck)
    assert left is not None and left.roll_out is not None and left.roll_out.settled


async def test_a_worker_changes_nothing_of_a_deployment_but_a_move_where_the_policy_stands(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    stage.world.apply(node_manifest())
    stage.world.apply(a_deployment(1))
    client = SimulatedCaller(ApiServer(Calls(adapter.store, "dovetail/test", stage.clock)))
    path = object_path("/apis/apps/v1/deployments", "web", namespace="default")

    async def tries(patch: Json) -> None:
        await client.call(Request(method="PATCH", path=path, subject="Deployment/web", body=patch))

    await tries({"spec": {"replicas": 2}})
    for body in policies_that_guard_moves():
        stage.world.apply(body)
    for patch in (
        {"spec": {"replicas": 1}},
        {"spec": {"paused": True}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}},
    ):
        with pytest.raises(Forbidden, match="dovetail-moves"):
            await tries(patch)
    await tries({"spec": {"template": {"metadata": {"annotations": {names.MOVED: "a"}}}}})
    await tries({"metadata": {"annotations": {names.MOVES: "of a move"}}})
    stage.world.patch("Deployment", "web", {"spec": {"replicas": 1}})  # anybody else may
