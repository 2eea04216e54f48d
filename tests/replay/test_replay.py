"""Recorded histories replay against today's code: what runs in a cluster survives an upgrade."""

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from dovetail.worker.task_queues import WORKFLOWS
from tests.replay.fingerprints import FILE, fingerprints
from tests.replay.recorded import read_history, recorded_files
from tests.system.histories import failures_of, replayer

RECORDED = recorded_files()


def test_each_workflow_has_a_recorded_history() -> None:
    assert {workflow.__name__ for workflow in WORKFLOWS} == {file.parent.name for file in RECORDED}


@pytest.fixture(scope="module")
async def failures() -> dict[Path, Exception | None]:
    """Of every recorded history; one that cannot be replayed hinders none of the others."""
    return dict(zip(RECORDED, await failures_of(map(read_history, RECORDED)), strict=True))


@pytest.mark.parametrize("file", RECORDED, ids=lambda f: f"{f.parent.name}-{f.stem}")
async def test_a_recorded_history_replays(file: Path, failures: dict[Path, Exception | None]) -> None:
    assert '"workflowTaskCompletedEventAttributes"' in file.read_text(), "a history without a task proves nothing"
    if failure := failures[file]:
        raise failure


async def test_a_history_of_other_steps_does_not_replay() -> None:
    """The replay itself: it must notice a step that today's code does not ask for."""
    file = next(f for f in RECORDED if f.parent.name == "TerminateNode")
    events = json.loads(file.read_text())
    for event in events["events"]:
        scheduled = event.get("activityTaskScheduledEventAttributes")
        if scheduled and scheduled["activityType"]["name"] == "begin_departure":
            scheduled["activityType"]["name"] = "something_else"
    identity = events["events"][0]["workflowExecutionStartedEventAttributes"]["workflowId"]

    with pytest.raises(Exception, match="something_else"):
        await replayer().replay_workflow(WorkflowHistory.from_json(identity, json.dumps(events)))


@pytest.mark.parametrize("workflow", [cls.__name__ for cls in WORKFLOWS])
def test_a_workflow_asks_for_what_its_fingerprint_says(workflow: str) -> None:
    """Changed on purpose? Then guard it with workflow.patched or record a history that shows that it replays, and
    write the fingerprints again: python -m tests.replay.fingerprints."""
    assert fingerprints()[workflow] == json.loads(FILE.read_text()).get(workflow)
