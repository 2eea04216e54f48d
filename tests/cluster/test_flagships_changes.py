"""What the guides promise of a change of nodes: roll-outs, the breaker, rates, kills, what is up to date, and how often
a pod moves. All scenes are played beside each other on one plane, on whose worker a kill falls while they run."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time
from testbed.up import NODE_CLASS, NODE_CLASS_REF
from tests.cluster.flagships.corner import Corner, of_guide
from tests.cluster.flagships.wave import scene
from tests.system.test_asked_gates import BAD, GOOD, Speaks, speaking
from worlds.cluster.costs import start_worker
from worlds.cluster.ground import Ground
from worlds.cluster.objects import owner_of
from worlds.cluster.timeline import Timeline

pytestmark = pytest.mark.cluster

BEFORE: Final = "ami-0a12023a"  # images of the cloud
AFTER: Final = "ami-0a12023e"
SAYS: list[Speaks] = []  # the Prometheus of the worker's settings
SETTINGS: dict[str, str] = {"BATCH_MAX_DURATION": "5s"}  # nominations last half as long
GUIDE: Final = "roll-outs.md"


@asynccontextmanager
async def setting(ground: Ground) -> AsyncIterator[None]:
    """A worker that knows a Prometheus."""
    async with speaking() as says:
        SAYS[:] = [says]
        SETTINGS["DOVETAIL_PROMETHEUS_URL"] = says.url
        start_worker(ground, **SETTINGS)
        try:
            yield
        finally:
            ground.ensure_workers(0)


def class_of(corner: Corner, image: str) -> Json:
    """A NodeClass of the scene's own, with that image."""
    spec = {**NODE_CLASS["spec"], "amiSelectorTerms": [{"id": image}], "amiFamily": "AL2023"}
    return {**NODE_CLASS, "metadata": {"name": corner.name}, "spec": spec}


async def of_one_image(corner: Corner, pods: int) -> set[str]:
    """That many pods, each on a node of the image of before. The NodeClaims."""
    pool = corner.pool(template={"nodeClassRef": {**NODE_CLASS_REF, "name": corner.name}})
    await corner.apply(class_of(corner, BEFORE), pool, corner.workload(pods))
    await corner.settle(pods, pods)
    return {claim["metadata"]["name"] for claim in await corner.claims()}


async def place(corner: Corner) -> tuple[str, str, str]:
    """Of its NodeRollout: name, step and state."""
    found = (await corner.ground.api.get("/apis/dovetail.sh/v1alpha1/noderollouts")).body["items"]
    for each in found:
        if each["spec"]["nodePool"] == corner.name:
            step = (each.get("status") or {}).get("step") or {}
            return each["metadata"]["name"], step.get("name", ""), step.get("state", "")
    return "", "", ""


async def is_at(corner: Corner, *wanted: str) -> bool:
    return (await place(corner))[1:] == wanted


@scene
async def test_a_change_reaches_one_node_is_judged_and_approved_and_then_reaches_all(corner: Corner) -> None:
    """The policy of the guide makes the roll-out; the gate is an error rate; a person approves."""
    [says] = SAYS
    old = await of_one_image(corner, 3)
    careful = of_guide(GUIDE, "DisruptionPolicy", "careful")["spec"]["rollout"]
    careful["steps"][0]["soak"], careful["steps"][1]["soak"] = "20s", "0s"
    query = {"expr": "max(checkout_errors)", "max": "0.01", "every": "15s"}
    careful["gates"] = [{"name": "slo", "query": query}]
    await corner.apply(corner.policy(rollout=careful))
    await corner.until(lambda: understood(corner), 60, "the policy is understood")
    await corner.apply(class_of(corner, AFTER))
    await corner.until(lambda: is_at(corner, "canary", "Soaking"), 180, "the canary soaks")
    says.errors = BAD
    name = (await place(corner))[0]
    await corner.says("gate slo: Failing, 0.5 is more than 0.01", "rollout", "status", name)
    await corner.until(lambda: is_at(corner, "canary", "Judging"), 60, "the step is held although its nodes are ready")
    await corner.until(partial(stalled, corner, name), 60, "it says that a person is needed")
    assert (await corner.running("image")).count(AFTER) == 1
    says.errors = GOOD

    await corner.until(lambda: is_at(corner, "canary", "Awaiting"), 180, "a person is asked once it is well again")
    await corner.until(lambda: corner.settled(3, 3), 60, "the node that the canary replaced is gone")
    assert await corner.running("image") == [BEFORE, BEFORE, AFTER]
    code, said = await corner.asked("status", "--check")
    assert code == 4 and f"dovetail rollout approve {name}" in said, said
    kept = sorted(await corner.left(old))
    held = next(c for c in await corner.claims() if c["metadata"]["name"] in kept)
    assert f"step rest (2 of 2) of NodeRollout {name}" in await corner.dovetail("explain", "node", node_of(held))
    behind = await corner.condition("ec2nodeclass", "NodesUpToDate")
    assert (behind["status"], behind["message"].partition(" nodes")[0]) == ("False", "1/3"), behind

    await corner.dovetail("rollout", "approve", name, "--yes")
    await corner.kubectl("wait", f"ec2nodeclass/{corner.name}", "--for=condition=NodesUpToDate", "--timeout=6m")
    assert await corner.running("image") == [AFTER] * 3 and not await corner.left(old)
    await corner.until(lambda: is_at(corner, "rest", "Complete"), 60, "it is complete")
    assert "canary: passed after" in await corner.dovetail("rollout", "history", name)


async def stalled(corner: Corner, name: str) -> bool:
    return (await corner.condition("noderollout", "Stalled", name)).get("status") == "True"


async def understood(corner: Corner) -> bool:
    return (await corner.condition("disruptionpolicy", "Ready")).get("status") == "True"


def node_of(claim: Json) -> str:
    return str(claim["status"]["nodeName"])


@scene
async def test_a_bad_image_is_taken_back_from_the_nodes_that_have_it(corner: Corner) -> None:
    """The NodeRollout of the guide, with the lines of "Stable and rollback"."""
    old = await of_one_image(corner, 2)
    rollout = of_guide(GUIDE, "NodeRollout", "new-image")
    back = {"nodePool": corner.name, "newLaunches": "Stable", "onFailure": "RollBack"}
    born = max(parse_time(c["metadata"]["creationTimestamp"]) for c in await corner.claims())
    await corner.until(lambda: passed(born + 1), 10, "the nodes are older than the roll-out by a whole second")
    await corner.apply({**rollout, "metadata": {"name": corner.name}, "spec": {**rollout["spec"], **back}})
    await corner.apply(class_of(corner, AFTER))
    await corner.until(lambda: is_at(corner, "canary", "Soaking"), 180, "the canary soaks")
    await corner.settle(2, 2)
    assert await corner.running("image") == [BEFORE, AFTER]
    await corner.apply(corner.workload(3))
    await corner.settle(3, 3)
    assert await corner.running("image") == [BEFORE, BEFORE, AFTER], "a pod that came meanwhile has the image of before"

    assert "newest first" in await corner.dovetail("rollout", "abort", corner.name, "--back")
    await corner.until(lambda: is_at(corner, "canary", "Failed"), 180, "it has gone back")
    await corner.settle(3, 3)
    assert await corner.running("image") == [BEFORE] * 3
    on_nodes = {claim["status"]["imageID"] for claim in await corner.claims()}
    assert on_nodes == {BEFORE} and await corner.left(old)
    await corner.until(lambda: corner.events("TargetRefused"), 60, "an Event says that the target is refused")
    blocked = await corner.condition("nodepool", "NodesUpToDate")
    assert (blocked["status"], blocked["reason"]) == ("False", "RolloutBlocked")


async def passed(moment: float) -> bool:
    return time.time() >= moment


@scene
async def test_a_breaker_opens_by_itself_and_a_person_closes_it(corner: Corner) -> None:
    """The first replacement does not stay ready: the other node, which a person lets go then, stays all the same."""
    budget: Json = {"disruption": {"budgets": [{"nodes": "1"}]}}
    await corner.apply(corner.policy(breaker={"failures": 1, "first": "1h"}), corner.pool(**budget), corner.workload(2))
    await corner.settle(2, 2)
    old = {claim["metadata"]["name"] for claim in await corner.claims()}
    kept = (await corner.claims())[0]
    spared = (f"node/{node_of(kept)}", f"{names.DO_NOT_DISRUPT}=true")
    await corner.kubectl("annotate", *spared)
    await corner.apply(corner.pool("green", **budget))

    async def replaced() -> Json | None:
        new = [c for c in await corner.claims() if c["metadata"]["name"] not in old]
        return new[0] if len(await corner.left(old)) == 1 and await corner.settled(2, 2) and new else None

    new = await corner.until(replaced, 180, "one node is replaced")
    assert new is not None
    await corner.ground.hear(node_of(new), alive=False)
    try:
        told = await corner.until(lambda: corner.events("ReplacementsHeld"), 60, "its breaker opens")
    finally:
        await corner.ground.hear(node_of(new), alive=True)
    assert "1 replacements for Drifted were not ready in time or did not stay so" in told[0]["message"]
    await corner.kubectl("annotate", spared[0], f"{names.DO_NOT_DISRUPT}-")
    await corner.says("1 replacements for Drifted", "explain", "node", node_of(kept))
    await corner.says("1 replacements for Drifted", "status")
    assert await corner.left(old) == {kept["metadata"]["name"]}
    assert kept["metadata"]["name"] not in Timeline(corner.calls()).marked()

    await corner.dovetail("resume", "--pool", corner.name)
    await corner.until(partial(all_gone, corner, old), 180, "the other one follows")
    await corner.settle(2, 2)
    noted = (await corner.object("nodepool"))["metadata"]["annotations"].get(names.BREAKER, "")
    assert '"opened"' not in noted, "it is closed"
    assert len(corner.made()) == 4, "two nodes, and one replacement for each"


async def all_gone(corner: Corner, old: set[str]) -> bool:
    return not await corner.left(old)


@scene
async def test_of_two_drifted_nodes_one_a_minute_begins_to_leave(corner: Corner) -> None:
    await corner.apply(corner.policy(rates=[{"nodes": "1", "per": "1m", "reasons": ["Drifted"]}]))
    await corner.apply(corner.pool(), corner.workload(2))
    await corner.settle(2, 2)
    old = {claim["metadata"]["name"] for claim in await corner.claims()}
    await corner.apply(corner.pool("green"))

    async def one_left() -> list[str]:
        left = sorted(await corner.left(old))
        return left if len(left) == 1 else []

    [kept] = await corner.until(one_left, 120, "one has left")
    claim = await corner.claim(kept)
    assert claim is not None and not owner_of(claim)
    await corner.says(f"by DisruptionPolicy {corner.name}: rates[0]", "explain", "node", node_of(claim))
    [taken] = (await corner.object("disruptionpolicy"))["status"]["rates"]
    assert (taken["nodePool"], taken["begun"], taken["allowed"]) == (corner.name, 1, 1)
    await corner.until(partial(all_gone, corner, old), 180, "the other one follows")
    first, second = sorted(Timeline(corner.calls()).marked()[name] for name in old)
    assert second - first >= 60.0


@scene
async def test_a_worker_killed_in_mid_disruption_costs_no_instance_and_no_step(corner: Corner) -> None:
    """DUR-1, DIS-160."""
    await corner.apply(corner.pool(), corner.workload(2))
    await corner.settle(2, 2)
    old = {claim["metadata"]["name"] for claim in await corner.claims()}
    ground = corner.ground
    await corner.apply(corner.pool("green"))

    async def begun() -> bool:
        return len(await corner.claims()) > 2

    await corner.until(begun, 120, "a replacement is made")
    owners = {owner_of(claim) for claim in await corner.claims() if owner_of(claim)}
    assert owners, "a disruption is under way"
    ground.kill_workers()
    start_worker(ground, **SETTINGS)
    for owner in owners:
        assert (await ground.result(owner, "", 180))["outcome"] == "done"
    await corner.until(partial(all_gone, corner, old), 180, "both nodes are replaced")
    await corner.settle(2, 2)
    assert len(corner.made()) == 4 and len(await corner.instances()) == 4, "one replacement and one instance for each"
    assert len(corner.evictions()) == 2


@scene
async def test_each_pod_moves_once_and_the_pool_says_when_all_is_up_to_date(corner: Corner) -> None:
    """Two nodes, each with a pod and room for another one, go one by one: the first one's pod gets a new node, and not
    the room on the node that leaves next. That has room for both."""
    types = ("m5.2xlarge",)
    budget: Json = {"disruption": {"budgets": [{"nodes": "1"}]}}
    await corner.apply(corner.pool(types=types, **budget), corner.workload(2, "4", name="filler"))
    await corner.settle(2, 2)
    await corner.apply(corner.workload(2))
    await corner.settle(4, 2)
    await corner.kubectl("delete", "deployment", "filler", "-n", corner.name)
    await corner.settle(2, 2)
    assert len({pod["spec"]["nodeName"] for pod in await corner.pods()}) == 2
    old = {claim["metadata"]["name"] for claim in await corner.claims()}
    await corner.apply(corner.pool("green", types=types, **budget))
    waits = ("--for=condition=NodesUpToDate=false", "--timeout=2m")
    await corner.kubectl("wait", f"nodepool/{corner.name}", *waits)
    await corner.kubectl("wait", f"nodepool/{corner.name}", "--for=condition=NodesUpToDate", "--timeout=6m")
    assert not await corner.left(old)
    await corner.settle(2)
    assert len(corner.evictions()) == 2, "each pod has moved once"
