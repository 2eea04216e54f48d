"""Does every node end clean on real servers, whatever happens to its instance, its objects or its pods?

Examples of behaviour (BEH-rules) that are worth a real API server: instances that vanish at each phase, objects
deleted together, finalizers stripped, deadlines that force pods, tiers of a drain. What is asserted stands in the API
server's audit log, in its objects and in the cloud's ledger. Several stories go on side by side.
"""

import asyncio
import time
from datetime import datetime
from functools import partial

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.demo import PATHS
from testbed.plane import AuditEntry
from tests.cluster.system.scenes import NEVER, gone
from worlds.cluster.fleets import fleet_pool, pool_claims, workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import claim_id, has_condition, no_eviction
from worlds.cluster.timeline import moment

pytestmark = pytest.mark.cluster


HOLD = "dovetail.test/hold"
NO_NODE_WITHOUT_INSTANCE = 120.0
NO_INSTANCE_WITHOUT_CLAIM = 300.0


def instance_of(claim: Json) -> str:
    return str(claim["status"]["providerID"]).rpartition("/")[2]


async def end_instance(ground: Ground, claim: Json, *, said: bool) -> None:
    """The instance goes as if AWS had taken it, and AWS says so."""
    path = f"instances/{instance_of(claim)}"
    await asyncio.to_thread(ground.cloud.control, "PATCH", path, {"state": "terminated"})
    if said:
        notice = {"kind": "state", "state": "terminated"}
        await asyncio.to_thread(ground.cloud.control, "POST", f"{path}/interrupt", notice)


async def launched(ground: Ground, pool: str) -> Json | None:
    """The one claim of the pool, once its instance is known."""
    claims = await pool_claims(ground, pool)
    return claims[0] if len(claims) == 1 and "providerID" in claims[0].get("status", {}) else None


async def test_whatever_ends_an_instance_or_an_object_nothing_is_left_of_it(ground: Ground) -> None:
    """BEH-16, BEH-67, BEH-82, GCR-1 to GCR-3 and LIF-20: six ends of a node at once, each in a pool of its own."""
    pools = ("ready", "draining", "together", "stripped")
    for pool in pools:
        await ground.apply(fleet_pool(pool))
        await ground.apply(workload(pool, pool, 1))
    await ground.until(lambda: ground.settled(len(pools)), 150, "a pod runs in each pool")
    ground.world({"bootSeconds": NEVER})
    for pool in ("silent", "unjoined"):
        await ground.apply(fleet_pool(pool))
        await ground.apply(workload(pool, pool, 1))
    old: dict[str, Json] = {pool: (await pool_claims(ground, pool))[0] for pool in pools}
    for pool in ("silent", "unjoined"):
        found = await ground.until(partial(launched, ground, pool), 60, f"the claim of {pool} is launched")
        assert found is not None
        old[pool] = found
    ground.world({"bootSeconds": 0})
    held = no_eviction()
    held["spec"]["selector"]["matchLabels"] = {"app": "draining"}
    await ground.apply(held)
    since = ground.audit.end()
    await ground.delete("NodeClaim", old["draining"]["metadata"]["name"])
    await ground.until(partial(refused, ground, since), 60, "an eviction in mid-drain is refused")

    struck = time.time()
    for pool in ("ready", "draining", "silent"):
        # Only AWS's message ends an instance that never joined: an absence is left to liveness on purpose (GCR-2).
        await end_instance(ground, old[pool], said=pool == "silent")
    await ground.delete("NodeClaim", old["unjoined"]["metadata"]["name"])
    await asyncio.gather(
        ground.delete("Node", old["together"]["status"]["nodeName"]),
        ground.delete("NodeClaim", old["together"]["metadata"]["name"]),
    )
    name = old["stripped"]["metadata"]["name"]
    await ground.api.patch(f"{PATHS['NodeClaim']}/{name}", {"metadata": {"finalizers": None}})
    await ground.delete("NodeClaim", name)

    for pool in ("ready", "draining"):
        await ground.until(partial(no_node, ground, old[pool]), NO_NODE_WITHOUT_INSTANCE, f"the node of {pool} is gone")
    for claim in old.values():
        await ground.until(partial(gone, ground, claim), NO_INSTANCE_WITHOUT_CLAIM, "each old claim is gone")
        await ground.until(partial(ended, ground, claim), NO_INSTANCE_WITHOUT_CLAIM, "each old instance has ended")
    assert time.time() - struck < NO_INSTANCE_WITHOUT_CLAIM
    await ground.until(lambda: ground.settled(len(old)), 180, "each pod runs on another node")
    for (
        pool
    ) in pools:  # that of a claim without finalizers goes once its instance has ended, and the pods may run before
        await ground.until(partial(no_node, ground, old[pool]), NO_NODE_WITHOUT_INSTANCE, f"the node of {pool} is gone")
    await ground.assert_nothing_tainted_or_leaked()
    await ground.assert_one_instance_per_claim()


async def refused(ground: Ground, since: int) -> bool:
    """An eviction was refused by a budget."""
    return any(e.subresource == "eviction" and e.code == 429 for e in ground.worker_calls(since))


async def no_node(ground: Ground, claim: Json) -> bool:
    return await ground.node(claim["status"]["nodeName"]) is None


async def ended(ground: Ground, claim: Json) -> bool:
    return instance_of(claim) not in await ground.live()


async def test_a_deadline_forces_what_holds_a_node_in_time_for_its_own_grace(ground: Ground) -> None:
    """BEH-20, BEH-34, BEH-38, BEH-73: of 20 s of the node's the pod's own 8 s are kept."""
    await ground.apply(fleet_pool("held", template={"terminationGracePeriod": "20s"}))
    body = workload("web", "held", 1, annotations={names.DO_NOT_DISRUPT: "true"})
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 8
    await ground.apply(body)
    await ground.apply(no_eviction())
    await ground.until(lambda: ground.settled(1), 120, "the pod runs")
    [claim] = await ground.claims()
    since = ground.audit.end()

    await ground.delete("NodeClaim", claim["metadata"]["name"])
    await ground.until(partial(gone, ground, claim), 90, "the claim is gone")

    entries = ground.worker_calls(since)
    [deadline] = {text for text in (written_deadline(e) for e in entries) if text}
    forced = [e for e in entries if e.resource == "pods" and e.verb == "delete" and not e.subresource and e.code == 200]
    assert len(forced) == 1, "one pod, forced once"
    ahead = datetime.fromisoformat(deadline).timestamp() - moment(forced[0])
    assert 0 < ahead <= 8.5, f"forced {ahead:.1f} s before the deadline"
    assert not [e for e in entries if e.subresource == "eviction" and e.code == 201], "a protected pod is not evicted"


def written_deadline(entry: AuditEntry) -> str:
    """The deadline that a write puts on the claim."""
    annotations = ((entry.request or {}).get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(names.TERMINATION_DEADLINE, "")) if entry.resource == "nodeclaims" else ""


async def test_a_drain_takes_what_is_critical_last_and_leaves_foreign_nodes_alone(ground: Ground) -> None:
    """BEH-4, BEH-13; a node of no pool stays as it is."""
    foreign = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a-foreign-node", "labels": {"of": "none"}}}
    assert (await ground.api.post(PATHS["Node"], foreign)).status == 201
    slow = {"dovetail.test/shutdown-seconds": "2"}  # a tier that only terminates still holds the next
    for name, priority in (("plain", ""), ("critical", "system-cluster-critical")):
        body = workload(name, "tiers", 2, "500m", slow)
        if priority:
            body["spec"]["template"]["spec"]["priorityClassName"] = priority
        await ground.apply(body)

    async def all_wait() -> bool:
        return len(await ground.objects("Pod")) == 4

    await ground.until(all_wait, 60, "four pods wait")
    await ground.apply(fleet_pool("tiers"))  # now, so that one plan has all of them and one node takes them
    await ground.until(lambda: ground.settled(4), 120, "four pods run")
    [claim] = await ground.claims()
    tier_of = {p["metadata"]["name"]: p["metadata"]["labels"]["app"] for p in await ground.objects("Pod")}
    since = ground.audit.end()
    before = (await ground.api.get(f"{PATHS['Node']}/a-foreign-node")).body

    await ground.delete("Node", claim["status"]["nodeName"])
    await ground.until(partial(gone, ground, claim), 90, "the claim is gone")

    evicted = [(moment(e), tier_of[e.name]) for e in ground.worker_calls(since) if is_eviction(e) and e.name in tier_of]
    assert [tier for _, tier in sorted(evicted)] == ["plain", "plain", "critical", "critical"]
    # A pod whose containers have ended holds nothing any more: that its kubelet deletes it too comes a moment later.
    ended = [moment(e) for e in ground.audit.entries(since) if is_end(e) and tier_of.get(e.name) == "plain"]
    assert len(ended) == 2
    assert min(at for at, tier in evicted if tier == "critical") > max(ended), "the first tier had ended before"
    after = (await ground.api.get(f"{PATHS['Node']}/a-foreign-node")).body
    assert (after["spec"].get("taints"), after["metadata"].get("finalizers")) == (
        before["spec"].get("taints"),
        before["metadata"].get("finalizers"),
    )
    assert (await ground.delete("Node", "a-foreign-node")).status == 200


def is_eviction(entry: AuditEntry) -> bool:
    return entry.subresource == "eviction" and entry.code == 201


def is_end(entry: AuditEntry) -> bool:
    """Of a pod that is leaving, its kubelet writes the status once: that its containers have ended."""
    return (entry.resource, entry.subresource, entry.user, entry.code) == ("pods", "status", "kwok", 200)


@pytest.mark.soak
async def test_a_claim_outlives_whatever_holds_its_node(ground: Ground) -> None:
    """LIF-52, TRM-37: another controller's finalizer keeps the Node; its NodeClaim is there until it lets go."""
    await ground.apply(fleet_pool("held"))
    await ground.apply(workload("held", "held", 1))
    await ground.until(lambda: ground.settled(1), 120, "a pod runs")
    [claim] = await pool_claims(ground, "held")
    path = f"{PATHS['Node']}/{claim['status']['nodeName']}"
    ours = (await ground.api.get(path)).body["metadata"]["finalizers"]
    assert ours == [names.TERMINATION_FINALIZER]
    await ground.api.patch(path, {"metadata": {"finalizers": [*ours, HOLD]}})

    await ground.delete("NodeClaim", claim["metadata"]["name"])
    await ground.until(partial(held_by_others_alone, ground, claim), 120, "our finalizer is off the Node")
    waiting = await ground.until(partial(waits_for_its_node, ground, claim), 60, "the release waits")

    assert f"is held by the finalizer {HOLD}" in waiting
    left = await ground.claim(claim["metadata"]["name"])
    assert left is not None and left["metadata"]["finalizers"] == [names.TERMINATION_FINALIZER]
    assert has_condition(left, names.INSTANCE_TERMINATING)
    assert await ended(ground, claim)
    _, said = await ground.dovetail("explain", "node", claim["status"]["nodeName"])
    assert HOLD in said
    await ground.api.patch(path, {"metadata": {"finalizers": None}})

    await ground.until(partial(gone, ground, claim), 60, "the claim follows its Node")
    assert await ground.node(claim["status"]["nodeName"]) is None


async def held_by_others_alone(ground: Ground, claim: Json) -> bool:
    node = await ground.node(claim["status"]["nodeName"])
    return node is not None and node["metadata"]["finalizers"] == [HOLD]


async def waits_for_its_node(ground: Ground, claim: Json) -> str:
    """What Temporal shows of the step that releases the claim, once it has been tried twice."""
    described = (await ground.client.get_workflow_handle(claim_id(claim)).describe()).raw_description
    steps = [one for one in described.pending_activities if one.activity_type.name == "release_claim"]
    return next((one.last_failure.message for one in steps if one.attempt > 2), "")


async def test_a_pools_counters_and_conditions_follow_its_nodes(ground: Ground) -> None:
    """BEH-92, BEH-93, BEH-94: what stands in a pool's status."""
    await ground.apply(fleet_pool("counted"))
    await ground.apply(workload("counted", "counted", 2))
    await ground.until(lambda: ground.settled(2), 120, "two pods run")

    async def counted(nodes: int) -> bool:
        found = (await ground.api.get(f"{PATHS['NodePool']}/counted")).body.get("status", {})
        used = found.get("resources") or {}
        return (found.get("nodes", 0), used.get("cpu", "0")) == (nodes, str(4 * nodes))

    await ground.until(partial(counted, 2), 30, "two nodes of four cpus are counted")
    pool = (await ground.api.get(f"{PATHS['NodePool']}/counted")).body
    assert all(has_condition(pool, kind) for kind in ("Ready", "ValidationSucceeded", "NodeClassReady"))
    await ground.until(partial(is_healthy, ground, "counted"), 30, "two registrations show health")
    await ground.api.delete("/apis/apps/v1/namespaces/default/deployments/counted")
    await ground.until(partial(no_pods, ground), 60, "the pods are gone, so that none asks for a node again")
    for claim in await ground.claims():
        await ground.delete("NodeClaim", claim["metadata"]["name"])
    await ground.until(partial(counted, 0), 90, "no node is counted")


async def no_pods(ground: Ground) -> bool:
    return not await ground.objects("Pod")


async def is_healthy(ground: Ground, pool: str) -> bool:
    return has_condition((await ground.api.get(f"{PATHS['NodePool']}/{pool}")).body, "NodeRegistrationHealthy")
