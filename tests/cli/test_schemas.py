"""What is printed as JSON is what its schema says: over a simulated world, through the API and the command line."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import orjson
import pytest
import pytest_asyncio

from dovetail.answers.change.carried import packed
from dovetail.answers.questions.table import QUESTIONS
from dovetail.answers.record.entries import Entries, Period
from dovetail.answers.record.history import HistoryAnswer, Story
from dovetail.answers.record.log import LogAnswer
from dovetail.answers.record.savings import savings_from
from dovetail.answers.record.story import Line
from dovetail.answers.serving.api import Api
from dovetail.answers.serving.worker_source import WorkerSource
from dovetail.answers.shadow.comparing import GoneClaim, LaunchedNode, compared_launch
from dovetail.answers.shadow.shadow import Shadow
from dovetail.answers.shown.documents import document
from dovetail.cli.main import main
from dovetail.connection.presence import TemporalPresence
from dovetail.messages.plans import DisruptionCommand, Target
from dovetail.wiring.world import open_world
from tests.adapters.simulator.manifests import a_deployment
from tests.cli.schemas import faults_of, kinds
from tests.cli.test_answers import a_change
from tests.cli.test_explain_node import OPEN, a_bound_pod, a_managed_node
from tests.cli.test_savings import DISRUPTION, HOUR, LAUNCH
from tests.cli.worlds import a_ready_pool, a_world, settings_of
from worlds.manifests import pod_manifest

ENDED = replace(DISRUPTION, kind="termination", drained=2 * HOUR, instance_gone=3 * HOUR)
CHANGE = urlencode({"file": packed(a_change(weight=7, disruption=OPEN)), "called": "change.yaml", "for": "1d"})
ANSWERED = {
    "status": "ClusterStatus",
    "nodes": "NodeList",
    "pods": "PendingPodList",
    "trend": "Trend",
    "plan": "Plan",
    f"plan?{CHANGE}": "PlannedChange",
    "forecast": "Forecast",
    "explain/node/n1": "NodeExplanation",
    "explain/pod/default/zonal": "PodExplanation",
    "doctor": "Checks",
    "names": "Names",
    "version": "Versions",
    "shadow": "ShadowReport",
    "explain/node/x": "Error",
}
# Temporal has the first three: below as they are made, on real servers as they are asked. The others: test_flights.py,
# test_fleet.py.
ELSEWHERE = {"History", "Log", "Savings", "FlightList", "Replay", "Fleet"}


@pytest_asyncio.fixture(loop_scope="session")
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    """Over nodes that go and stay, pods that wait and are refused, and a shadow that has seen both ways."""
    refused = pod_manifest("zonal", nodeSelector={"topology.kubernetes.io/zone": "nowhere"})
    nodes = [*a_managed_node(), *a_managed_node("n2"), a_bound_pod("held", "n2")]
    simulated = a_world(tmp_path, a_ready_pool(disruption=OPEN), a_deployment(2, cpu="6"), refused, *nodes)
    settings = settings_of(simulated)
    world = await open_world(settings)
    shadow = Shadow(settings, world, lambda: 100.0)
    target = Target(claim="c", claim_uid="u", node="n", node_uid="", provider_id="", pool="default")
    shadow.comparing.decided([DisruptionCommand(reason="Empty", method="emptiness", targets=(target,))], 0.0, 50.0)
    shadow.comparing.left(GoneClaim(claim="d", node="m", pool="default", reason="Drifted"), 60.0)
    made = LaunchedNode(pool="default", type="t", price=None)
    shadow.comparing.launched(compared_launch(70.0, ["default/a"], (made,), (made,)))
    yield Api(WorkerSource(settings, world, TemporalPresence("demo"), shadow))
    shadow.close()
    await world.close()


@pytest.mark.parametrize("path", ANSWERED)
async def test_an_answer_of_the_api_is_what_its_schema_says(api: Api, path: str) -> None:
    found = json.loads((await api.answer(path))[2])
    assert (found["kind"], faults_of(found)) == (ANSWERED[path], [])


def test_every_kind_has_its_answer_here_or_on_real_servers() -> None:
    assert {*ANSWERED.values(), *ELSEWHERE} == kinds()


async def test_every_route_of_the_api_is_asked(api: Api) -> None:
    asked = {path.partition("?")[0] for path in ANSWERED} | {"history", "log", "savings", "replay"}
    assert [route for route in QUESTIONS if not any(path.startswith(route) for path in asked)] == []


def test_what_is_made_of_temporal_s_record_is_what_its_schema_says() -> None:
    entries = (DISRUPTION, LAUNCH)
    log = LogAnswer(cluster="demo", since="2026-01-01T00:00:00Z", until=None, entries=entries)
    saved = savings_from("demo", Period(since=0.0), Entries(entries=entries), 9000.0)
    story = Story(workflow="w", type="LaunchNode", status="running", started=1.0, lines=(Line(at=1.0, text="launch"),))
    history = document("History", "demo", HistoryAnswer(name="n1", stories=(story,)))
    found = [
        json.loads(orjson.dumps(each))
        for each in (document("Log", "demo", log), document("Savings", "demo", saved), history)
    ]
    assert [fault for each in found for fault in faults_of(each)] == []


async def test_every_document_has_names_in_camel_case_and_no_moment_in_seconds(api: Api) -> None:
    found = [json.loads((await api.answer(path))[2]) for path in ANSWERED]
    log = LogAnswer(cluster="demo", since="2026-01-01T00:00:00Z", until=None, entries=(DISRUPTION, ENDED))
    found.append(document("Log", "demo", log))

    names = {name for each in found for name in names_in(each)}
    assert [name for name in names if "_" in name] == []
    [_, ended] = found[-1]["entries"]
    moments = tuple(ended[name] for name in ("began", "ended", "drained", "instanceGone"))
    assert moments == tuple(f"1970-01-01T0{n}:00:00Z" for n in (0, 1, 2, 3))


def names_in(value: object) -> Iterator[str]:
    """Of every field, however deep."""
    if isinstance(value, dict):
        yield from value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from names_in(each)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("plan", "-o", "json"), "Plan"),
        (("plan", "-f", "change.yaml", "-o", "json"), "PlannedChange"),
        (("forecast", "-o", "json"), "Forecast"),
        (("explain", "node", "n1", "-o", "json"), "NodeExplanation"),
        (("version", "--client", "-o", "json"), "Versions"),
    ],
)
def test_a_command_that_looks_from_here_prints_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], kind: str
) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), a_deployment(2, cpu="6"), *a_managed_node())
    (tmp_path / "change.yaml").write_text(a_change(weight=7, disruption=OPEN))
    typed = [str(tmp_path / word) if word == "change.yaml" else word for word in words]
    assert main([*typed, "--world", str(world.file), "--cluster", "demo"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], faults_of(found)) == (kind, [])


def test_a_field_that_the_schema_does_not_name_is_noticed() -> None:
    """The check itself: were it open, a renamed field would pass."""
    found = {"apiVersion": "dovetail.sh/v1", "kind": "Error", "message": "no", "more": 1}
    assert faults_of(found) == [
        "Error: $: Additional properties are not allowed ('more' was unexpected)",
    ]
