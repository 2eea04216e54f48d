"""What of Dovetail itself does not work is the first thing that is said, and what does not need it goes on."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.service import RPCError, RPCStatusCode

from dovetail.answers.look.troubles import NEW_SECONDS, OwnTrouble, workers_missing
from dovetail.answers.serving import worker_source
from dovetail.answers.serving.api import Api
from dovetail.answers.serving.worker_source import WorkerSource
from dovetail.answers.shown.documents import Document, document
from dovetail.answers.shown.screen import Screen
from dovetail.answers.status.text import status_markdown, status_text
from dovetail.cli.commands.status import show_status
from dovetail.cli.main import parser
from dovetail.cli.output import NEEDS_PERSON
from dovetail.cli.top.drawing import Shown, Size, frame
from dovetail.cli.top.view import View
from dovetail.connection import presence
from dovetail.connection.presence import AWAY_AFTER, TemporalPresence
from dovetail.messages.states import Recent, SchedulerState
from dovetail.model.pods import Owner, Pod, PodShape
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import parse_time
from dovetail.wiring.world import World, open_world
from tests.adapters.simulator.manifests import a_deployment
from tests.cli.fleet import the_nodes
from tests.cli.test_status_text import NOW, a_status, status_in
from tests.cli.worlds import a_ready_pool, a_world, settings_of
from tests.waiting import until_answered
from worlds.disruption import a_pod

AWAY = RPCError("no answer", RPCStatusCode.DEADLINE_EXCEEDED, b"")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_what_needs_a_person_is_whole_on_a_narrow_screen(width: int) -> None:
    text = status_text(status_in(a_status()), Screen(width=width)).partition("NEEDS A PERSON")[2].partition("POOL")[0]

    assert "…" not in text
    words = " ".join(text.split())
    for need in status_in(a_status()).needs_person:
        assert f"{need.about} {need.what}" in words and need.command in words


class Server:
    """Temporal: it answers, hangs, or has a Scheduler that does not answer."""

    namespace = "default"
    hangs = False
    scheduler: Callable[[], SchedulerState | None] = staticmethod(lambda: None)

    def __init__(self) -> None:
        self.queries = self.described = 0

    @property
    def workflow_service(self) -> "Server":
        return self

    async def describe_workflow_execution(self, *_: Any, **options: Any) -> None:
        self.described += 1
        if self.hangs:
            raise AWAY

    async def describe_task_queue(self, *_: Any, **options: Any) -> Any:
        raise AWAY

    def get_workflow_handle(self, *_: Any, **options: Any) -> "Server":
        return self

    async def query(self, *_: Any, **options: Any) -> SchedulerState:
        self.queries += 1
        state = None if self.hangs else self.scheduler()
        if state is None:
            await asyncio.Event().wait()
        assert state is not None
        return state


class Stage:
    def __init__(self, world: World, settings: Any) -> None:
        self.clock, self.server = 100.0, Server()
        self.presence = TemporalPresence("demo", lambda: self.clock)
        self.presence.client = self.server  # type: ignore[assignment]
        self.fails: list[str] = []
        self.source = WorkerSource(settings, world, self.presence, fails=lambda: self.fails)
        self.api = Api(self.source)
        self.world = world

    async def goes_away(self) -> None:
        self.server.hangs = True
        for _ in range(int(AWAY_AFTER) + 2):
            await self.presence.look()
            self.clock += 1.0

    async def status(self) -> dict[str, Any]:
        code, _, body = await self.api.answer("status")
        assert code == 200, body
        found: dict[str, Any] = json.loads(body)
        self.api.budget._kept.clear()
        return found


@pytest_asyncio.fixture(loop_scope="session")
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    simulated = a_world(tmp_path, a_ready_pool(), a_deployment(3))
    world = await open_world(settings_of(simulated))
    yield Stage(world, settings_of(simulated))
    await world.close()


def a_state(world: World) -> SchedulerState:
    return SchedulerState(cluster="demo", cluster_uid=world.cluster_uid, recent=(Recent(at=NOW, text="launched n1"),))


async def test_while_temporal_is_away_status_begins_with_that_and_keeps_what_was_done(stage: Stage) -> None:
    stage.server.scheduler = lambda: a_state(stage.world)
    before = await stage.status()
    assert before["troubles"] == [] and [each["text"] for each in before["recent"]] == ["launched n1"]

    await stage.goes_away()
    found = await stage.status()

    [trouble] = found["troubles"]
    assert trouble["what"] == "Temporal does not answer" and trouble["since"] and "launched" in trouble["standsStill"]
    assert trouble["page"] == "docs/temporal-outages.md" and Path(trouble["page"]).is_file()
    assert [each["text"] for each in found["recent"]] == ["launched n1"]
    assert not any("no worker answers" in note for note in found["notes"])
    assert stage.server.queries == 1, "who is known to be away is not asked"


async def test_a_scheduler_that_does_not_answer_is_waited_for_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dovetail.answers.look.sources.ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(worker_source, "AGAIN_SECONDS", 0.0)
    first = await stage.status()
    monkeypatch.setattr("dovetail.answers.look.sources.ANSWER_SECONDS", 600.0)
    second = await stage.status()

    for found in (first, second):
        [trouble] = found["troubles"]
        assert trouble["what"].startswith("the Scheduler does not answer")
    stage.server.scheduler = lambda: a_state(stage.world)
    assert stage.source._asking is not None
    stage.source._asking.cancel()
    await asyncio.wait({stage.source._asking})

    async def answers() -> bool:
        return not (await stage.status())["troubles"]

    await until_answered(answers)


async def test_while_the_api_server_answers_nothing_what_was_last_seen_is_shown_below_one_line(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answered 503 to every watch for minutes: status, nodes, pods and the page had nothing but an error."""
    stage.server.scheduler = lambda: a_state(stage.world)
    view = stage.world.view
    before = (await stage.status())["totals"]
    monkeypatch.setattr(view, "_problem", lambda kind: f"{kind}: the watch is broken: 503 from the API server")
    monkeypatch.setattr(view, "silent_for", lambda _: 95.0)

    found = await stage.status()

    [trouble] = found["troubles"]
    assert trouble["what"].startswith("the API server's objects are not seen") and "503" in trouble["what"]
    assert parse_time(found["now"]) - parse_time(trouble["since"]) == 95.0
    assert trouble["goesOn"] and trouble["standsStill"] and Path(trouble["page"]).is_file()
    assert {key: found["totals"][key] for key in ("pods", "nodes")} == {key: before[key] for key in ("pods", "nodes")}
    assert [(await stage.api.answer(route))[0] for route in ("nodes", "pods")] == [200, 200]
    assert (await stage.api.answer("plan"))[0] == 503, "what is decided needs what is so now"

    never = Api(WorkerSource(stage.source.settings, stage.world, stage.presence))
    assert (await never.answer("status"))[0] == 503, "who has seen nothing yet does not show an empty cluster"


async def test_doctor_asks_temporal_once_and_says_one_thing_about_it(stage: Stage) -> None:
    stage.server.hangs = True

    checks = json.loads((await stage.api.answer("doctor"))[2])["checks"]

    about = [check for check in checks if check["name"] in ("Temporal server", "rest of Temporal")]
    assert [check["verdict"] for check in about] == ["fails", "skipped"]
    assert stage.server.queries == 0 and stage.server.described == 1
    assert {"API server", "view"} <= {check["name"] for check in checks}, "the cluster is looked at all the same"


async def test_doctor_waits_for_temporal_no_longer_than_a_probe(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took 28 s for a server that took connections and answered nothing."""
    assert presence.PROBE_SECONDS <= 3.0
    monkeypatch.setattr(presence, "PROBE_SECONDS", 0.05)

    async def hangs(*_: Any, **options: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(stage.server, "describe_workflow_execution", hangs)

    checks = json.loads((await stage.api.answer("doctor"))[2])["checks"]

    said = {check["name"]: (check["verdict"], check["found"]) for check in checks}
    assert said["Temporal server"][0] == "fails" and "no answer within" in said["Temporal server"][1]
    assert [name for name, (verdict, _) in said.items() if verdict == "fails"] == ["Temporal server"]


def a_worker(name: str, age: float, ready: bool | None) -> Pod:
    owner = Owner(api_version="apps/v1", kind="ReplicaSet", name="rs", uid="rs", controller=True)
    shape = PodShape(namespace="dovetail", labels={})
    return a_pod(name=name, uid=name, shape=shape, created=NOW - age, ready=ready, owners=(owner,))


@pytest.mark.parametrize(
    ("age", "ready", "is_missed"),
    [(1.0, False, True), (1.0, None, True), (-1.0, False, False), (1.0, True, False)],
)
def test_a_worker_that_is_not_ready_is_missed_once_it_should_be(
    age: float, ready: bool | None, is_missed: bool
) -> None:
    pods = (a_worker("w1", 9999.0, True), a_worker("w2", NEW_SECONDS + age, ready))
    snapshot = Snapshot(now=NOW, pods={pod.uid: pod for pod in pods})

    said = [each.what for each in workers_missing(snapshot, "dovetail", "w1")]

    assert said == (["1 of 2 workers work; not ready: w2"] if is_missed else [])
    assert list(workers_missing(snapshot, "dovetail", "")) == [], "a worker outside the cluster has no pod"


TROUBLE = OwnTrouble(
    what="Temporal does not answer", since=NOW - 20, stands_still="nothing is launched", page="docs/x.md"
)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_trouble_is_the_first_line_and_red_and_nothing_is_said_to_be_well(width: int) -> None:
    answer = replace(status_in({**a_status(), "needsPerson": []}), troubles=(TROUBLE,))

    lines = status_text(answer, Screen(width=width, colours=True)).splitlines()

    assert lines[0].startswith("\x1b[31m!  Temporal does not answer for 20s")
    text = " ".join(status_text(answer, Screen(width=width)).split())
    assert "nothing is launched · -> docs/x.md" in text
    assert "nothing else needs a person" in text and "\nnothing needs a person" not in text
    assert "Temporal does not answer" in status_markdown(answer).splitlines()[0]


def test_a_check_is_not_passed_with_trouble() -> None:
    given = parser().parse_args(["status", "--check"])
    quiet: Document = {**a_status(), "needsPerson": []}
    trouble = document("x", "y", TROUBLE)

    assert show_status(quiet, given, Screen())[1] == 0
    assert show_status({**quiet, "troubles": [trouble]}, given, Screen())[1] == NEEDS_PERSON


def test_the_live_view_begins_with_it() -> None:
    answer = replace(status_in(a_status()), troubles=(TROUBLE,))
    shown = Shown(status=answer, nodes=the_nodes(3), items=())

    lines = frame(shown, View(), Size(columns=80, lines=20), Screen(colours=True))

    assert lines[0].startswith("\x1b[31m! Temporal does not answer for 20s") and len(lines) == 20
