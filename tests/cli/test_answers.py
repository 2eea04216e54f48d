"""The worker's API over a simulated world: what it answers, what it refuses, and how seldom it works."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_asyncio
import yaml

from dovetail.answers.change.carried import packed, unpacked
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.sources import Look
from dovetail.answers.questions import fleet, record
from dovetail.answers.record.entries import MOST as MOST_SAVINGS
from dovetail.answers.record.entries import Entries, Period
from dovetail.answers.serving import api as serving
from dovetail.answers.serving import budget
from dovetail.answers.serving.api import Api
from dovetail.answers.serving.worker_source import MOST_ENTRIES, WorkerSource
from dovetail.answers.status.answer import StatusAnswer
from dovetail.answers.status.status import status_of
from dovetail.connection.presence import TemporalPresence
from dovetail.wiring.world import open_world
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_deployment
from tests.cli.test_savings import LAUNCH
from tests.cli.worlds import a_ready_pool, a_world, settings_of


@pytest_asyncio.fixture(loop_scope="session")
async def asked(tmp_path: Path) -> AsyncIterator[tuple[Api, SimulatedWorld]]:
    simulated = a_world(tmp_path, a_ready_pool(), a_deployment(3))
    world = await open_world(settings_of(simulated))
    yield Api(WorkerSource(settings_of(simulated), world, TemporalPresence("demo"))), simulated
    await world.close()


async def connected(_: object) -> None:
    """To nobody: what would be read is made up."""


@pytest.mark.parametrize(
    ("path", "kind", "field"),
    [
        ("status", "ClusterStatus", "totals"),
        ("nodes", "NodeList", "nodes"),
        ("pods", "PendingPodList", "pods"),
        ("trend", "Trend", "points"),
        ("plan", "Plan", "newNodes"),
        ("doctor", "Checks", "checks"),
        ("names", "Names", "pools"),
        ("version", "Versions", "worker"),
    ],
)
async def test_every_answer_is_a_document_with_version_and_kind(
    asked: tuple[Api, SimulatedWorld], path: str, kind: str, field: str
) -> None:
    code, content, body = await asked[0].answer(path)

    found = json.loads(body)
    assert (code, content) == (200, "application/json")
    assert (found["apiVersion"], found["kind"], found["cluster"]) == ("dovetail.sh/v1", kind, "demo")
    assert field in found


async def test_a_waiting_pod_is_counted_listed_and_explained(asked: tuple[Api, SimulatedWorld]) -> None:
    api = asked[0]
    status, pods = [json.loads((await api.answer(path))[2]) for path in ("status", "pods")]
    name = pods["pods"][0]["name"]
    code, content, text = await api.answer(f"explain/pod/{name}?view=text&width=60")

    assert status["totals"]["pendingPods"] == len(pods["pods"]) == 3
    assert (code, content) == (200, "text/plain; charset=utf-8") and name in text
    says = {each["says"] for each in pods["pods"]}
    assert says == {"a new node of NodePool default will be made for it in the next round"}
    assert max(map(len, text.splitlines())) < 100, "it is wrapped for the narrow screen, as far as names let it"


async def test_what_is_not_there_and_what_cannot_be_asked_are_told_apart(asked: tuple[Api, SimulatedWorld]) -> None:
    unknown, nowhere, cut_off = [await asked[0].answer(path) for path in ("explain/node/x", "secrets", "history/x")]

    assert (unknown[0], json.loads(unknown[2])["message"]) == (404, "x: there is no such Node or NodeClaim")
    assert nowhere[0] == 404 and "there is status, nodes" in json.loads(nowhere[2])["message"]
    assert cut_off[0] == 503 and "not connected to Temporal" in json.loads(cut_off[2])["message"]


@pytest.mark.parametrize("path", ["log?since=12h", "savings", "history/x"])
async def test_the_record_is_temporals_and_without_it_there_is_none(
    asked: tuple[Api, SimulatedWorld], path: str
) -> None:
    code, _, body = await asked[0].answer(path)
    assert code == 503 and "not connected to Temporal" in json.loads(body)["message"]


async def test_a_time_that_cannot_be_read_is_named(asked: tuple[Api, SimulatedWorld]) -> None:
    code, _, body = await asked[0].answer("log?since=yesterday")
    assert code == 400 and "--since: 'yesterday' is no time" in json.loads(body)["message"]


async def test_savings_read_more_of_the_record_than_a_log(
    asked: tuple[Api, SimulatedWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    most = []

    async def entries(*given: Any) -> Entries:
        most.append(given[-1])
        return Entries(entries=(), cut=True)

    monkeypatch.setattr(record, "entries_of", entries)
    monkeypatch.setattr(WorkerSource, "temporal", connected)

    log, saved = [json.loads((await asked[0].answer(path))[2]) for path in ("log", "savings")]

    assert most == [MOST_ENTRIES, MOST_SAVINGS] and MOST_SAVINGS >= 5 * MOST_ENTRIES
    assert (log["notes"], saved["partial"]) == (["there is more: ask for a shorter time"], True)


async def test_only_who_asks_for_a_pod_has_the_plans_read(
    asked: tuple[Api, SimulatedWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def entries(*_: Any) -> Entries:
        return Entries(entries=(LAUNCH,))

    async def with_pods(_: Any, cluster: str, period: Period, found: Entries) -> Entries:
        return Entries(entries=tuple(replace(each, pod_names=("shop/cart-1",)) for each in found.entries))

    monkeypatch.setattr(record, "entries_of", entries)
    monkeypatch.setattr(record, "with_pods", with_pods)
    monkeypatch.setattr(WorkerSource, "temporal", connected)

    found = [json.loads((await asked[0].answer(f"log{words}"))[2]) for words in ("", "?pod=cart-1", "?pod=cart-2")]

    assert [[each["podNames"] for each in log["entries"]] for log in found] == [[[]], [["shop/cart-1"]], []]


async def test_whoever_follows_sees_each_status_and_is_let_go(
    asked: tuple[Api, SimulatedWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "STREAM_SECONDS", 0.01)
    code, content, body = await asked[0].reply("stream")
    assert (code, content) == (200, "text/event-stream") and isinstance(body, AsyncGenerator)

    pieces = [await anext(body) for _ in range(3)]
    followed = asked[0]._followed.total()
    await body.aclose()

    assert pieces[0].startswith("retry: ") and pieces[1].startswith("event: status\ndata: {")
    assert json.loads(pieces[1].partition("data: ")[2])["kind"] == "ClusterStatus"
    assert (pieces[2], followed, asked[0]._followed.total()) == (": the same\n\n", 1, 0)


async def test_no_more_may_follow_than_a_worker_has_room_for(
    asked: tuple[Api, SimulatedWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "MOST_FOLLOWERS", 0)
    code, _, body = await asked[0].reply("stream")
    assert code == 503 and isinstance(body, str) and "follow already" in body


def a_change(**more: object) -> str:
    pool = a_ready_pool()
    pool["metadata"].pop("annotations", None)
    pool.pop("status", None)
    pool["spec"] |= more
    return yaml.safe_dump(pool)


async def test_a_changed_pool_goes_along_and_is_played_forward(asked: tuple[Api, SimulatedWorld]) -> None:
    words = {"file": packed(a_change(weight=7)), "called": "change.yaml", "for": "1d"}
    code, _, body = await asked[0].answer(f"plan?{urlencode(words)}")
    _, _, text = await asked[0].answer(f"plan?{urlencode({**words, 'view': 'markdown'})}")

    found = json.loads(body)
    assert (code, found["kind"], found["leftBehind"], found["nodes"]) == (200, "PlannedChange", False, [])
    assert "default" in text


async def test_what_a_file_has_wrong_is_named_with_the_file(asked: tuple[Api, SimulatedWorld]) -> None:
    words = {"file": packed(a_change(wieght=7)), "called": "change.yaml"}
    wrong, spoilt = [await asked[0].answer(f"plan?{urlencode(w)}") for w in (words, {"file": "x"})]

    assert wrong[0] == 400 and "change.yaml, document 1" in json.loads(wrong[2])["message"]
    assert "spec.wieght" in json.loads(wrong[2])["message"]
    assert spoilt[0] == 400 and "cannot be unpacked" in json.loads(spoilt[2])["message"]


def test_a_file_arrives_as_it_was_and_one_that_is_too_large_does_not_leave() -> None:
    assert unpacked(packed("a: ü\n" * 1000)) == "a: ü\n" * 1000
    with pytest.raises(CommandFailed, match="use --local"):
        packed(random.Random(7).randbytes(100_000).hex())


async def test_a_forecast_is_asked_for_some_days(asked: tuple[Api, SimulatedWorld]) -> None:
    code, _, body = await asked[0].answer("forecast?for=2d")
    assert (code, json.loads(body)["kind"]) == (200, "Forecast")


async def test_the_page_is_html(asked: tuple[Api, SimulatedWorld]) -> None:
    code, content, body = await asked[0].answer("page")
    assert (code, content) == (200, "text/html; charset=utf-8") and str(body).startswith("<!doctype html>")


async def test_many_who_ask_at_once_get_one_answer(
    asked: tuple[Api, SimulatedWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Look] = []

    def counted(look: Look) -> StatusAnswer:
        made.append(look)
        return status_of(look)

    monkeypatch.setattr(fleet, "status_of", counted)

    answers = await asyncio.gather(*[asked[0].answer("status") for _ in range(20)])

    assert {code for code, _, _ in answers} == {200} and len({body for _, _, body in answers}) == 1
    assert len(made) == 1


async def test_a_question_that_waits_too_long_is_refused(
    asked: tuple[Api, SimulatedWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "BUSY_SECONDS", 0.05)
    await asked[0].budget.turn.acquire()

    code, _, body = await asked[0].answer("status")

    assert code == 503 and "busy" in body
