"""What a worker asks Temporal each minute about the singletons, and which of them it starts."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from dovetail.connection.owner import OtherCluster, singletons_of
from dovetail.model.snapshot import Snapshot
from dovetail.settings.settings import Settings
from dovetail.worker import singletons
from dovetail.worker.singletons import Singletons

OURS = "uid of this cluster"
SCHEDULER, CARETAKER, INTERRUPTIONS = singletons_of("c")


@dataclass
class Server:
    """Temporal with some of the singletons; what was asked of it, what was started."""

    runs: set[str]
    owner: str = OURS
    asked: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    namespace: str = "default"
    identity: str = "1@here"

    def get_workflow_handle(self, identity: str) -> Any:
        async def describe() -> Any:
            self.asked.append(identity)
            if identity not in self.runs:
                raise RPCError("workflow not found", RPCStatusCode.NOT_FOUND, b"")

            async def memo_value(*given: Any, **more: Any) -> str:
                return self.owner

            raw = SimpleNamespace(pending_activities=[], workflow_execution_info=WorkflowExecutionInfo())
            return SimpleNamespace(
                id=identity,
                run_id="run",
                status=WorkflowExecutionStatus.RUNNING,
                memo_value=memo_value,
                raw_description=raw,
            )

        return SimpleNamespace(describe=describe)

    async def start_workflow(self, name: str, given: Any, *, id: str, **more: Any) -> None:
        self.started.append(id)
        self.runs.add(id)


@dataclass
class Watched:
    """The singletons of a cluster with a queue of warnings, before that server."""

    server: Server
    singletons: Singletons = field(init=False)

    def __post_init__(self) -> None:
        world = SimpleNamespace(cluster_uid=OURS, interruptions=object(), view=self)
        wiring: Any = SimpleNamespace(settings=Settings(cluster="c"), world=world, now=lambda: 0.0)
        link: Any = SimpleNamespace(current=lambda: self.server)
        presence: Any = None
        self.singletons = Singletons(link, wiring, presence)

    def snapshot(self, reads: object) -> Snapshot:
        return Snapshot(now=0.0)

    async def asked_and_started(self) -> tuple[list[str], list[str]]:
        """By one look."""
        self.server.asked.clear()
        self.server.started.clear()
        await self.singletons.look()
        return [*self.server.asked], [*self.server.started]


async def test_a_look_where_all_run_asks_once_about_each_and_starts_none() -> None:
    watched = Watched(Server({SCHEDULER, CARETAKER, INTERRUPTIONS}))
    await watched.asked_and_started()  # the first look is followed by a second question: another cluster may begin too

    assert await watched.asked_and_started() == ([SCHEDULER, CARETAKER, INTERRUPTIONS], [])


async def test_what_does_not_run_is_started() -> None:
    watched = Watched(Server({SCHEDULER}))

    assert (await watched.asked_and_started())[1] == [CARETAKER, INTERRUPTIONS]
    watched.server.runs.remove(SCHEDULER)
    assert (await watched.asked_and_started())[1] == [SCHEDULER]


async def test_nothing_of_another_cluster_s_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    async def poke(*given: Any) -> None:
        raise AssertionError("another cluster's singleton is poked")

    monkeypatch.setattr(singletons, "poke_lost", poke)
    monkeypatch.setattr(singletons, "poke_for_new_version", poke)
    watched = Watched(Server({SCHEDULER}, owner="uid of another"))

    with pytest.raises(OtherCluster, match="uid of another"):
        await watched.asked_and_started()
    assert watched.server.started == []
