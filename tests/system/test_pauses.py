"""Pauses and cancels by kubectl or the command line: on objects, whatever becomes of workers and Temporal.

What a person does with kubectl is a patch of an annotation; the command line runs as a process.
"""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from dovetail.messages.states import SchedulerState
from dovetail.messages.workflow_ids import scheduler_id
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time
from tests.system.beside import beside
from tests.waiting import until_answered
from worlds.patience import CROWDED
from worlds.stage.running import own_stage
from worlds.stage.stage import Stage, deployment, is_tainted, node_class, node_pool

pytestmark = pytest.mark.temporal

SMALL = "c-2x-amd64-linux"
LIVES_SECONDS = 60.0
TRIES = 8  # of a command within the fifteen seconds that a plan waits; with everything beside it four were not enough


async def shown(stage: Stage, *arguments: str) -> str:
    """What the command says, in one line: how it is wrapped does not matter."""
    _, out, err = await stage.dovetail(*arguments)
    return " ".join((out + err).split())


def annotate(stage: Stage, kind: str, name: str, **annotations: str | None) -> None:
    """As kubectl does."""
    keys = {key.replace("_", "-"): text for key, text in annotations.items()}
    body = {"metadata": {"annotations": {f"dovetail.sh/{key}": text for key, text in keys.items()}}}
    stage.world.patch(kind, name, body)


def said(stage: Stage, reason: str) -> list[str]:
    """The messages of the Events of that reason."""
    return [str(e.get("message") or e.get("note")) for e in stage.world.objects("Event") if e.get("reason") == reason]


def deleting(stage: Stage) -> list[str]:
    return [c["metadata"]["name"] for c in stage.claims() if c["metadata"].get("deletionTimestamp")]


async def watched(stage: Stage, until: float) -> None:
    """Nothing is deleted and every pod runs, at every look until then."""
    while time.time() < until:
        assert (deleting(stage), stage.tainted()) == ([], []), "\n".join(stage.evidence())
        assert stage.running_pods() == 1
        await asyncio.sleep(0.2)


async def settled_node(stage: Stage) -> Json:
    """A pod runs on a node; its claim."""
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")
    return stage.claims()[0]


async def node_that_drains_first(stage: Stage) -> tuple[Json, Json]:
    """A NodePool that drains before it deletes, and the claim of its one node."""
    pool = node_pool([SMALL])
    pool["metadata"]["annotations"] = {names.DRAIN_FIRST: "true"}
    stage.world.apply(node_class())
    stage.world.apply(pool)
    stage.deploy(1)
    stage.start_worker()
    return pool, await settled_node(stage)


async def state_of(stage: Stage) -> SchedulerState:
    handle = await stage.workflow(scheduler_id(stage.cluster))
    found: SchedulerState = await handle.query("status", result_type=SchedulerState)
    return found


async def held(stage: Stage, claim: Json) -> SchedulerState:
    """Once a plan that takes the claim waits for its second look."""

    async def waits() -> SchedulerState | None:
        state = await state_of(stage)
        uids = [t.claim_uid for h in state.held for c in h.plan.commands for t in c.targets]
        return state if claim["metadata"]["uid"] in uids else None

    return await until_answered(waits, 60, "a plan waits for its second look")


def expiring(seconds: float) -> Json:
    pool = node_pool([SMALL], consolidateAfter="Never")
    pool["spec"]["template"]["spec"]["expireAfter"] = f"{seconds:.0f}s"
    return pool


@pytest.mark.soak
async def test_a_node_that_expires_during_a_pause_stays_whatever_dies_meanwhile(tmp_path: Path) -> None:
    """The Scheduler is terminated, the worker is killed, Temporal's database is lost; and nodes are still launched."""
    stage = await own_stage(tmp_path / "stage", "paused-expiry")
    try:
        stage.world.apply(node_class())
        stage.world.apply(expiring(LIVES_SECONDS))
        code, out, err = await stage.dovetail("pause", "--reason", "an incident", LOGNAME="alice")
        assert (code, err) == (0, ""), out
        stage.deploy(1)
        worker = stage.start_worker()
        claim = await settled_node(stage)
        expires = parse_time(claim["metadata"]["creationTimestamp"]) + LIVES_SECONDS

        await (await stage.workflow(scheduler_id(stage.cluster))).terminate("by hand")
        stage.kill(worker)
        stage.start_worker()
        await watched(stage, expires + 5.0)
        stage.kill(stage.workers[-1])
        await stage.lose_database()
        stage.start_worker()
        await _runs(stage)
        await watched(stage, time.time() + 5.0)
        plan, doctor = await shown(stage, "plan"), await shown(stage, "doctor")
        stage.deploy(1, "more")
        await stage.until(lambda: stage.running_pods() == 2, 90, "nodes are launched during the pause")
        assert deleting(stage) == []

        says = "PAUSED: disruption and expiry for all NodePools until it is resumed, by alice: an incident"
        assert says in plan and f"1 NodeClaim past the expireAfter: {claim['metadata']['name']}" in plan
        assert "disruption and expiry for all NodePools" in doctor
        code, out, _ = await stage.dovetail("resume")
        assert code == 0 and "all NodePools: resumed" in out
        await stage.until(lambda: stage.world.get("NodeClaim", claim["metadata"]["name"]) is None, 90, "it expires")
    finally:
        await stage.close()


async def _runs(stage: Stage) -> None:
    """Once a worker has begun the Scheduler anew."""
    handle = await stage.workflow(scheduler_id(stage.cluster))

    async def runs() -> bool:
        try:
            return (await handle.describe()).status == WorkflowExecutionStatus.RUNNING
        except RPCError as error:
            assert error.status == RPCStatusCode.NOT_FOUND
            return False

    await until_answered(runs, 60, "the Scheduler is begun anew")


@pytest.mark.soak
async def test_a_pause_set_with_kubectl_before_the_first_worker_holds_and_ends_by_itself(stage: Stage) -> None:
    """A word that is not known holds everything voluntary, and an Event and doctor name it."""
    stage.apply_pool()
    stage.deploy(1)
    annotate(stage, "Namespace", "kube-system", paused="everythng", paused_reason="GitOps")
    stage.start_worker()
    claim = await settled_node(stage)
    stage.world.scale("web", 0)
    await stage.until(lambda: said(stage, "PauseNotUnderstood"), 60, "an Event names the word")
    doctor = await shown(stage, "doctor")
    explained = await shown(stage, "explain", "node", claim["status"]["nodeName"])
    await asyncio.sleep(18.0)  # fifteen of which an empty node would wait
    assert deleting(stage) == [] and not stage.tainted()

    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 5.0))
    annotate(stage, "Namespace", "kube-system", paused="all", paused_until=end)
    await stage.until(lambda: said(stage, "Resumed"), 60, "an Event says that it goes on")
    await stage.until(stage.nothing_left, 90, "the empty node goes")

    assert "'everythng' is none of" in doctor and "by somebody who left no name: GitOps" in doctor
    assert "[Paused]" in explained


@beside
async def test_a_plan_that_waits_is_shown_cancelled_and_its_node_rests(stage: Stage) -> None:
    """In the fifteen seconds before the second look, which for an empty node are the only ones there are. On a crowded
    machine the command may take longer than these: then the node has gone, and the next one is tried."""
    stage.apply_pool()
    stage.start_worker()
    for _ in range(TRIES):
        stage.deploy(1)
        claim = await settled_node(stage)
        node = claim["status"]["nodeName"]
        stage.world.scale("web", 0)
        due = (await held(stage, claim)).held[0].due
        code, out, err = await stage.dovetail("cancel", node, "--reason", "not now", "--wait", LOGNAME="alice")
        left = stage.world.get("NodeClaim", claim["metadata"]["name"])
        if code == 0 or (left is not None and not left["metadata"].get("deletionTimestamp")):
            break
        await stage.until(stage.nothing_left, 90, "the node that was too fast has gone")
    assert (code, err) == (0, ""), (out, err)
    await stage.until(lambda: said(stage, "DisruptionCancelled"), 30, "an Event answers")

    assert out.startswith(f"{node}: nothing takes it now; the node rests until ")
    assert "not now (by alice)" in said(stage, "DisruptionCancelled")[0]
    assert (await state_of(stage)).held == ()
    while time.time() < due + 5.0:
        assert deleting(stage) == [] and not stage.tainted()
        await asyncio.sleep(0.2)


@pytest.mark.parametrize("window", ["held", "draining first"])
@beside
async def test_a_disruption_is_cancelled_by_an_annotation_alone(stage: Stage, window: str) -> None:
    """By a person without access to Temporal: while a plan waits, and after the mark while a pod blocks the drain."""
    pool, claim = await node_that_drains_first(stage)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    if window == "held":
        stage.world.scale("web", 0)
        await held(stage, claim)
    else:
        annotate(stage, "Namespace", "kube-system", paused="drains")
        pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
        stage.world.apply(pool)
        await stage.until(lambda: stage.tainted() == [node], 120, "the drifted node is marked")
        await stage.until(lambda: stage.initialised(2), 120, "its replacement is ready")

    annotate(stage, "NodeClaim", name, cancel="not now", cancel_by="alice")
    await stage.until(lambda: said(stage, "DisruptionCancelled"), 60, "an Event answers")

    left = stage.world.get("NodeClaim", name)
    assert left is not None and not left["metadata"].get("deletionTimestamp")
    assert "not now (by alice)" in said(stage, "DisruptionCancelled")[0]
    assert names.REST in left["metadata"]["annotations"]
    assert not {names.CANCEL, names.OWNER} & set(left["metadata"]["annotations"])
    assert node not in stage.tainted()  # the replacement, which is given back, is tainted while it leaves
    await recorded(stage, node)


async def recorded(stage: Stage, node: str) -> None:
    """The record has it, with who called it off: also of a plan that was only held."""
    deadline = time.monotonic() + CROWDED * 60.0  # until Temporal lists it
    while True:
        _, log, _ = await stage.dovetail("log", "--since", "1h", "--kind", "disruption", "-o", "json")
        entries = [each for each in json.loads(log)["entries"] if each["outcome"] != "running"]
        if entries or time.monotonic() > deadline:
            break
    found = [(each["outcome"], each["nodes"], each["by"], each["message"]) for each in entries]
    assert found == [("cancelled", [node], "alice", "not now")]
    assert "called off by alice: not now" in await shown(stage, "history", node)


@beside
async def test_a_node_is_replaced_by_another_pool_while_launches_of_its_own_are_paused(stage: Stage) -> None:
    """And what else is to be done is not held up."""
    stage.world.apply(node_class())
    first = node_pool([SMALL], "first", consolidateAfter="Never")
    first["spec"]["weight"] = 50
    stage.world.apply(first)
    stage.deploy(1)
    stage.start_worker()
    claim = await settled_node(stage)
    stage.world.apply(node_pool([SMALL], "second", consolidateAfter="Never"))
    annotate(stage, "NodePool", "first", paused="launches")

    annotate(stage, "NodeClaim", claim["metadata"]["name"], replace="soon")

    await stage.until(lambda: stage.world.get("NodeClaim", claim["metadata"]["name"]) is None, 120, "it is replaced")
    await stage.until(lambda: stage.running_pods() == 1, 60, "the pod runs elsewhere")
    assert [node["metadata"]["labels"][names.NODE_POOL] for node in stage.managed_nodes()] == ["second"]
    own = f"WorkflowType = 'DisruptNodes' AND WorkflowId STARTS_WITH '{stage.cluster}/'"
    plans = [run.id async for run in (await stage.client()).list_workflows(own)]
    assert len(plans) == 1


@beside
async def test_a_drain_is_paused_and_resumed_in_the_middle(stage: Stage) -> None:
    """With drain-first, so that the delete follows the drain; --drains holds the evictions and nothing else."""
    pool, claim = await node_that_drains_first(stage)
    node = claim["status"]["nodeName"]
    code, out, err = await stage.dovetail("pause", "expiry", "--drains", "--reason", "look first", LOGNAME="alice")
    assert (code, err) == (0, ""), out
    pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
    stage.world.apply(pool)
    owner = await stage.until(lambda: _owner(stage, claim), 120, "the drifted node is marked")
    handle = await stage.workflow(owner)

    async def drains() -> bool:
        return bool(await handle.query("status") == "draining before the delete")

    await until_answered(drains, 120, "the node drains before its delete")
    mark = max(e.id for e in stage.world.ledger())
    await asyncio.sleep(8.0)  # a drain that is not paused asks for an eviction within three

    assert [e for e in stage.world.ledger(mark) if "evict" in e.operation] == []
    found = stage.world.get("Node", node)
    assert found is not None and is_tainted(found) and deleting(stage) == []
    code, out, _ = await stage.dovetail("resume", "drains")
    assert code == 0 and "the pause of expiry stays" in out
    record: dict[str, Any] = await handle.result()

    assert record["outcome"] == "done"
    assert [e for e in stage.world.ledger(mark) if "evict" in e.operation]
    await stage.until(lambda: stage.running_pods() == 1 and len(stage.claims()) == 1, 60, "the pod runs elsewhere")


def _owner(stage: Stage, claim: Json) -> str:
    found = stage.world.get("NodeClaim", claim["metadata"]["name"])
    return str((found["metadata"].get("annotations") or {}).get(names.OWNER, "")) if found else ""


@beside
async def test_a_drain_before_the_delete_ends_with_the_grace_period(stage: Stage) -> None:
    """A pod that must not be disrupted holds taint and budget no longer than the claim allows."""
    pool = node_pool([SMALL])
    pool["metadata"]["annotations"] = {names.DRAIN_FIRST: "true"}
    pool["spec"]["template"]["spec"]["terminationGracePeriod"] = "25s"
    stage.world.apply(node_class())
    stage.world.apply(pool)
    stage.world.apply(_protected(stage))
    stage.start_worker()
    claim = await settled_node(stage)
    pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
    stage.world.apply(pool)
    owner = await stage.until(lambda: _owner(stage, claim), 120, "the drifted node is marked")
    began = time.time()
    handle = await stage.workflow(owner)
    record: dict[str, Any] = await asyncio.wait_for(handle.result(), 180.0)

    assert record["outcome"] == "done"
    assert time.time() - began >= 20.0, "the protected pod was waited for"
    await stage.until(lambda: stage.running_pods() == 1 and len(stage.claims()) == 1, 60, "the pod runs elsewhere")


def _protected(stage: Stage) -> Json:
    body = deployment(1)
    body["spec"]["template"]["metadata"]["annotations"] = {names.DO_NOT_DISRUPT: "true"}
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 5
    return body


@beside
async def test_a_node_that_a_person_asks_for_is_drained_as_its_pdb_permits_whatever_its_grace_period(
    stage: Stage,
) -> None:
    """Of two pods one may be away, and its successor finds no room: the other stays past the grace period, and a cancel
    brings the node back."""
    pool = node_pool([SMALL])
    pool["spec"]["limits"] = {"cpu": "2"}
    pool["spec"]["template"]["spec"]["terminationGracePeriod"] = "3s"
    stage.world.apply(node_class())
    stage.world.apply(pool)
    stage.world.apply(deployment(2, cpu="500m", terminationGracePeriodSeconds=1))
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
    }
    stage.world.apply({**body, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}})
    stage.start_worker()
    await stage.until(lambda: stage.running_pods() == 2 and stage.initialised(1), 120, "both pods run on a node")
    [claim] = stage.claims()
    node = claim["status"]["nodeName"]

    code, out, err = await stage.dovetail("replace", node, "--reason", "a bad disk", "--now")
    assert code == 0, out + err
    await stage.until(lambda: stage.running_pods() == 1, 120, "one pod has left")
    left = time.time()
    while time.time() < left + 8.0:  # the grace period is over after three
        assert (stage.running_pods(), deleting(stage)) == (1, []), "\n".join(stage.evidence())
        await asyncio.sleep(0.2)

    code, out, err = await stage.dovetail("cancel", node, "--reason", "not now", "--wait")
    assert code == 0, out + err
    await stage.until(lambda: stage.running_pods() == 2, 60, "both pods run again")
    assert [each["metadata"]["uid"] for each in stage.claims()] == [claim["metadata"]["uid"]]
