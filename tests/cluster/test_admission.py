"""An admission policy that answers 403 for the claims of one NodePool, on the real API server.

Whoever is refused waits and is told why; everybody else goes on as if there were no policy.
"""

import time
from typing import Any

import pytest
from temporalio.service import RPCError

from dovetail.messages.workflow_ids import caretaker_id, scheduler_id
from dovetail.model.values.json import Json
from testbed.up import CLUSTER
from worlds.cluster.ground import Ground
from worlds.cluster.objects import DEPLOYMENTS, deployment, node_pool
from worlds.cluster.trouble import PODS, allow_again, planned_beside, refuse_claims_for_only, refuse_claims_of

pytestmark = pytest.mark.cluster


def pool(name: str) -> Json:
    body = node_pool()
    return {**body, "metadata": {"name": name}}


def pods_of(name: str, replicas: int) -> Json:
    """Pods that only the pool of that name may take."""
    body = deployment(replicas, cpu="3")
    spec = body["spec"]
    labels = {"app": name}
    pod = {**spec["template"]["spec"], "nodeSelector": {"karpenter.sh/nodepool": name}}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {**spec, "selector": {"matchLabels": labels}, "template": template}
    return {**body, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def running(ground: Ground, app: str) -> int:
    pods = await ground.objects("Pod")
    return sum(
        1 for p in pods if p["metadata"]["labels"].get("app") == app and p.get("status", {}).get("phase") == "Running"
    )


async def singletons(ground: Ground) -> list[tuple[str, str]]:
    """Run id and status of each; none before they were started."""
    try:
        found = [await ground.run_of(identity) for identity in (scheduler_id(CLUSTER), caretaker_id(CLUSTER))]
    except RPCError:
        return []
    return [(run, status) for run, _, status in found]


async def events_of(ground: Ground, reason: str) -> list[dict[str, Any]]:
    answer = await ground.api.get("/api/v1/namespaces/default/events")
    return [event for event in answer.body["items"] if event["reason"] == reason]


async def test_a_policy_that_refuses_the_claims_of_one_pool_stops_nothing_else(ground: Ground) -> None:
    await ground.apply(pool("free"))
    await ground.apply(pool("refused"))
    await refuse_claims_of(ground, "refused")
    try:
        before = await ground.until(lambda: singletons(ground), 60, "the singletons run")
        await ground.apply(pods_of("refused", 1))
        await ground.apply(pods_of("free", 1))

        async def free_runs() -> bool:
            return await running(ground, "free") == 1

        async def told() -> list[dict[str, Any]]:
            return await events_of(ground, "NodeClaimRefused")

        await ground.until(free_runs, 90, "the other pool's pod runs")
        found = await ground.until(told, 60, "the refused pool has an Event")
        assert {(e["involvedObject"]["kind"], e["involvedObject"]["name"]) for e in found} == {("NodePool", "refused")}
        assert "no machines for refused" in found[0]["message"]
        assert await singletons(ground) == before

        admin = str(ground.everything.plane.kubeconfig)  # the worker itself may not pause
        code, words = await ground.dovetail("pause", "launches", "--reason", "a policy", "--kubeconfig", admin)
        assert code == 0, words
        assert (await ground.api.patch(f"{DEPLOYMENTS}/free", {"spec": {"replicas": 2}})).status == 200

        async def paused() -> bool:
            return bool(await events_of(ground, "Paused"))

        await ground.until(paused, 30, "an Event on the pools says so")
        claims = len(await ground.claims())
        told_at = time.monotonic()

        async def has_passed() -> bool:
            return time.monotonic() - told_at >= 15

        await ground.until(has_passed, 30, "time for a refused claim to be asked for again, and for a second pod")
        assert len(await ground.claims()) == claims
        assert await singletons(ground) == before
        code, words = await ground.dovetail("resume", "--kubeconfig", admin)
        assert code == 0, words

        async def second_runs() -> bool:
            return await running(ground, "free") == 2

        await ground.until(second_runs, 90, "the other pool's second pod runs")
        assert await running(ground, "refused") == 0
        assert await singletons(ground) == before

        calls = ground.audit.entries(0)
        tries = [e for e in calls if e.verb == "create" and e.resource == "nodeclaims" and e.code == 403]
        assert len(tries) < 30, "the refused claim is asked for again and again"
    finally:
        await allow_again(ground)

    async def refused_runs() -> bool:
        return await running(ground, "refused") == 1

    await ground.until(refused_runs, 120, "what was refused runs once the policy is gone")


async def test_a_pod_for_whose_sake_claims_are_refused_waits_alone(ground: Ground) -> None:
    """It shares NodePool and owner with six good ones, and is planned onto their nodes."""
    await ground.apply(pool("default"))
    zone = "us-west-2b"
    await refuse_claims_for_only(ground, zone)
    owner = (await ground.api.get("/api/v1/namespaces/default")).body["metadata"]
    owners = [{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": owner["uid"], "controller": True}]
    expression: Json = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    bodies = [planned_beside("bad", [expression]), *[planned_beside(f"good-{number}", []) for number in range(6)]]
    for body in bodies:
        if body["metadata"]["name"] != "bad":
            body["spec"].pop("affinity")
        body["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "400m"  # there is room for all on one node
        body["metadata"].update(ownerReferences=owners, labels={"app": "mixed"})
        assert (await ground.api.post(PODS, body)).status == 201
    try:

        async def good_run() -> bool:
            return await running(ground, "mixed") == 6

        await ground.until(good_run, 120, "the good pods run")

        async def bad_is_named() -> bool:
            found = await events_of(ground, "FailedScheduling")
            mine = [e["message"] for e in found if e["involvedObject"]["name"] == "bad"]
            return any(f"no machines for {zone}" in message for message in mine)

        await ground.until(bad_is_named, 60, "an Event on the pod quotes the refusal")
        for command in (("explain", "pod", "default/bad"), ("plan",), ("status",)):
            _, said = await ground.dovetail(*command)
            assert f"no machines for {zone}" in " ".join(said.split()), (command, said)
        _, said = await ground.dovetail("explain", "pod", "default/bad")
        assert "a new node of NodePool" not in said
        await allow_again(ground)

        async def all_run() -> bool:
            return await running(ground, "mixed") == 7

        await ground.until(all_run, 150, "the pod runs once the policy is gone")
    finally:
        await allow_again(ground)
        for body in bodies:
            await ground.api.delete(f"{PODS}/{body['metadata']['name']}", {"gracePeriodSeconds": 0})
    await ground.until(ground.nothing_left, 180, "no claim, no node and no instance is left")
