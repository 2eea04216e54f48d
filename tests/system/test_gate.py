"""The gate of a new version, as temporal-worker-controller starts it: on the new version alone, before it has work."""

import json
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import PinnedVersioningOverride, WorkerDeploymentVersion

from dovetail.answers.doctor.stopping import STOPPING
from dovetail.messages.workflow_ids import scheduler_id, task_queue
from dovetail.messages.workflow_types import GATE
from tests.system.histories import replayer
from tests.system.test_versions import Versions
from tests.waiting import until_answered, until_version_is_known
from worlds.stage.stage import Stage

pytestmark = [pytest.mark.temporal, pytest.mark.soak]

# A version that needs a right which this cluster gives it only once a file is there.
GREEDY = """
import os
from dataclasses import replace
from dovetail.adapters.simulator.inspection import SimulatedInspection
facts = SimulatedInspection.facts
async def less(self):
    missing = () if os.path.exists(os.environ["GRANTED"]) else ("patch events",)
    return replace(await facts(self), missing_rights=missing)
SimulatedInspection.facts = less
from dovetail.cli.main import run
run()
"""
Gated = WorkflowHandle[Any, str]
PATIENCE = {"seconds": 20.0}  # as `versioning.rollout.gate.input` says it


def start(versions: Versions, build: str, code: str, granted: Path) -> None:
    """A worker of that build which needs the right."""
    version = {"TEMPORAL_WORKER_BUILD_ID": build, "TEMPORAL_DEPLOYMENT_NAME": versions.name, "GRANTED": str(granted)}
    versions.stage.start_installed([sys.executable, "-c", code], "worker.log", **version)


async def gate(versions: Versions, build: str) -> Gated:
    """What the controller starts: pinned to that version."""
    version = WorkerDeploymentVersion(deployment_name=versions.name, build_id=build)

    async def started() -> Gated:
        return await versions.client.start_workflow(
            GATE,
            PATIENCE,
            id=f"test-{versions.name}-{build}",
            task_queue=task_queue(versions.stage.cluster, "control"),
            versioning_override=PinnedVersioningOverride(version),
            result_type=str,
        )

    return await until_version_is_known(started)


async def looked_once_more(client: Client, failed: Gated) -> Gated:
    """What `temporal workflow reset --type FirstWorkflowTask` asks for."""
    history = await failed.fetch_history()
    first = next(event for event in history.events if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED)
    answer = await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=failed.id, run_id=failed.first_execution_run_id or ""),
            reason="the right is granted",
            workflow_task_finish_event_id=first.event_id,
            request_id=str(uuid.uuid4()),
        )
    )
    return client.get_workflow_handle(failed.id, run_id=answer.run_id, result_type=str)


@pytest.fixture
async def versions(stage: Stage) -> Versions:
    found = Versions(stage, await stage.client())
    found.start("one")
    await found.set_current("one")
    await found.singletons_are_on("one")
    return found


async def test_a_version_that_may_not_do_what_it_needs_is_stopped_until_it_may(versions: Versions) -> None:
    granted = versions.stage.folder / "granted"
    start(versions, "two", GREEDY, granted)

    handle = await gate(versions, "two")
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert "rights: 1 right missing: patch events" in str(failed.value.cause)
    assert await versions.builds_of_tasks(handle.id) == ["two"]
    assert await versions.build_of(scheduler_id(versions.stage.cluster)) == "one"  # it got no work by being looked at

    granted.touch()
    again = await looked_once_more(versions.client, handle)
    assert await again.result() == "nothing stops this version"
    assert await versions.builds_of_tasks(handle.id) == ["two"]
    for run in (handle, again):
        await replayer().replay_workflow(await run.fetch_history())


async def test_what_stops_a_version_is_what_doctor_looks_at(versions: Versions) -> None:
    """By the names that an operator sees. A cloud that sees no instance of ours is named only where there is one."""
    seen: set[str] = set()
    for more in ((), ("--preflight",)):

        async def answered(more: tuple[str, ...] = more) -> set[str]:
            _, said, _ = await versions.stage.dovetail("doctor", "--json", "--local", *more)
            return {check["name"] for check in json.loads(said)["checks"]}

        seen |= await until_answered(answered, 60, "doctor answers")

    assert STOPPING - seen <= {"instances"}
