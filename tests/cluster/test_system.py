"""Does the whole product hold on real servers: a real control plane, a real Temporal server, AWS over HTTP?

The acceptance tests. Workers are processes that are killed as a machine kills them; what is asserted stands in the API
server's objects and audit log and in the cloud's own ledger. Waits are bounded by what a loaded machine needs, not by
what the product promises: its timings are measured elsewhere.
"""

import asyncio
import json
from functools import partial

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.telemetry.log.start import product_version
from testbed.plane import AuditEntry
from tests.cluster.system.scenes import a_slow_replacement, boot, gone, settle
from worlds.cluster.ground import Ground
from worlds.cluster.objects import claim_id, deployment, has_condition, is_tainted, no_eviction, node_pool, owner_of

pytestmark = pytest.mark.cluster


def moment(entries: list[AuditEntry], what: str) -> str:
    """When the first of them was asked."""
    assert entries, f"not in the audit log: {what}"
    return min(entry.time for entry in entries)


async def test_a_deployment_gets_nodes_and_scaled_to_zero_they_leave_nothing_behind(ground: Ground) -> None:
    since = ground.audit.end()
    claims = await settle(ground, 20, cpu="1")
    await ground.assert_one_instance_per_claim()
    launched = {c["metadata"]["uid"]: await ground.instances_of(c["metadata"]["uid"]) for c in claims}

    await ground.scale(0)
    await ground.until(ground.nothing_left, 180, "no claim, no node and no instance is left")

    calls = [entry for entry in ground.worker_calls(since) if entry.code < 300]
    for claim in claims:
        name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
        of_node = [e for e in calls if e.resource == "nodes" and e.name == node and e.is_write]
        of_claim = [e for e in calls if e.resource == "nodeclaims" and e.name == name and e.is_write]
        tainted = moment([e for e in of_node if names.DISRUPTED_TAINT in json.dumps(e.operations)], "the taint")
        deleted = moment([e for e in of_claim if e.verb == "delete"], "the delete")
        drained = moment([e for e in of_claim if has_condition(e.response or {}, names.DRAINED)], "the drain's end")
        released = moment([e for e in of_claim if _finalizers(e) == []], "the finalizer's release")
        assert tainted < deleted < drained < released
        [instance] = launched[claim["metadata"]["uid"]]
        ended = [c for c in ground.cloud.calls("TerminateInstances") if instance["id"] in json.dumps(c["input"])]
        assert ended, f"{instance['id']} was not terminated by a call"
    await ground.assert_one_instance_per_claim()
    drifted = [e.name for e in calls if e.resource == "nodeclaims" and has_condition(e.response or {}, names.DRIFTED)]
    assert drifted == [], "nothing was changed, so no node may have drifted"


def _finalizers(entry: AuditEntry) -> list[str] | None:
    """The finalizers that a write to a leaving claim has left; None where the claim is not leaving."""
    metadata = (entry.response or {}).get("metadata") or {}
    return (metadata.get("finalizers") or []) if metadata.get("deletionTimestamp") else None


async def test_a_worker_killed_between_the_clouds_answer_and_its_recording_launches_nothing_twice(
    ground: Ground,
) -> None:
    """DUR-1: the effect has happened, the answer is held back, the worker dies with it."""
    ground.world({"fail": [{"op": "CreateFleet", "answer": "late", "delay": 8, "times": 1}]})
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


async def test_deleting_a_node_and_deleting_a_nodeclaim_end_in_the_same_termination(ground: Ground) -> None:
    by_node, by_claim = await settle(ground, 2)
    since = ground.audit.end()

    await ground.delete("Node", by_node["status"]["nodeName"])
    await ground.delete("NodeClaim", by_claim["metadata"]["name"])

    for claim in (by_node, by_claim):
        identity = claim_id(claim)
        run = await ground.until(partial(_termination, ground, identity), 60, "its TerminateNode runs")
        assert await ground.result(identity, run, 120) == "terminated"
        await ground.until(partial(gone, ground, claim), 30, "its claim is gone")
        assert await ground.node(claim["status"]["nodeName"]) is None
        [instance] = await ground.instances_of(claim["metadata"]["uid"])
        assert instance["state"] == "terminated"
    evicted = [e for e in ground.worker_calls(since) if e.subresource == "eviction" and e.code == 201]
    assert len({e.name for e in evicted}) == 2, "both pods were evicted, neither was cut off"
    await ground.until(lambda: ground.settled(2), 90, "both pods run on other nodes")


async def _termination(ground: Ground, identity: str) -> str:
    """The run of that id's TerminateNode, running or ended."""
    run, kind, _ = await ground.run_of(identity)
    return run if kind == "TerminateNode" else ""


async def test_a_cancel_before_the_delete_gives_everything_back(ground: Ground) -> None:
    drifted, replacement = await a_slow_replacement(ground)
    node = drifted["status"]["nodeName"]
    identity = owner_of(drifted)
    run = await ground.runs_as(identity, "DisruptNodes")
    await ground.apply(node_pool())

    code, said = await ground.dovetail("cancel", node, "--reason", "changed our mind")
    assert code == 0, said

    record = await ground.result(identity, run)
    assert (record["outcome"], record["message"]) == ("cancelled", "changed our mind")
    assert record["by"], "the command says who asked"
    await ground.until(lambda: gone(ground, replacement), 90, "the replacement is given back")
    kept = await ground.node(node)
    assert kept is not None and not is_tainted(kept)
    assert await ground.running_pods() == 1
    await ground.until(lambda: _only(ground, drifted), 60, "one instance is left")
    await ground.assert_nothing_tainted_or_leaked()
    await ground.assert_one_instance_per_claim()


async def _only(ground: Ground, claim: Json) -> bool:
    return await ground.live() == [claim["status"]["providerID"].rsplit("/", 1)[-1]]


async def test_a_cancel_after_the_delete_is_refused_and_answered(ground: Ground) -> None:
    drifted, replacement = await a_slow_replacement(ground)
    node = drifted["status"]["nodeName"]
    identity = owner_of(drifted)
    run = await ground.runs_as(identity, "DisruptNodes")
    await ground.apply(no_eviction())
    boot(ground, replacement)

    async def deleting() -> bool:
        claim = await ground.claim(drifted["metadata"]["name"])
        return claim is not None and "deletionTimestamp" in claim["metadata"]

    await ground.until(deleting, 90, "the drifted node's claim is deleted")
    code, said = await ground.dovetail("cancel", node, "--reason", "too late")
    assert code == 1 and "too late" in said, said
    await ground.client.get_workflow_handle(identity).signal("cancel", "too late")

    async def answered() -> bool:
        events = (await ground.api.get("/api/v1/events")).body.get("items") or []
        reasons = [e["reason"] for e in events if e["involvedObject"].get("name") == node]
        return "DisruptionCancelTooLate" in reasons

    await ground.until(answered, 60, "an Event on the node says that it was too late")
    await ground.delete("PodDisruptionBudget", "web")
    record = await ground.result(identity, run, 120)
    assert record["outcome"] == "done"
    assert await gone(ground, drifted)


async def test_pods_move_on_when_the_preferred_pool_has_no_capacity(ground: Ground) -> None:
    first = node_pool(instance_type="c5.xlarge")
    first["metadata"]["name"] = "preferred"
    first["spec"]["weight"] = 10
    ground.world({"ice": [{"instanceType": "c5.xlarge"}]})
    await ground.apply(first)

    await settle(ground, 2)

    types = [n["metadata"]["labels"][names.INSTANCE_TYPE] for n in await ground.nodes()]
    assert types == ["m5.xlarge", "m5.xlarge"]
    refused = [c for c in ground.cloud.calls("CreateFleet") if not c.get("instances") and "c5.xlarge" in json.dumps(c)]
    assert refused, "the preferred pool was tried"
    await ground.assert_one_instance_per_claim()


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
