"""What a worker begins while the way back to the previous version is kept."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import MagicMock, patch

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import PatchActivationInput, Replayer, UnsandboxedWorkflowRunner, Worker

from dovetail.answers.serving import duties
from dovetail.answers.serving.duties import report_cluster
from dovetail.settings.settings import read_settings
from dovetail.worker.task_queues import queue_worker
from dovetail.worker.way_back import EVERY_VERSION_KNOWS, PREVIOUS_KNOWS, changes_begun
from tests.upgrade.previous import ROOT, named

Answer = Callable[[PatchActivationInput], bool] | None
NEWER = "a-change-that-the-previous-version-does-not-know"
OLDER = "a-change-that-the-previous-version-knows"


@workflow.defn
class Changed:
    """Takes both changes, where they are begun."""

    @workflow.run
    async def run(self) -> list[str]:
        return [name for name in (NEWER, OLDER, f"{EVERY_VERSION_KNOWS[0]}7") if workflow.patched(name)]


@pytest.mark.temporal
@pytest.mark.parametrize("keeps", [True, False])
async def test_a_newer_change_is_begun_only_where_there_is_no_way_back(
    monkeypatch: pytest.MonkeyPatch, keeps: bool
) -> None:
    monkeypatch.setattr("dovetail.worker.way_back.PREVIOUS_KNOWS", frozenset({OLDER}))
    server = Path(sys.executable).parent / "temporal-test-server"
    async with await WorkflowEnvironment.start_time_skipping(test_server_existing_path=str(server)) as environment:
        begun, markers = await one_run(environment.client, changes_begun(keep_way_back=keeps))

    older = [OLDER, "task-ended-before-7"]
    assert begun == (older if keeps else [NEWER, *older])
    assert markers == len(begun)


async def one_run(client: Client, answer: Answer) -> tuple[list[str], int]:
    """What a run took, and how many markers it left; its history replays whatever is asked then."""
    worker = Worker(
        client,
        task_queue="way-back",
        workflows=[Changed],
        workflow_runner=UnsandboxedWorkflowRunner(),
        patch_activation_callback=answer,
    )
    async with worker:
        handle = await client.start_workflow(Changed.run, id="changed", task_queue="way-back")
        begun = await handle.result()
    history = await handle.fetch_history()
    replayer = Replayer(workflows=[Changed], workflow_runner=UnsandboxedWorkflowRunner(), debug_mode=True)
    await replayer.replay_workflow(history)
    return begun, sum(e.event_type == EventType.EVENT_TYPE_MARKER_RECORDED for e in history.events)


@pytest.mark.parametrize(("given", "keeps"), [({}, False), ({"DOVETAIL_KEEP_WAY_BACK": "true"}, True)])
def test_a_worker_asks_only_where_its_setting_says_so(given: dict[str, str], keeps: bool) -> None:
    with patch("dovetail.worker.task_queues.Worker") as made:
        queue_worker(MagicMock(), read_settings({"CLUSTER_NAME": "c", **given}), "control", [], [])

    asked = made.call_args.kwargs["patch_activation_callback"]
    assert asked is changes_begun(keep_way_back=keeps)
    assert (asked is not None) is keeps


def test_what_the_previous_version_knows_is_what_its_workflows_say() -> None:
    """The ids that stand in its code; those that it makes up as it goes begin as its code says."""
    words = ["git", "grep", "-h", "-E", r"patched\(|^[A-Z_]+ = \"[a-z-]+\"$", named().commit, "--", "workflows"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    constants = dict(re.findall(r'^([A-Z_]+) = "([a-z-]+)"$', said, re.MULTILINE))
    made_up = tuple(re.findall(r'patched\(f"([a-z-]+)\{', said))
    called = {constants[name] for name in re.findall(r"patched\(([A-Z_]+)\)", said)}

    assert called == PREVIOUS_KNOWS
    assert made_up == EVERY_VERSION_KNOWS


async def test_nothing_is_reported_while_the_way_back_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memo of a Caretaker is written by a version that knows how; the previous one would stand still on it."""
    settings = read_settings({"CLUSTER_NAME": "c", "DOVETAIL_KEEP_WAY_BACK": "true"})
    monkeypatch.setattr(duties, "FIRST_SECONDS", 0.0)
    presence = MagicMock(silent_seconds=0.0)

    await report_cluster(settings, MagicMock(), presence, tuple, lambda: True)

    assert presence.mock_calls == []
