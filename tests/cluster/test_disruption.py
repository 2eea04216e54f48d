"""Does disruption hold on real servers: every reason, budgets, what holds a node, replacements that fail, kills?

What is asserted stands in the API server's audit log and in its objects. Each pool has pods of its own, so that several
stories go on side by side on one plane. Bounds are what a loaded machine needs; the times that the product promises are
measured by `python -m acceptance.bench.live`.
"""

import asyncio
import time
from functools import partial

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time
from dovetail.termination.announced import DRAINING, PLANNED
from testbed.plane import AuditEntry
from tests.cluster.system.scenes import NEVER, boot, gone
from worlds.cluster.fleets import fleet_pool, most_at_once, owners_in, pool_claims, workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import DEPLOYMENTS, has_condition, is_tainted, no_eviction, owner_of
from worlds.cluster.timeline import Timeline

pytestmark = pytest.mark.cluster


NOMINATED_SECONDS = 21.0

ALL: Json = {"budgets": [{"nodes": "100%"}]}
UNDERUTILISED: Json = {**ALL, "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}


async def pods_and_nodes(ground: Ground, pods: int, nodes: int) -> bool:
    """Exactly that many pods run on exactly that many nodes."""
    return len(await ground.claims()) == nodes and await ground.settled(pods)


async def test_an_empty_a_drifted_and_an_expired_node_each_go_through_their_workflow(ground: Ground) -> None:
    """DIS-63, DIS-70, and expiry with a replacement first where the pool asks for it."""
    empty = {**ALL, "consolidationPolicy": "WhenEmpty", "consolidateAfter": "1s"}
    first = {names.REPLACE_FIRST: "true"}
    for pool in (
        fleet_pool("empty", disruption=empty),
        fleet_pool("drifted", disruption=ALL),
        fleet_pool("expired", disruption=ALL, annotations=first, template={"expireAfter": "30s"}),
    ):
        await ground.apply(pool)
        await ground.apply(workload(pool["metadata"]["name"], pool["metadata"]["name"], 1))
    await ground.until(partial(pods_and_nodes, ground, 3, 3), 120, "three nodes with a pod each")
    nodes = {c["metadata"]["name"]: c["status"]["nodeName"] for c in await ground.claims()}
    since, old = ground.audit.end(), set(nodes)
    await ground.apply(fleet_pool("drifted", colour="green", disruption=ALL))
    await ground.api.delete(f"{DEPLOYMENTS}/empty")

    async def replaced() -> bool:
        left = {c["metadata"]["name"] for c in await ground.claims()}
        return not left & old and await ground.settled(2)

    await ground.until(replaced, 180, "the empty node is gone, the two others are replaced")

    entries = ground.worker_calls(since)
    owners = owners_in(entries)
    records = {claim: await ground.result(owner, "", 60) for claim, owner in owners.items() if claim in old}
    assert {claim.partition("-")[0]: record["reason"] for claim, record in records.items()} == {
        "empty": "Empty",
        "drifted": "Drifted",
        "expired": "Expired",
    }
    assert {record["outcome"] for record in records.values()} == {"done"}
    assert_in_order(entries, old, owners)
    assert_announced(entries, {node: claim.startswith("empty") for claim, node in nodes.items()})
    await ground.assert_one_instance_per_claim()


def assert_announced(entries: list[AuditEntry], nodes: dict[str, bool]) -> None:
    """TRM-46: a write for each phase of a Node's leaving, in this order. By node, whether no pod has to leave it."""
    said: dict[str, list[Json]] = {node: [] for node in nodes}
    for entry in entries:
        if (entry.resource, entry.subresource, entry.verb, entry.code) == ("nodes", "status", "patch", 200):
            conditions = (entry.request or {})["status"].get("conditions") or ()
            found = {c["type"]: c["status"] for c in conditions if c["type"] in (PLANNED, DRAINING, names.DRAINED)}
            said.setdefault(entry.name, []).extend([found] if found else [])
    marked, ended = {PLANNED: "True"}, {names.DRAINED: "True", DRAINING: "False"}
    begun = {DRAINING: "True", names.DRAINED: "False"}
    for node, is_empty in nodes.items():
        # What is deleted as soon as it is marked says nothing, but where its last pod is still ending.
        assert said[node] in ([[begun, ended], []] if is_empty else [[marked, begun, ended]]), node


def assert_in_order(entries: list[AuditEntry], old: set[str], owners: dict[str, str]) -> None:
    """DIS-196: mark, taint, replacement initialised, delete, drained, released; for each claim that went."""
    line = Timeline(entries)
    deleted, drained, released = line.deleted(), line.reached(names.DRAINED), line.released()
    ready = line.reached(names.INITIALIZED_CONDITION)
    plans = {name: plan_of(e) for e in line.writes if e.resource == "nodeclaims" and (name := created_name(e))}
    for claim in old:
        plan = owners[claim].rpartition("/")[2]
        made = [name for name, of in plans.items() if of == plan]
        assert all(ready[name] < deleted[claim] for name in made), f"{claim} was deleted before {made} was ready"
        assert line.marked()[claim] < deleted[claim] < drained[claim] < released[claim]


def created_name(entry: AuditEntry) -> str:
    """The name of the claim that the call made."""
    return str(((entry.response or {}).get("metadata") or {}).get("name", "")) if entry.verb == "create" else ""


def plan_of(entry: AuditEntry) -> str:
    """The plan that made a claim."""
    annotations = ((entry.response or {}).get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(names.PLAN, "")).partition("/")[0]


async def nominations_are_over(ground: Ground) -> bool:
    """DIS-20: a node that a pod has just come to is no candidate yet; two that are free at different times go apart."""
    now = time.time()
    started = [parse_time(p["status"]["startTime"]) for p in await ground.objects("Pod")]
    return all(now - at > NOMINATED_SECONDS for at in started)


@pytest.mark.soak
async def test_underutilised_nodes_go_one_by_one_and_several_for_one(ground: Ground) -> None:
    """DIS-96 to DIS-117: a large node becomes a small one; two nodes become one in a single command."""
    types = {"single": ("m5.large", "m5.2xlarge"), "multi": ("m5.large", "m5.xlarge")}
    for name in types:
        closed = {**UNDERUTILISED, "budgets": [{"nodes": "0"}]}
        await ground.apply(fleet_pool(name, types=types[name], disruption=closed))
    await ground.apply(workload("single-large", "single", 1, "5"))
    await ground.apply(workload("multi-large", "multi", 2, "2500m"))
    await ground.until(partial(pods_and_nodes, ground, 3, 3), 120, "the large pods run on three nodes")
    await ground.apply(workload("single-small", "single", 1, "500m"))
    await ground.apply(workload("multi-small", "multi", 2, "700m"))
    await ground.until(lambda: ground.settled(6), 120, "the small pods run beside them")
    before = {c["metadata"]["name"] for c in await ground.claims()}
    for name in ("single-large", "multi-large"):
        await ground.api.delete(f"{DEPLOYMENTS}/{name}")
    await ground.until(lambda: ground.settled(3), 60, "only the small pods are left")
    await ground.until(partial(nominations_are_over, ground), 60, "no pod came lately")
    since = ground.audit.end()
    for name in types:
        await ground.apply(fleet_pool(name, types=types[name], disruption=UNDERUTILISED))

    async def small() -> bool:
        used = [n["metadata"]["labels"][names.INSTANCE_TYPE] for n in await ground.nodes()]
        return used == ["m5.large", "m5.large"] and await ground.settled(3)

    await ground.until(small, 240, "each pool is left with one small node")

    owners = {claim: owner for claim, owner in owners_in(ground.worker_calls(since)).items() if claim in before}
    records = {owner: await ground.result(owner, "", 60) for owner in owners.values()}
    assert {record["reason"] for record in records.values()} == {"Underutilized"}
    assert sorted(len(record["deleted"]) for record in records.values()) == [1, 2]
    await ground.assert_one_instance_per_claim()


async def test_two_pools_obey_their_budgets_at_every_taint(ground: Ground) -> None:
    """DIS-49 to DIS-51, by the audit log: nodes that are not ready or leave count."""
    budgets = {"tight": ("1", 2), "loose": ("2", 4)}
    for name, (allowed, count) in budgets.items():
        await ground.apply(fleet_pool(name, disruption={"budgets": [{"nodes": allowed}]}))
        await ground.apply(workload(name, name, count))
    await ground.until(lambda: ground.settled(6), 150, "six pods, each with a node to itself")
    nodes = {pool: {c["status"]["nodeName"] for c in await pool_claims(ground, pool)} for pool in budgets}
    unready = sorted(nodes["loose"])[0]
    old = {c["metadata"]["name"] for c in await ground.claims() if c["status"]["nodeName"] != unready}
    await ground.hear(unready, alive=False)
    since = ground.audit.end()
    for name, (allowed, _) in budgets.items():
        await ground.apply(fleet_pool(name, colour="green", disruption={"budgets": [{"nodes": allowed}]}))

    async def replaced() -> bool:
        return not old & {c["metadata"]["name"] for c in await ground.claims()}

    await ground.until(replaced, 300, "all nodes but that one are replaced")
    await ground.hear(unready, alive=True)

    entries = ground.audit.entries(since)
    assert Timeline(entries).tainted().keys() >= (nodes["tight"] | nodes["loose"]) - {unready}
    assert most_at_once(entries, nodes["tight"], set()) == 1
    assert most_at_once(entries, nodes["loose"], {unready}) == 2


async def test_a_budget_and_a_protected_pod_hold_their_nodes_and_explain_says_so(ground: Ground) -> None:
    """DIS-41, DIS-43; once they are lifted the nodes go."""
    await ground.apply(fleet_pool("held", disruption=ALL))
    protected = {names.DO_NOT_DISRUPT: "true"}
    await ground.apply(workload("web", "held", 1))
    await ground.apply(workload("protected", "held", 1, annotations=protected))
    await ground.apply(no_eviction())
    await ground.until(partial(pods_and_nodes, ground, 2, 2), 120, "two nodes with a pod each")
    where = {p["metadata"]["labels"]["app"]: p["spec"]["nodeName"] for p in await ground.objects("Pod")}
    pods = {p["metadata"]["labels"]["app"]: p["metadata"]["name"] for p in await ground.objects("Pod")}
    await ground.apply(fleet_pool("held", colour="green", disruption=ALL))

    async def drifted() -> bool:
        return all(has_condition(c, names.DRIFTED) for c in await ground.claims())

    await ground.until(drifted, 60, "both have drifted")
    said = {app: (await ground.dovetail("explain", "node", node))[1] for app, node in where.items()}

    assert "Pdb prevents pod evictions (PodDisruptionBudget=[default/web])" in " ".join(said["web"].split())
    wanted = f'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/{pods["protected"]})'
    assert wanted in " ".join(said["protected"].split())
    assert not [n for n in await ground.nodes() if is_tainted(n)]

    await ground.delete("PodDisruptionBudget", "web")
    pod = f"/api/v1/namespaces/default/pods/{pods['protected']}"
    answer = await ground.api.patch(pod, {"metadata": {"annotations": {names.DO_NOT_DISRUPT: None}}})
    assert answer.status == 200

    async def both_left() -> bool:
        return not {n["metadata"]["name"] for n in await ground.nodes()} & set(where.values())

    await ground.until(both_left, 120, "both are replaced")


@pytest.mark.soak
async def test_a_replacement_that_never_joins_is_given_back_and_blocks_no_other(ground: Ground) -> None:
    """DIS-157, DIQ-24: its node is untainted, rests, and is tried again; the other one goes its way meanwhile."""
    await ground.apply(fleet_pool("web", disruption=ALL))
    await ground.apply(workload("web", "web", 2))
    await ground.until(partial(pods_and_nodes, ground, 2, 2), 120, "two nodes with a pod each")
    old = {c["metadata"]["name"]: c for c in await ground.claims()}
    ground.world({"neverJoin": [{"times": 1}]})
    await ground.apply(fleet_pool("web", colour="green", disruption=ALL))

    async def one_left() -> Json | None:
        claims = await ground.claims()
        left = [c for c in claims if c["metadata"]["name"] in old]
        return left[0] if len(left) == 1 and len(claims) == 3 else None

    stuck = await ground.until(one_left, 150, "one is replaced, the other waits for a replacement that never joins")
    assert stuck is not None
    owner = owner_of(stuck)
    [dead] = [c for c in await ground.claims() if not has_condition(c, names.INITIALIZED_CONDITION)]
    await ground.delete("NodeClaim", dead["metadata"]["name"])
    record = await ground.result(owner, "", 60)
    await ground.until(partial(gone, ground, dead), 60, "the dead replacement is given back")

    assert record["outcome"] == "failed"
    assert "was given up" in record["message"]
    kept = await ground.claim(stuck["metadata"]["name"])
    assert kept is not None
    assert names.REST in kept["metadata"]["annotations"]
    node = await ground.node(kept["status"]["nodeName"])
    assert node is not None
    assert not is_tainted(node)
    await ground.until(partial(gone, ground, stuck), 150, "it is tried again, and goes")
    await ground.until(partial(pods_and_nodes, ground, 2, 2), 60, "both pods run on new nodes")
    await ground.assert_one_instance_per_claim()


MOMENTS = ("marked", "created", "waiting", "deleted")


@pytest.mark.soak
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_kill_at_any_step_of_a_disruption_costs_no_instance(ground: Ground, moment: str) -> None:
    """DIS-160, DIQ-24: the same command goes on with the same replacement."""
    await ground.apply(fleet_pool("web", disruption=ALL))
    await ground.apply(workload("web", "web", 1))
    await ground.until(partial(pods_and_nodes, ground, 1, 1), 120, "a node with a pod")
    [old] = await ground.claims()
    ground.world({"bootSeconds": NEVER if moment == "waiting" else 2})
    since = ground.audit.end()
    await ground.apply(fleet_pool("web", colour="green", disruption=ALL))

    async def reached() -> bool:
        line = Timeline(ground.worker_calls(since))
        launched = [name for name in line.reached(names.LAUNCHED) if name != old["metadata"]["name"]]
        return bool(
            {"marked": line.marked(), "created": line.created(), "waiting": launched, "deleted": line.deleted()}[moment]
        )

    while not await reached():  # noqa: ASYNC110 (a file grows, which nothing announces)
        await asyncio.sleep(0.01)
    owner = owners_in(ground.worker_calls(since))[old["metadata"]["name"]]
    ground.kill_workers()
    for claim in await ground.claims():
        if moment == "waiting" and claim["metadata"]["name"] != old["metadata"]["name"]:
            boot(ground, claim)
    ground.world({"bootSeconds": 0})
    ground.ensure_workers()
    record = await ground.result(owner, "", 120)

    assert (record["outcome"], record["deleted"]) == ("done", [old["metadata"]["name"]])
    await ground.until(partial(pods_and_nodes, ground, 1, 1), 60, "the pod runs on the replacement")
    assert len(Timeline(ground.worker_calls(since)).created()) == 1, "one replacement, and no other instance"
    await ground.assert_one_instance_per_claim()
    await ground.assert_nothing_tainted_or_leaked()
