"""Does the whole product hold on real servers: a real control plane, a real Temporal server, AWS over HTTP?

The acceptance tests. Workers are processes that are killed as a machine kills them; what is asserted stands in the API
server's objects and audit log and in the cloud's own ledger. Waits are bounded by what a loaded machine needs, not by
what the product promises: its timings are measured elsewhere.
"""

import asyncio
from functools import partial

import pytest

from dovetail.telemetry.log.start import product_version
from tests.cluster.system.scenes import a_slow_replacement, boot, gone, settle
from worlds.cluster.ground import Ground
from worlds.cluster.objects import claim_id, deployment, is_tainted, no_eviction, node_pool, owner_of

pytestmark = pytest.mark.cluster


async def test_a_worker_killed_between_the_clouds_answer_and_its_recording_launches_nothing_twice(
    ground: Ground,
) -> None:
    """DUR-1: the effect has happened, the answer is held back, the worker dies with it."""
    ground.world({"fail": [{"op": "CreateFleet", "dryRun": False, "answer": "late", "delay": 8, "times": 1}]})
    before = {i["id"] for i in await ground.instances()}
    await ground.apply(node_pool())
    await ground.apply(deployment(1, "3"))

    async def launched() -> bool:
        return any(i["id"] not in before for i in await ground.instances())

    await ground.until(launched, 90, "an instance is launched")
    [claim] = await ground.claims()
    identity = claim_id(claim)
    run = await ground.runs_as(identity, "LaunchNode")
    ground.kill_workers()
    [claim] = await ground.claims()
    assert "providerID" not in claim.get("status", {}), "the answer was recorded before the kill"
    ground.ensure_workers()

    assert await ground.result(identity, run) == "initialised"
    await ground.until(lambda: ground.settled(1), 60, "the pod runs")
    [instance] = await ground.instances_of(claim["metadata"]["uid"])
    [after] = await ground.claims()
    assert after["status"]["providerID"].endswith(instance["id"])
    await ground.assert_one_instance_per_claim()
    await ground.assert_nothing_tainted_or_leaked()


@pytest.mark.soak
async def test_a_worker_killed_after_the_taint_goes_on_to_the_delete(ground: Ground) -> None:
    drifted, replacement = await a_slow_replacement(ground)
    identity = owner_of(drifted)
    run = await ground.runs_as(identity, "DisruptNodes")

    ground.kill_workers()
    node = await ground.node(drifted["status"]["nodeName"])
    assert node is not None and is_tainted(node), "the taint stands while no worker runs"
    boot(ground, replacement)
    ground.ensure_workers()

    record = await ground.result(identity, run, 120)
    assert (record["outcome"], record["deleted"]) == ("done", [drifted["metadata"]["name"]])
    await ground.until(lambda: ground.settled(1), 60, "the pod runs on the replacement")
    assert [c["metadata"]["name"] for c in await ground.claims()] == [replacement["metadata"]["name"]]
    await ground.assert_one_instance_per_claim()
    await ground.assert_nothing_tainted_or_leaked()


async def test_a_worker_killed_in_mid_drain_goes_on_draining(ground: Ground) -> None:
    [claim] = await settle(ground, 1)
    await ground.apply(no_eviction())
    since = ground.audit.end()
    await ground.delete("NodeClaim", claim["metadata"]["name"])
    identity = claim_id(claim)
    run = await ground.until(lambda: ground.runs_as(identity, "TerminateNode"), 60, "its TerminateNode runs")

    async def refused() -> bool:
        return any(e.subresource == "eviction" and e.code == 429 for e in ground.worker_calls(since))

    await ground.until(refused, 60, "an eviction is refused")
    ground.kill_workers()
    assert await ground.claim(claim["metadata"]["name"]) is not None
    ground.ensure_workers()
    await ground.delete("PodDisruptionBudget", "web")

    assert await ground.result(identity, run, 120) == "terminated"
    await ground.until(lambda: ground.settled(1), 90, "the pod runs on another node")
    assert await gone(ground, claim)
    [instance] = await ground.instances_of(claim["metadata"]["uid"])
    assert instance["state"] == "terminated"
    await ground.assert_one_instance_per_claim()
    await ground.assert_nothing_tainted_or_leaked()


async def test_two_workers_scale_up_and_down_without_a_double_instance(ground: Ground) -> None:
    ground.ensure_workers(2)
    await settle(ground, 4, cpu="1")
    for round_number, pods in enumerate((12, 3, 15, 5)):
        await ground.scale(pods)
        if round_number == 2:
            ground.workers[-1].kill()
            await asyncio.to_thread(ground.workers[-1].wait)
            ground.ensure_workers(2)
        await ground.until(partial(ground.settled, pods), 120, f"{pods} pods run")
        await ground.assert_one_instance_per_claim()
    await ground.scale(0)
    await ground.until(ground.nothing_left, 180, "no claim, no node and no instance is left")
    await ground.assert_one_instance_per_claim()


async def test_every_kubernetes_call_of_the_worker_says_who_it_is(ground: Ground) -> None:
    """Last, so that it judges all calls of the tests before it; alone, those of a worker's start."""
    await settle(ground, 1)

    agents = {entry.user_agent for entry in ground.worker_calls()}

    assert agents == {f"dovetail/{product_version()}"}
