"""A plugin of pytest that keeps the histories of the workflows that the tests start.

The tests of tests/workflows drive every branch of every workflow with fake steps. After each test the histories of what
it started are read from the server, with those of the children and of the later runs, and each that took a course that
no kept one has taken becomes a file: <type>/<scenario>@<version>.json, where the scenario is the test's name. A file
that exists is never overwritten, and a history that does not replay at once is an error.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowHistory

from dovetail.worker.task_queues import WORKFLOWS
from tests.replay.recorded import HISTORIES, anonymous, recorded_files
from tests.system.histories import replayer
from tests.workflows.started import EVERYWHERE, Execution

TYPES = {workflow.__name__ for workflow in WORKFLOWS}
MOST_OF_ONE_TEST = 8  # of one type: a singleton that begins as new again and again says little more each time

Course = tuple[str, ...]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The version under whose name the histories are kept."""
    parser.addoption("--record", metavar="VERSION", required=True, help="keep histories under this version's name")


class Kept:
    """What is kept already."""

    def __init__(self, version: str, folder: Path = HISTORIES) -> None:
        self.version, self.folder = version, folder
        files = [file for file in recorded_files(folder) if "@" in file.stem]
        self.courses: set[Course] = {course_of(json.loads(file.read_text())["events"]) for file in files}

    async def keep(self, scenario: str, histories: list[WorkflowHistory]) -> list[Path]:
        """The first, which the test is about, and those that took a new course; the files that were written."""
        written: list[Path] = []
        numbers: dict[str, int] = {}
        for place, history in enumerate(histories):
            text = anonymous(history)
            events = json.loads(text)["events"]
            kind, course = type_of(events), course_of(events)
            if kind not in TYPES or not has_a_task(events) or (place > 0 and course in self.courses):
                continue
            number = numbers[kind] = numbers.get(kind, 0) + 1
            file = self.folder / kind / f"{scenario}{f'-{number}' if number > 1 else ''}@{self.version}.json"
            if number > MOST_OF_ONE_TEST or file.exists():
                continue
            await replayer().replay_workflow(history)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            self.courses.add(course)
            written.append(file)
        return written


def scenario_of(test: str) -> str:
    """A test's name as that of a file."""
    return re.sub(r"[^A-Za-z0-9]+", "-", test.removeprefix("test_")).strip("-")


def type_of(events: list[dict[str, Any]]) -> str:
    """The workflow's type."""
    return str(events[0]["workflowExecutionStartedEventAttributes"]["workflowType"]["name"])


def has_a_task(events: list[dict[str, Any]]) -> bool:
    """Whether the workflow's code ran at all; a history of one that nobody served proves nothing."""
    return any("workflowTaskCompletedEventAttributes" in event for event in events)


def course_of(events: list[dict[str, Any]]) -> Course:
    """What happened, in order: kinds of events with what they name. Workflow tasks are left out: how events fall into
    them is chance."""
    return tuple(_word(event) for event in events if "WORKFLOW_TASK" not in event["eventType"])


def _word(event: dict[str, Any]) -> str:
    attributes: dict[str, Any] = next((v for k, v in event.items() if k.endswith("EventAttributes")), {})
    named = [attributes.get(name, {}).get("name", "") for name in ("workflowType", "activityType")]
    return " ".join([event["eventType"], *named, str(attributes.get("signalName", ""))])


async def with_followers(client: Client, first: Execution) -> list[WorkflowHistory]:
    """The history of a run, of the runs that follow it, and of its children."""
    found: list[WorkflowHistory] = []
    waiting = [first]
    while waiting:
        identity, run = waiting.pop(0)
        history = await client.get_workflow_handle(identity, run_id=run).fetch_history()
        found.append(history)
        waiting += _followers(identity, history)
    return found


def _followers(identity: str, history: WorkflowHistory) -> Iterator[Execution]:
    for event in history.events:
        if event.HasField("child_workflow_execution_started_event_attributes"):
            child = event.child_workflow_execution_started_event_attributes.workflow_execution
            yield child.workflow_id, child.run_id
        if event.HasField("workflow_execution_continued_as_new_event_attributes"):
            yield identity, event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id


@pytest.fixture(scope="session")
def kept(request: pytest.FixtureRequest) -> Kept:
    """What is kept already, under the version that was asked for."""
    return Kept(str(request.config.getoption("--record")))


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def recorded(request: pytest.FixtureRequest, kept: Kept) -> AsyncIterator[None]:
    """Keep what the test has started."""
    yield
    for started in EVERYWHERE:
        executions, started.executions = started.executions, []
        for execution in executions:
            assert started.client is not None
            histories = await with_followers(started.client, execution)
            for file in await kept.keep(scenario_of(request.node.name), histories):
                print(f"recorded: {file.relative_to(kept.folder)}")
