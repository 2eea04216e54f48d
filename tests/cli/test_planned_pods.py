"""`dovetail log --pod` finds the launch that a waiting pod was the cause of, by the Scheduler's histories."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from dovetail.answers.record import made_for
from dovetail.answers.record.entries import Entries, Period
from dovetail.answers.record.log import Wanted, log_from
from dovetail.answers.record.made_for import with_pods
from dovetail.workflows.converter import DATA_CONVERTER
from tests.cli.test_savings import LAUNCH
from tests.replay.recorded import HISTORIES, read_history

RECORDED = HISTORIES / "Scheduler"


@dataclass(slots=True)
class Temporal:
    """A client that has these runs of the Scheduler. `asked`: what the visibility list was asked."""

    runs: dict[str, WorkflowHistory]
    asked: list[str] = field(default_factory=list)
    data_converter: Any = DATA_CONVERTER

    async def list_workflows(self, query: str, limit: int) -> AsyncIterator[Any]:
        self.asked.append(query)
        for run in [*self.runs, "forgotten"][:limit]:
            yield SimpleNamespace(id="demo/scheduler", run_id=run)

    def get_workflow_handle(self, _: str, *, run_id: str) -> Any:
        async def fetch_history() -> WorkflowHistory:
            if run_id not in self.runs:
                raise RPCError("no such run", RPCStatusCode.NOT_FOUND, b"")
            return self.runs[run_id]

        return SimpleNamespace(fetch_history=fetch_history)


def temporal(file: Path) -> Any:
    return Temporal({"1": read_history(file)})


async def test_a_launch_names_the_pods_that_waited_for_it() -> None:
    client = temporal(RECORDED / "cancelled.json")
    pods = ("default/web-5a07fe8f5a-9e66050366",)
    launch, other = replace(LAUNCH, claims=("pool-dce7bc055d-0",)), replace(LAUNCH, claims=("web-9",))
    period = Period(since=0.0, until=60.0)

    found = await with_pods(client, "demo", period, Entries(entries=(launch, other)))

    assert [entry.pod_names for entry in found.entries] == [pods, ()]
    assert (found.cut, found.forgotten) == (False, 1)
    ended = "(ExecutionStatus = 'Running' OR CloseTime >= '1970-01-01T00:00:00.000000Z')"
    began = "StartTime <= '1970-01-01T00:01:00.000000Z'"
    assert client.asked == [f"WorkflowId = 'demo/scheduler' AND {ended} AND {began}"]
    for name in (pods[0], pods[0].partition("/")[2]):
        assert log_from("demo", Wanted(period=period, pod=name), found, 60.0).entries == (found.entries[0],)


async def test_more_runs_than_are_read_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_for, "MOST_RUNS", 1)
    client = temporal(RECORDED / "released.json")

    found = await with_pods(client, "demo", Period(since=0.0), Entries(entries=()))

    assert (found.cut, found.forgotten) == (True, 0)
