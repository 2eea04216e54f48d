"""Two clusters in one namespace of Temporal: of one name, the second is refused; of two names, each keeps to its own.

Worlds, workers and the CLI are processes on one real server.
"""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus

from dovetail.activities.identity.cluster_header import HEADER, cluster_uid_in
from dovetail.activities.identity.search_attributes import NODE, NODE_CLAIM, NODE_POOL, PHASE, attributes
from dovetail.connection.owner import client_of
from dovetail.messages.inputs import ClaimInput
from dovetail.messages.states import SchedulerState
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.workflow_ids import (
    claim_owner_id,
    disruption_id,
    node_owner_id,
    scheduler_id,
    task_queue,
)
from dovetail.messages.workflow_types import DISRUPT_NODES, SCHEDULER, TERMINATE_NODE
from dovetail.model.values.json import Json
from tests.system.beside import beside
from tests.system.histories import executions, histories, replay_all
from tests.waiting import until_answered
from worlds.stage.running import shared_stage
from worlds.stage.stage import Stage

pytestmark = pytest.mark.temporal


ANOTHER = "0d0c0b0a-another-cluster"


def uid_of(stage: Stage) -> str:
    namespace = stage.world.get("Namespace", "kube-system")
    assert namespace is not None
    return str(namespace["metadata"]["uid"])


@asynccontextmanager
async def twin_of(stage: Stage) -> AsyncIterator[Stage]:
    """Another cluster of the stage's name."""
    made = shared_stage(stage.folder / "twin", stage.cluster, stage.temporal)
    try:
        yield made
    finally:
        await made.close()


async def one_node(stage: Stage) -> Json:
    """A worker serves, and a pod runs; the claim of its node."""
    stage.start_worker()
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")
    (claim,) = stage.claims()
    return claim


async def memo_of(client: Client, identity: str) -> str:
    described = await client.get_workflow_handle(identity).describe()
    return str(await described.memo_value(HEADER, "", type_hint=str))


async def until_it_ends(stage: Stage, worker: "subprocess.Popen[bytes]") -> int:
    await stage.until(lambda: worker.poll() is not None, 90, "the worker ends")
    return worker.returncode


def said(stage: Stage) -> str:
    return (stage.folder / "worker.log").read_text()


@beside
async def test_a_second_cluster_of_the_name_is_refused_and_the_first_works_on(stage: Stage) -> None:
    async with twin_of(stage) as twin:
        stage.start_worker()
        stage.apply_pool()
        stage.deploy(1)
        await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")
        twin.apply_pool()
        twin.deploy(3)

        code = await until_it_ends(twin, twin.start_worker())
        orders = [
            await twin.dovetail("cancel", stage.managed_nodes()[0]["metadata"]["name"], "--reason", "x"),
            await twin.dovetail("pause", "--reason", "x"),
            await twin.dovetail("resume"),
        ]
        doctor = await twin.dovetail("doctor")
        taken = await twin.dovetail("take-over", "--from", uid_of(stage))
        wrong = await twin.dovetail("take-over", "--from", uid_of(twin))

        assert code == 3
        assert f"another cluster is called {stage.cluster}" in said(twin)
        assert uid_of(stage) in said(twin) and uid_of(twin) in said(twin)
        assert f"dovetail take-over --cluster {stage.cluster} --from {uid_of(stage)}" in said(twin)
        done = [entry for entry in twin.writes_of_ours(0.0) if entry.operation != "cloud:list"]  # to list is to look
        assert done == [] and twin.claims() == []
        assert [code for code, _, _ in orders] == [3, 3, 3]
        assert all(uid_of(stage) in err and uid_of(twin) in err for _, _, err in orders)
        system = twin.world.get("Namespace", "kube-system")
        assert system is not None and not system["metadata"].get("annotations")
        assert doctor[0] == 1 and "FAIL  identity" in doctor[1]
        assert taken[0] == 1 and "stop the other cluster's workers first" in taken[2]
        assert wrong[0] == 1 and "not taken over" in wrong[2]
        stage.world.scale("web", 2)
        await stage.until(lambda: stage.running_pods() == 2, 90, "the first cluster goes on")
        assert (await stage.dovetail("doctor"))[1].count("ok    identity") == 1


@beside
async def test_every_workflow_and_step_says_whose_it_is(stage: Stage) -> None:
    claim = await one_node(stage)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    client = await stage.client()
    launch = client.get_workflow_handle(claim_owner_id(stage.cluster, name))
    await asyncio.wait_for(launch.result(), 60)  # one that still ran would itself become the termination
    stage.world.set(shutdown=60.0)
    stage.world.scale("web", 0)
    stage.world.delete("NodeClaim", name)

    async def leaving() -> WorkflowExecutionDescription | None:
        described = await client.get_workflow_handle(claim_owner_id(stage.cluster, name)).describe()
        return described if described.workflow_type == TERMINATE_NODE else None

    owner = await until_answered(leaving, 60, "the claim's termination runs")
    assert owner is not None
    known = owner.typed_search_attributes
    assert (known.get(NODE_POOL), known.get(NODE_CLAIM), known.get(NODE)) == ("pool", name, node)
    assert known.get(PHASE)

    found = await executions(client, stage.cluster)
    async for each in client.list_workflows(f"DovetailCluster = '{stage.cluster}'"):
        found = [one for one in found if (one.id, one.run_id) != (each.id, each.run_id)]
    assert found == []  # the attribute finds what the ids find
    for history in await histories(client, stage.cluster):
        for event in history.events:
            scheduled = event.activity_task_scheduled_event_attributes
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                assert cluster_uid_in(scheduled.header.fields) == uid_of(stage), scheduled.activity_type.name
    assert await memo_of(client, scheduler_id(stage.cluster)) == uid_of(stage)
    assert await replay_all(client, stage.cluster) > 0


@beside
async def test_a_worker_that_is_handed_another_clusters_step_does_not_take_it(stage: Stage) -> None:
    claim = await one_node(stage)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    others = client_of(await stage.client(), ANOTHER)
    reference = ClaimRef(name=name, uid=claim["metadata"]["uid"], pool="pool")
    before = stage.world.get("Node", node)

    handle = await others.start_workflow(
        TERMINATE_NODE,
        ClaimInput(cluster=stage.cluster, claim=reference),
        id=f"{stage.cluster}/claim/of-another-cluster",
        task_queue=task_queue(stage.cluster, "control"),
    )

    async def refusal() -> str:
        pending = (await handle.describe()).raw_description.pending_activities
        return next((one.last_failure.message for one in pending if one.attempt > 2), "")

    refused = await until_answered(refusal, 60, "the step is refused twice")
    await handle.terminate()

    assert f"it is for the cluster {ANOTHER}, and this worker serves {uid_of(stage)}" in refused
    after = stage.world.get("Node", node)
    assert before is not None and after is not None
    assert after["spec"] == before["spec"] and stage.tainted() == []
    assert not [e for e in stage.world.objects("Event") if "it is for the cluster" in str(e.get("message"))]


@pytest.mark.soak
async def test_a_rebuilt_cluster_takes_the_name_over_and_works(stage: Stage) -> None:
    """The cluster before it left its singletons and a termination; its workers are gone."""
    theirs = client_of(await stage.client(), ANOTHER)
    queue = task_queue(stage.cluster, "control")
    state = SchedulerState(cluster=stage.cluster, cluster_uid=ANOTHER)
    await theirs.start_workflow(
        SCHEDULER, state, id=scheduler_id(stage.cluster), task_queue=queue, memo={HEADER: ANOTHER}
    )
    left = await theirs.start_workflow(
        TERMINATE_NODE,
        ClaimInput(cluster=stage.cluster, claim=ClaimRef(name="gone", uid="u")),
        id=claim_owner_id(stage.cluster, "gone"),
        task_queue=queue,
    )
    refused = await until_it_ends(stage, stage.start_worker())

    code, out, err = await stage.dovetail("take-over", "--from", ANOTHER)
    again = await stage.dovetail("take-over", "--from", ANOTHER)
    stage.start_worker()
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")

    assert refused == 3
    assert (code, err) == (0, "") and f"taken over by the cluster {uid_of(stage)}; 1 workflow" in out
    assert (await left.describe()).status == WorkflowExecutionStatus.TERMINATED
    assert again[0] == 1 and "there is nothing to take over" in again[2]
    assert await memo_of(theirs, scheduler_id(stage.cluster)) == uid_of(stage)


@beside
async def test_a_cancel_and_a_history_leave_another_clusters_node_of_that_name_alone(stage: Stage) -> None:
    stage.start_worker()
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")
    node = stage.managed_nodes()[0]["metadata"]["name"]
    client = await stage.client()
    other = f"other-than-{stage.cluster}"
    theirs: Any = await client.start_workflow(
        DISRUPT_NODES,
        "its worker is not here",
        id=disruption_id(other, "plan-1"),
        task_queue=task_queue(other, "control"),
        search_attributes=attributes(other, node=node, claim="theirs"),
    )

    async def listing() -> list[str]:
        return [found.id async for found in client.list_workflows(f"DovetailNode = '{node}'")]

    listed = await until_answered(listing, 60, "the list shows the other cluster's disruption")
    code, out, err = await stage.dovetail("cancel", node, "--reason", "mine alone")
    story = await stage.dovetail("history", node)

    assert listed == [theirs.id]
    assert (code, err) == (0, "") and out.startswith(f"{node}: nothing takes it now; the node rests until ")
    assert [e async for e in theirs.fetch_history_events() if "SIGNALED" in EventType.Name(e.event_type)] == []
    assert other not in story[1] and node_owner_id(other, node) not in story[1]
    await theirs.terminate()
