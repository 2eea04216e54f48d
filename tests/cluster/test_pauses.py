"""Pauses and cancels on the real API server, by kubectl's patches alone and by the command line.

The worker runs with the shipped rights, so that what it must read it may read.
"""

import time
from typing import Any

import pytest

from dovetail.messages.workflow_ids import scheduler_id
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time
from testbed.up import CLUSTER
from worlds.cluster.ground import Ground
from worlds.cluster.objects import deployment, node_pool

pytestmark = pytest.mark.cluster

SYSTEM = "/api/v1/namespaces/kube-system"
POOL = "/apis/karpenter.sh/v1/nodepools/web"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
LIVES_SECONDS = 60
SECOND_LOOK_SECONDS = 15.0


async def annotate(ground: Ground, path: str, **annotations: str | None) -> None:
    """As kubectl annotate does."""
    keys = {f"dovetail.sh/{key.replace('_', '-')}": text for key, text in annotations.items()}
    answer = await ground.api.patch(path, {"metadata": {"annotations": keys}})
    assert answer.status == 200, answer.text


async def nothing_paused(ground: Ground) -> None:
    await annotate(ground, SYSTEM, paused=None, paused_until=None, paused_by=None, paused_reason=None)


async def said(ground: Ground, reason: str, about: str) -> list[str]:
    """The messages of the Events of that reason about that object; other tests have left some about theirs."""
    answer = await ground.api.get("/api/v1/namespaces/default/events")
    events = [each for each in answer.body["items"] if each["reason"] == reason]
    return [each["message"] for each in events if each["involvedObject"]["name"] == about]


async def stays(ground: Ground, claim: Json, pods: int, until: float) -> None:
    """At every look until then the claim is there, not marked, and its pods run."""
    name = claim["metadata"]["name"]

    async def passed() -> bool:
        found = await ground.claim(name)
        assert found is not None and "deletionTimestamp" not in found["metadata"], "it was deleted"
        assert names.OWNER not in (found["metadata"].get("annotations") or {}), "it was marked"
        assert await ground.running_pods() == pods
        return time.time() >= until

    await ground.until(passed, until - time.time() + 60.0, "the time has passed")


@pytest.mark.soak
async def test_a_node_that_expires_during_a_pause_stays_and_its_pods_run(ground: Ground) -> None:
    """Whatever is terminated, killed and lost meanwhile; nodes are still launched; at the end it expires."""
    pool = node_pool(consolidate_after="Never")
    pool["spec"]["template"]["spec"]["expireAfter"] = f"{LIVES_SECONDS}s"
    await ground.apply(pool)
    admin = str(ground.everything.plane.kubeconfig)  # the worker itself may not pause
    try:
        code, words = await ground.dovetail("pause", "--for", "1h", "--reason", "an incident", "--kubeconfig", admin)
        assert code == 0, words
        await ground.apply(deployment(1, cpu="3"))
        await ground.until(lambda: ground.settled(1), 120, "the pod runs")
        [claim] = await ground.claims()
        expires = parse_time(claim["metadata"]["creationTimestamp"]) + LIVES_SECONDS

        await ground.client.get_workflow_handle(scheduler_id(CLUSTER)).terminate("by hand")
        ground.kill_workers()
        ground.ensure_workers()
        await stays(ground, claim, 1, expires + 5.0)
        ground.kill_workers()
        await ground.lose_database()
        ground.ensure_workers()

        async def told() -> bool:
            return bool(await said(ground, "Paused", "web"))

        await ground.until(told, 60, "an Event on the pool says so")
        await ground.scale(2)
        await ground.until(lambda: ground.settled(2), 120, "a node is launched during the pause")
        await stays(ground, claim, 2, time.time() + 5.0)
        plan = " ".join((await ground.dovetail("plan"))[1].split())
        _, status = await ground.dovetail("status")
        assert "past the expireAfter" in plan and "PAUSED: disruption and expiry for all NodePools until" in plan
        assert "an incident" in status

        await nothing_paused(ground)

        async def expired() -> bool:
            return await ground.claim(claim["metadata"]["name"]) is None and await ground.settled(2)

        await ground.until(expired, 180, "the node expires and its pod runs elsewhere")
        await ground.assert_one_instance_per_claim()
    finally:
        await nothing_paused(ground)


async def test_kubectl_alone_pauses_a_pool_and_calls_a_held_plan_off(ground: Ground) -> None:
    """The pause is on the NodePool, the cancel on the NodeClaim; the Event names the program that wrote it."""
    await ground.apply(node_pool())
    await ground.apply(deployment(1, cpu="3"))
    await ground.until(lambda: ground.settled(1), 120, "the pod runs")
    [claim] = await ground.claims()
    path = f"{CLAIMS}/{claim['metadata']['name']}"
    await annotate(ground, POOL, paused="disruption", paused_by="alice", paused_until="soon")
    await ground.scale(0)
    await ground.until(lambda: ground.settled(0), 120, "the node is empty")
    await stays(ground, claim, 0, time.time() + SECOND_LOOK_SECONDS + 8.0)
    [fault] = await ground.until(lambda: said(ground, "PauseNotUnderstood", "web"), 120, "an Event names the word")
    assert "'soon' is no time" in fault

    await annotate(ground, POOL, paused=None, paused_by=None, paused_until=None)
    await ground.until(lambda: held(ground, claim), 120, "a plan waits for its second look")
    await annotate(ground, path, cancel="not now")

    [message] = await ground.until(
        lambda: said(ground, "DisruptionCancelled", claim["metadata"]["name"]), 120, "an Event answers"
    )
    assert message.startswith("Its disruption is called off: not now (by acceptance). It rests until ")
    await stays(ground, claim, 0, time.time() + SECOND_LOOK_SECONDS + 8.0)
    found = await ground.claim(claim["metadata"]["name"])
    assert found is not None
    assert names.CANCEL not in found["metadata"]["annotations"] and names.REST in found["metadata"]["annotations"]


async def held(ground: Ground, claim: Json) -> bool:
    """Whether a plan that takes the claim waits for its second look."""
    state: dict[str, Any] = await ground.client.get_workflow_handle(scheduler_id(CLUSTER)).query(
        "status", result_type=dict
    )
    targets = [t for h in state["held"] for c in h["plan"]["commands"] for t in c["targets"]]
    return claim["metadata"]["uid"] in {t["claim_uid"] for t in targets}


@pytest.mark.soak
async def test_a_drain_before_the_delete_is_paused_and_resumed(ground: Ground) -> None:
    """The mark stands and no pod is asked to leave, until a person takes the annotation off."""
    pool = node_pool()
    pool["metadata"]["annotations"] = {names.DRAIN_FIRST: "true"}
    pool["spec"]["template"]["spec"]["terminationGracePeriod"] = "60s"
    await ground.apply(pool)
    await ground.apply(deployment(1, cpu="3"))
    try:
        await ground.until(lambda: ground.settled(1), 120, "the pod runs")
        [claim] = await ground.claims()
        await annotate(ground, SYSTEM, paused="drains", paused_reason="look first")
        drifted = node_pool("green")
        drifted["metadata"]["annotations"] = {names.DRAIN_FIRST: "true"}
        drifted["spec"]["template"]["spec"]["terminationGracePeriod"] = "60s"
        await ground.apply(drifted)

        async def owner() -> str:
            found = await ground.claim(claim["metadata"]["name"])
            return str((found["metadata"].get("annotations") or {}).get(names.OWNER, "")) if found else ""

        identity = await ground.until(owner, 120, "the drifted node is marked")
        handle = ground.client.get_workflow_handle(identity)

        async def draining() -> bool:
            return str(await handle.query("status")) == "draining before the delete"

        await ground.until(draining, 120, "its replacement is ready")
        since = ground.audit.end()
        began = time.time()

        async def passed() -> bool:
            return time.time() - began > 10.0

        await ground.until(passed, 30, "a drain that is not paused has asked for an eviction")
        assert not [e for e in ground.worker_calls(since) if e.subresource == "eviction"]
        await nothing_paused(ground)
        record: dict[str, Any] = await ground.result(identity, "", 120)

        assert record["outcome"] == "done"
        await ground.until(lambda: ground.settled(1), 120, "the pod runs elsewhere")
    finally:
        await nothing_paused(ground)
