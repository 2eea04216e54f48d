"""What happens to a node, from a shortage before its launch to its end, a cancel, a warning and a class that is taken
away. The scenes are played beside each other: each has types of its own where it makes one scarce, warned or slow,
so that nothing of it reaches the next. What kills workers is in test_system.py."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import pytest

from dovetail.model import names
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.values.json import Json
from testbed.plane import AuditEntry
from testbed.up import NODE_CLASS, NODE_CLASS_REF
from tests.cluster.flagships.corner import ALL, Corner
from tests.cluster.flagships.wave import scene
from tests.cluster.system.scenes import NEVER, boot, gone
from worlds.cluster.ground import Ground
from worlds.cluster.objects import claim_id, has_condition, is_tainted, no_eviction, owner_of

pytestmark = pytest.mark.cluster

CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
EMPTY: Final[Json] = {**ALL, "consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"}


@asynccontextmanager
async def setting(ground: Ground) -> AsyncIterator[None]:
    """Rules of scarce and slow types are added one by one; afterwards there is none."""
    ground.world({"ice": [], "bootSeconds": []})
    ground.ensure_workers()
    try:
        yield
    finally:
        ground.world({"ice": [], "bootSeconds": 0})
        ground.ensure_workers(0)


def rule(corner: Corner, kind: str, **said: object) -> None:
    """One more rule of the cloud, for a type that only this scene uses."""
    corner.ground.cloud.control("POST", f"rules/{kind}", [said])


def plenty(corner: Corner, instance_type: str) -> None:
    """No rule makes that type scarce any more."""
    left = [
        each for each in corner.ground.cloud.control("GET", "world")["ice"] if each["instanceType"] != instance_type
    ]
    corner.ground.world({"ice": left})


def moment(entries: list[AuditEntry], what: str) -> str:
    """When the first of them was asked."""
    assert entries, f"not in the audit log: {what}"
    return min(entry.time for entry in entries)


async def is_over(corner: Corner) -> bool:
    """No claim, no node and no instance of the scene is left."""
    left = [each for each in await corner.instances() if each["state"] != "terminated"]
    return not left and not await corner.claims() and not await corner.nodes()


# Ends


@scene
async def test_a_deployment_gets_nodes_and_scaled_to_zero_they_leave_nothing_behind(corner: Corner) -> None:
    await corner.apply(corner.pool(disruption=EMPTY), corner.workload(20, "1"))
    await corner.settle(20)
    claims, ground = await corner.claims(), corner.ground
    launched = {c["metadata"]["uid"]: await ground.instances_of(c["metadata"]["uid"]) for c in claims}

    await corner.kubectl("scale", "deployment", "web", "-n", corner.name, "--replicas=0")
    await corner.until(partial(is_over, corner), 180, "no claim, no node and no instance is left")

    calls = [entry for entry in corner.calls() if entry.code < 300]
    ends = ground.cloud.calls("TerminateInstances")
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
        ended = [c for c in ends if instance["id"] in json.dumps(c["input"])]
        assert ended, f"{instance['id']} was not terminated by a call"
        drifted = [e.name for e in of_claim if has_condition(e.response or {}, names.DRIFTED)]
        assert drifted == [], "nothing was changed, so no node may have drifted"


def _finalizers(entry: AuditEntry) -> list[str] | None:
    """The finalizers that a write to a leaving claim has left; None where the claim is not leaving."""
    metadata = (entry.response or {}).get("metadata") or {}
    return (metadata.get("finalizers") or []) if metadata.get("deletionTimestamp") else None


@scene
async def test_deleting_a_node_and_deleting_a_nodeclaim_end_in_the_same_termination(corner: Corner) -> None:
    await corner.apply(corner.pool(), corner.workload(2))
    await corner.settle(2, 2)
    by_node, by_claim = await corner.claims()
    ground = corner.ground

    await corner.kubectl("delete", "node", by_node["status"]["nodeName"], "--wait=false")
    await corner.kubectl("delete", "nodeclaim", by_claim["metadata"]["name"], "--wait=false")

    for claim in (by_node, by_claim):
        identity = claim_id(claim)
        run = await corner.until(partial(_termination, ground, identity), 60, "its TerminateNode runs")
        assert await ground.result(identity, run, 120) == "terminated"
        await corner.until(partial(gone, ground, claim), 30, "its claim is gone")
        assert await ground.node(claim["status"]["nodeName"]) is None
        [instance] = await ground.instances_of(claim["metadata"]["uid"])
        assert instance["state"] == "terminated"
    assert len(set(corner.evictions())) == 2, "both pods were evicted, neither was cut off"
    await corner.settle(2, 2)


async def _termination(ground: Ground, identity: str) -> str:
    """The run of that id's TerminateNode, running or ended."""
    run, kind, _ = await ground.run_of(identity)
    return run if kind == "TerminateNode" else ""


# Cancels


async def a_slow_replacement(corner: Corner, slow: str) -> tuple[Json, Json]:
    """A drifted node of that type is tainted and its replacement never boots. Both claims."""
    await corner.apply(corner.pool(types=(slow,)), corner.workload(1, "1"))
    await corner.settle(1, 1)
    [drifted] = await corner.claims()
    rule(corner, "bootSeconds", instanceType=slow, seconds=NEVER)
    await corner.apply(corner.pool("green", types=(slow,)))

    async def waits() -> list[Json]:
        claims = await corner.claims()
        marked = [c for c in claims if owner_of(c)]
        launched = [c for c in claims if not owner_of(c) and has_condition(c, names.LAUNCHED)]
        return [*marked[:1], *launched[:1]] if marked and launched and await corner.tainted() else []

    found = await corner.until(waits, 120, "the drifted node is tainted and its replacement launched")
    assert found[0]["metadata"]["name"] == drifted["metadata"]["name"]
    return found[0], found[1]


@scene
async def test_a_cancel_before_the_delete_gives_everything_back(corner: Corner) -> None:
    slow, ground = "m5.2xlarge", corner.ground
    drifted, replacement = await a_slow_replacement(corner, slow)
    node = drifted["status"]["nodeName"]
    identity = owner_of(drifted)
    run = await ground.runs_as(identity, "DisruptNodes")
    await corner.apply(corner.pool(types=(slow,)))

    await corner.dovetail("cancel", node, "--reason", "changed our mind")

    record = await ground.result(identity, run)
    assert (record["outcome"], record["message"]) == ("cancelled", "changed our mind")
    assert record["by"], "the command says who asked"
    await corner.until(lambda: gone(ground, replacement), 90, "the replacement is given back")
    kept = await ground.node(node)
    assert kept is not None and not is_tainted(kept)
    assert await corner.settled(1, 1)
    only = [drifted["status"]["providerID"].rsplit("/", 1)[-1]]

    async def alone() -> bool:
        return [each["id"] for each in await corner.instances() if each["state"] != "terminated"] == only

    await corner.until(alone, 60, "one instance is left")


@scene
async def test_a_cancel_after_the_delete_is_refused_and_answered(corner: Corner) -> None:
    ground = corner.ground
    drifted, replacement = await a_slow_replacement(corner, "m5.large")
    node = drifted["status"]["nodeName"]
    identity = owner_of(drifted)
    run = await ground.runs_as(identity, "DisruptNodes")
    budget = no_eviction()
    await corner.apply({**budget, "metadata": {"name": "web", "namespace": corner.name}})
    boot(ground, replacement)

    async def deleting() -> bool:
        claim = await corner.claim(drifted["metadata"]["name"])
        return claim is not None and "deletionTimestamp" in claim["metadata"]

    await corner.until(deleting, 90, "the drifted node's claim is deleted")
    code, said = await corner.asked("cancel", node, "--reason", "too late")
    assert code == 1 and "too late" in said, said
    await ground.client.get_workflow_handle(identity).signal("cancel", "too late")

    async def answered() -> bool:
        told = await corner.events("DisruptionCancelTooLate")
        return node in [event["involvedObject"].get("name") for event in told]

    await corner.until(answered, 60, "an Event on the node says that it was too late")
    await corner.kubectl("delete", "poddisruptionbudget", "web", "-n", corner.name)
    record = await ground.result(identity, run, 120)
    assert record["outcome"] == "done"
    assert await gone(ground, drifted)


# Shortages


@scene
async def test_pods_move_on_when_the_preferred_pool_has_no_capacity(corner: Corner) -> None:
    scarce = "c5.xlarge"
    rule(corner, "ice", instanceType=scarce)
    preferred = corner.pool(types=(scarce,))
    preferred["metadata"]["name"] = f"{corner.name}-first"
    preferred["spec"]["weight"] = 10
    either = corner.workload(2)
    either["spec"]["template"]["spec"]["nodeSelector"] = {"colour": corner.name}
    pools = [preferred, corner.pool()]
    for pool in pools:
        pool["spec"]["template"]["metadata"]["labels"]["colour"] = corner.name
    await corner.apply(*pools, either)
    try:
        await corner.settle(2, 2)
        types = [node["metadata"]["labels"][names.INSTANCE_TYPE] for node in await corner.nodes()]
        assert types == ["m5.xlarge", "m5.xlarge"]
        calls = corner.ground.cloud.calls("CreateFleet")
        refused = [call for call in calls if not call.get("instances") and scarce in json.dumps(call)]
        assert refused, "the preferred pool was tried"
    finally:
        await corner.kubectl("delete", "nodepool", preferred["metadata"]["name"], "--wait=false")


def flexible_pool(corner: Corner, instance_type: str) -> Json:
    """Spot where there is any, on-demand else."""
    pool = corner.pool(types=(instance_type,))
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    requirements[0] = {"key": names.CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"]}
    return pool


@scene
async def test_a_shortage_of_spot_in_two_zones_is_avoided_and_one_everywhere_falls_back_to_on_demand(
    corner: Corner,
) -> None:
    scarce = "c5.large"
    for zone in "ab":
        rule(corner, "ice", instanceType=scarce, capacityType="spot", zone=f"us-west-2{zone}")
    await corner.apply(flexible_pool(corner, scarce), corner.workload(1, "1500m"))
    await corner.settle(1)
    running = [each for each in await corner.instances() if each["state"] == "running"]
    assert [(each["capacityType"], each["zone"]) for each in running] == [("spot", "us-west-2c")]

    rule(corner, "ice", instanceType=scarce, capacityType="spot")
    await corner.kubectl("scale", "deployment", "web", "-n", corner.name, "--replicas=2")
    await corner.until(lambda: corner.settled(2), 90, "the second pod runs although spot is short everywhere")
    assert await corner.running("capacityType") == ["on-demand", "spot"]


@scene
async def test_a_pod_with_nowhere_else_to_go_asks_again_before_the_shortage_is_forgotten(corner: Corner) -> None:
    """Decision 240: others wait beside it, and follow as soon as one claim has found capacity."""
    scarce = "m5d.large"
    rule(corner, "ice", instanceType=scarce)
    await corner.apply(corner.pool(types=(scarce,)), corner.workload(2, "1"))

    async def refused() -> bool:
        return bool(corner.made()) and not await corner.claims()

    await corner.until(refused, 60, "the claims that were refused are gone")
    plenty(corner, scarce)
    await corner.until(lambda: corner.settled(2), 150, "both pods run")

    assert any(memory_of(claim["metadata"]["annotations"]).asks_again for claim in await corner.claims())


# What AWS takes


@scene
async def test_a_spot_warning_replaces_its_node_and_no_other(corner: Corner) -> None:
    await corner.apply(flexible_pool(corner, "r5.large"), corner.workload(2, "1500m"))
    await corner.settle(2, 2)
    warned, kept = await corner.claims()
    instance = warned["status"]["providerID"].rpartition("/")[2]
    await corner.ground.warn(warned)

    async def replaced() -> bool:
        return not await corner.left([warned["metadata"]["name"]]) and await corner.settled(2, 2)

    await corner.until(replaced, 120, "the warned node is replaced")
    assert await corner.left([kept["metadata"]["name"]])
    assert instance not in await corner.ground.live()


@scene
async def test_a_deleted_class_waits_for_its_claims_and_leaves_nothing_behind(corner: Corner) -> None:
    own = f"{CLASSES}/{corner.name}"
    ground = corner.ground
    pool = corner.pool(template={"nodeClassRef": {**NODE_CLASS_REF, "name": corner.name}})
    await corner.apply({**NODE_CLASS, "metadata": {"name": corner.name}}, pool, corner.workload(1))
    await corner.settle(1, 1)
    [claim] = await corner.claims()
    profile = (await ground.api.get(own)).body["status"]["instanceProfile"]
    since = ground.cloud.control("GET", "ledger/last")
    await corner.kubectl("delete", "ec2nodeclass", corner.name, "--wait=false")

    async def waits() -> bool:
        told = await corner.events("WaitingOnNodeClaimTermination")
        return corner.name in [event["involvedObject"]["name"] for event in told]

    await corner.until(waits, 60, "the class says whom it waits for")
    assert await corner.claim(claim["metadata"]["name"]) is not None
    assert (await ground.api.get(own)).status == 200
    await corner.kubectl("delete", "deployment", "web", "-n", corner.name)
    await corner.kubectl("delete", "nodepool", corner.name, "--wait=false")

    async def away() -> bool:
        return (await ground.api.get(own)).status == 404 and await is_over(corner)

    await corner.until(away, 180, "the class and everything of it are gone")
    calls = [call for call in ground.cloud.calls(since=since) if not call["error"]]
    ended = {call["input"]["InstanceProfileName"] for call in calls if call["op"] == "DeleteInstanceProfile"}
    assert ended == {profile}
    assert [call for call in calls if call["op"] == "DeleteLaunchTemplate"]
