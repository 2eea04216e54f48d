"""What anybody on the network may ask of a worker, at its front door: it is answered, and no heartbeat waits for it."""

import asyncio
import json
import threading
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import pytest_asyncio

from dovetail.answers.change import planned
from dovetail.answers.change.carried import packed
from dovetail.answers.change.documents import documents_of
from dovetail.answers.explain.explain_pod import explain_pod
from dovetail.answers.look.recording import Recording
from dovetail.answers.questions import ahead, decisions, fleet
from dovetail.answers.replay import replaying
from dovetail.answers.replay.recorder import FlightStore
from dovetail.answers.serving import api as serving_api
from dovetail.answers.serving import budget
from dovetail.answers.serving.api import OLD_SECONDS, Api
from dovetail.answers.serving.askers import Askers
from dovetail.answers.serving.budget import AT_ONCE_SECONDS, KEPT_FACTOR, KEPT_MOST_SECONDS, KEPT_SECONDS, SHARE, Budget
from dovetail.answers.serving.replies import ASKER
from dovetail.answers.serving.worker_source import WorkerSource
from dovetail.answers.status.status import status_of
from dovetail.answers.turn import computing
from dovetail.connection.presence import TemporalPresence
from dovetail.wiring.world import World, open_world
from dovetail.worker.http_server import Endpoint
from tests.adapters.simulator.manifests import a_deployment
from tests.cli.test_answers import a_change
from tests.cli.test_flights import a_decision, store_of
from tests.cli.test_reading import HEAD, LAUGHS, bomb, carried
from tests.cli.worlds import a_ready_pool, a_world, settings_of
from tests.held_loop import HELD, MOST_SECONDS
from tests.waiting import until

Reply = tuple[int, dict[str, Any]]
HEADERS = "Host: localhost\r\nConnection: close\r\n"


class Door:
    """A worker's endpoint with its API."""

    def __init__(self, api: Api, endpoint: Endpoint) -> None:
        self.api, self._endpoint = api, endpoint

    async def get(self, target: str, asker: str = "10.0.0.1") -> Reply:
        """GET /api/v1/TARGET over the network, from an address that the API server's proxy names."""
        assert self._endpoint.server is not None
        reader, writer = await asyncio.open_connection(*self._endpoint.server.sockets[0].getsockname()[:2])
        writer.write(f"GET /api/v1/{target} HTTP/1.1\r\n{HEADERS}X-Forwarded-For: {asker}\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return int(head.split()[1]), json.loads(body)


@pytest_asyncio.fixture(loop_scope="session")
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    simulated = a_world(tmp_path, a_ready_pool(), a_deployment(3))
    world: World = await open_world(settings_of(simulated))
    api = Api(WorkerSource(settings_of(simulated), world, TemporalPresence("demo")))
    askers = Askers((), world.inspection.servers)
    endpoint = Endpoint(host="127.0.0.1", port=0, routes={}, pages={"/api/v1/": api.reply}, askers=askers)
    await endpoint.start()
    yield Door(api, endpoint)
    await endpoint.stop()
    await world.close()


def file(data: bytes) -> str:
    return f"plan?called=change.yaml&file={carried(zlib.compress(data, 9))}"


STRANGE = {
    "a megabyte of YAML": (file(f"{HEAD}  x: [{'a,' * 500_000}]\n".encode()), "larger than 256 KiB"),
    "as many values as fit": (
        file(f"{HEAD}  x: [{'a,' * 120_000}]\n".encode()),
        "document 1, line 5: more than 20,000",
    ),
    "200 kB of brackets": (file(b"[" * 200_000), "change.yaml, document 1, line 1: more than 50 levels"),
    "900,000 digits": (file(f"{HEAD}  weight: {'9' * 900_000}".encode()), "larger than 256 KiB"),
    "200,000 digits": (file(f"{HEAD}  weight: {'9' * 200_000}".encode()), "line 5: a number of 200,000 characters"),
    "a billion laughs": (file(LAUGHS.encode()), "line 5: more than 20,000 values, with those that aliases stand for"),
    "a bomb": (f"plan?file={carried(bomb(20))}", "larger than 256 KiB"),
    "a bomb in a bomb": (file(zlib.compress(bytes(2**27), 9)), "cannot be unpacked"),
    "no base64": (f"plan?file={quote('ü' * 100)}", "cannot be unpacked"),
    "no UTF-8": (file(b"\xff\xfe"), "cannot be unpacked"),
    "a time of 60,000 digits": (f"forecast?for={'9' * 60_000}d", "--for: '9999"),
    "a moment of 60,000 digits": (f"log?since={'9' * 60_000}", "--since: '9999"),
    "a moment before time": ("log?since=0001-01-01T00:00:00%2B23:59", "is before 1970"),
    "a query of many words": (f"status?{'a=1&' * 10_000}", "more than 32 words"),
}


@pytest.mark.parametrize("name", STRANGE)
async def test_a_strange_question_is_an_answer_and_holds_nobody_up(
    door: Door, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    target, words = STRANGE[name]
    HELD.longest = 0.0

    status, found = await door.get(target)

    assert (status, found["kind"]) == (400, "Error") and words in found["message"]
    assert len(found["message"]) < 1000 and "Traceback" not in caplog.text
    assert HELD.longest < MOST_SECONDS


@pytest.mark.parametrize(
    "target", ["//[x", "explain/pod/" + "x" * 60_000, "history/" + "%00" * 1000, "status?width=" + "9" * 60_000, "%ff"]
)
async def test_a_strange_path_is_an_answer_too(door: Door, target: str, caplog: pytest.LogCaptureFixture) -> None:
    status, found = await door.get(target)
    assert status in (200, 400, 404, 503) and found["kind"] in ("Error", "ClusterStatus")
    assert "Traceback" not in caplog.text


async def test_a_good_file_is_played_forward_as_before(door: Door) -> None:
    status, found = await door.get(f"plan?{urlencode({'file': packed(a_change(weight=7)), 'for': '1d'})}")
    assert (status, found["kind"], found["leftBehind"]) == (200, "PlannedChange", False)


async def test_an_error_is_kept_as_an_answer_is(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    plain = documents_of

    def counted(*given: Any) -> Any:
        made.append(given)
        return plain(*given)

    monkeypatch.setattr(ahead, "documents_of", counted)
    now = [100.0]
    door.api.budget.clock = lambda: now[0]
    target = STRANGE["200 kB of brackets"][0]

    replies = [await door.get(target) for _ in range(5)]
    now[0] += 0.9
    replies.append(await door.get(f"{target}&view=text"))
    replies.append(await door.get(f"{target}&nobody=knows"))
    assert len(made) == 1 and replies == [replies[0]] * 7
    now[0] += 0.2
    assert await door.get(target) == replies[0] and len(made) == 2


async def test_a_failure_of_ours_is_logged_once_while_it_is_kept(
    door: Door, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: object) -> object:
        raise KeyError("x")

    monkeypatch.setattr(fleet, "status_of", fails)
    replies = [await door.get("status") for _ in range(3)]
    assert [status for status, _ in replies] == [500] * 3 and "KeyError" in replies[0][1]["message"]
    assert len([record for record in caplog.records if record.name == budget.__name__]) == 1


async def test_one_that_others_could_not_answer_is_asked_again_soon(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporal may be there again."""
    now = [100.0]
    door.api.budget.clock = lambda: now[0]

    async def away(_: object) -> None:
        now[0] += 60.0
        raise TimeoutError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(WorkerSource, "temporal", away)
        assert (await door.get("log"))[0] == 503
    now[0] += 1.1
    status, found = await door.get("log")
    assert status == 503 and "not connected" in found["message"]


class Costs:
    """Clocks that run on with each question: it takes so long, and so much of it is work."""

    def __init__(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.worked, self.slept = 100.0, 10.0, list[float]()
        self.takes, self.work = 10.0, 10.0
        api.budget.clock, api.budget.processor = lambda: self.now, lambda: self.worked
        plain = status_of

        def costly(look: Any) -> Any:
            self.now += self.takes
            self.worked += self.work
            return plain(look)

        async def sleeps(seconds: float) -> None:
            self.slept.append(seconds)
            self.now += seconds

        monkeypatch.setattr(fleet, "status_of", costly)
        monkeypatch.setattr(budget, "rest", sleeps)


async def test_unlike_questions_are_held_to_a_fifth_of_a_core_together(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = Costs(door.api, monkeypatch)
    began = costs.now
    for number in range(12):
        assert (await door.get(f"status?pool={number}"))[0] == 200

    spent, passed = 12 * costs.work, costs.now - began
    assert spent <= AT_ONCE_SECONDS + SHARE * passed + costs.work
    assert costs.slept[:2] == [0.0, 0.0], "a person who asks a few times does not wait"


async def test_errors_count_and_waiting_for_others_does_not(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = Costs(door.api, monkeypatch)
    costs.work = 0.0
    for number in range(12):
        await door.get(f"status?pool={number}")
    assert set(costs.slept) == {0.0} and door.api.budget.spent.owed(costs.now) == 0.0

    def fails(_: object) -> object:
        costs.now += 10.0
        costs.worked += 10.0
        raise KeyError("x")

    monkeypatch.setattr(fleet, "status_of", fails)
    await door.get("status")
    assert door.api.budget.spent.owed(costs.now) == pytest.approx(10.0)


async def test_who_would_wait_too_long_for_the_share_is_refused_and_leaves_the_turn_to_others(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "BUSY_SECONDS", 0.05)
    door.api.budget.spent.pay(AT_ONCE_SECONDS + 100.0, door.api.budget.clock())

    status, found = await door.get("status")
    door.api.budget.spent.seconds = 0.0

    assert status == 503 and "busy with other questions" in found["message"]
    assert (await door.get("status"))[0] == 200


async def test_an_answer_is_kept_for_a_few_times_what_it_worked_and_never_for_what_it_waited(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = Costs(door.api, monkeypatch)
    costs.work = 1.0
    await door.get("status")
    costs.now += KEPT_FACTOR * costs.work - 0.1
    await door.get("status")
    assert len(costs.slept) == 1

    costs.now, costs.work = costs.now + 0.2, 0.0
    await door.get("status")
    costs.now += KEPT_SECONDS + 0.1
    await door.get("status")
    assert len(costs.slept) == 3, "it took ten seconds, all of them of waiting"

    costs.now, costs.work = costs.now + 100.0, 10.0
    await door.get("status")
    costs.now += KEPT_MOST_SECONDS + 0.1
    await door.get("status")
    assert len(costs.slept) == 5, "nobody takes an older one for now"


async def test_an_answer_that_took_long_says_of_when_it_is(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_780_000_000.0]
    monkeypatch.setattr(serving_api, "time", SimpleNamespace(time=lambda: now[0]))
    asked = await door.get("names")
    assert "asOf" not in asked[1]
    target = f"explain/pod/{asked[1]['pods'][0]}"
    plain = explain_pod

    def slow(*given: Any) -> Any:
        now[0] += OLD_SECONDS + 3.0
        return plain(*given)

    monkeypatch.setattr(decisions, "explain_pod", slow)
    _, found = await door.get(target)
    assert found["asOf"] == "2026-05-28T20:26:40Z"
    code, _, text = await door.api.answer(f"{target}?view=text")
    assert code == 200 and str(text).endswith("\nas of 2026-05-28T20:26:40Z, 8 s ago\n")


async def test_who_needs_no_temporal_never_waits_for_one_that_does(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    away = asyncio.Event()

    async def until_away() -> None:
        await away.wait()

    async def hangs(_: object) -> None:
        await asyncio.Event().wait()

    door.api.until_away = until_away
    monkeypatch.setattr(WorkerSource, "temporal", hangs)
    questions = [(f"{path}?since={n}d", f"10.0.0.{n}") for n in range(1, 9) for path in ("log", "savings")]
    asked = [asyncio.create_task(door.get(*question)) for question in questions]
    await until(lambda: door.api.budget.waits.locked())

    for path in ("status", "nodes", "plan", "explain/pod/default/web-1", "names"):
        assert (await door.get(path))[0] in (200, 404)
    away.set()
    replies = await asyncio.gather(*asked)

    assert {status for status, _ in replies} == {503}
    assert {found["message"].partition(",")[0] for _, found in replies} == {"Temporal does not answer"}


async def test_a_strangers_dear_questions_keep_nobody_else_out(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many they are: the next turn is another's, and who has used up the half waits alone."""
    costs = Costs(door.api, monkeypatch)
    costs.takes = costs.work = 4.0
    makes, made = asyncio.Event(), list[str]()
    plain: Any = vars(fleet)["status_of"]  # which costs

    async def held(seconds: float) -> None:
        costs.slept.append(seconds)
        if seconds:
            await asyncio.Event().wait()  # until the share is paid for, which takes longer than this test
        await makes.wait()

    def noted(look: Any) -> Any:
        made.append(ASKER.get())
        return plain(look)

    monkeypatch.setattr(budget, "rest", held)
    monkeypatch.setattr(fleet, "status_of", noted)
    stranger = [asyncio.create_task(door.get(f"status?pool={n}", "10.9.9.9")) for n in range(20)]
    await until(lambda: len(costs.slept) == 1)

    operator = asyncio.create_task(door.get("status?pool=mine", "10.0.0.7"))
    await until(lambda: sum(asker.asks for asker in door.api.budget._askers.values()) == 21)
    makes.set()

    assert (await operator)[0] == 200 and made.index("10.0.0.7") <= 1, "one of the stranger's came before at most"
    await until(lambda: any(costs.slept))
    assert (await door.get("status?pool=other", "10.0.0.7"))[0] == 200, "the stranger waits for their own share"
    assert not all(each.done() for each in stranger)
    for each in stranger:
        each.cancel()


async def test_an_asker_holds_two_of_the_turns_that_wait_for_temporal(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []

    async def hangs(asked: object) -> None:
        begun.append(asked)
        await asyncio.Event().wait()

    monkeypatch.setattr(WorkerSource, "temporal", hangs)
    stranger = [asyncio.create_task(door.get(f"log?since={n}d", "10.9.9.9")) for n in range(1, 11)]
    await until(lambda: len(begun) == 2)
    operator = asyncio.create_task(door.get("log", "10.0.0.7"))
    await until(lambda: len(begun) == 3)
    for each in (*stranger, operator):
        each.cancel()


@pytest.mark.parametrize(
    "target",
    [
        f"plan?{urlencode({'file': packed(a_change(weight=7)), 'for': '1d'})}",
        "explain/node/n1?at=3h",
        "explain/pod/default/p?at=3h",
        "replay",
    ],
)
async def test_a_cloud_or_a_bucket_that_hangs_keeps_nobody_elses_question_out(
    door: Door, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    hung = asyncio.Event()

    async def hangs(*_: object) -> None:
        hung.set()
        await asyncio.Event().wait()

    async def close() -> None: ...

    monkeypatch.setattr(planned, "suppose", hangs)
    monkeypatch.setattr(replaying, "open_kept_objects", lambda *_: SimpleNamespace(names=hangs, close=close))
    stranger = asyncio.create_task(door.get(target, "10.9.9.9"))
    await hung.wait()

    assert (await door.get("status", "10.0.0.7"))[0] == 200
    assert (await door.get("status?pool=mine", "10.9.9.9"))[0] == 200
    for each in (stranger, *door.api.budget._made.values()):
        each.cancel()


async def test_an_answer_that_is_not_made_in_time_leaves_its_turn(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(_: object) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        short = door.api.source.settings.model_copy(update={"pass_limit": 0.01, "search_limit": 0.01})
        patch.setattr(door.api.source, "settings", short)
        patch.setattr(budget, "MAKING_SECONDS", 0.01)
        patch.setattr(WorkerSource, "fleet", hangs)
        status, found = await door.get("status")
    assert status == 503 and "no answer within" in found["message"]
    assert (await door.get("nodes", "10.0.0.7"))[0] == 200


async def test_kept_decisions_are_read_side_by_side_and_unpacked_one_at_a_time(
    door: Door, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An unpacked one of a large cluster takes hundreds of megabytes."""
    (then := tmp_path / "then").mkdir()
    settings, flight = await a_decision(then)
    monkeypatch.setattr(door.api.source, "settings", settings)
    for number in range(8):
        await store_of(settings).put(replace(flight, snapshot=replace(flight.snapshot, now=1000.0 + number)))
    rows = (await replaying.list_flights(settings)).flights
    read, made, now, most, go_on = list[object](), replaying.replayed, list[str](), list[int](), threading.Event()
    plain = FlightStore.read

    async def noted(store: FlightStore, kept: Any) -> bytes | None:
        data = await plain(store, kept)
        read.append(kept)
        return data

    def held(settings: Any, identity: str, flight: Recording) -> Any:
        now.append(identity)
        most.append(len(now))
        go_on.wait(5)
        now.remove(identity)
        return made(settings, identity, flight)

    monkeypatch.setattr(FlightStore, "read", noted)
    monkeypatch.setattr(replaying, "replayed", held)
    asked = [asyncio.create_task(door.get(f"replay/{row.id}", f"10.0.0.{n % 4}")) for n, row in enumerate(rows)]
    await until(lambda: len(read) == 8 and bool(now))
    await asyncio.to_thread(lambda: None)  # behind all that wait for a thread
    go_on.set()

    assert {status for status, _ in await asyncio.gather(*asked)} == {200}
    assert most == [1] * 8


async def test_what_others_compute_while_a_question_waits_for_the_turn_is_not_counted_for_it() -> None:
    now = [100.0]
    mine = Budget(clock=lambda: now[0], processor=lambda: now[0])
    at_the_turn = asyncio.Event()
    await mine.turn.acquire()

    async def make() -> str:
        at_the_turn.set()
        async with computing():
            now[0] += 2.0
            return "made"

    asked = asyncio.create_task(mine.answer("q", make, waits=True))
    await at_the_turn.wait()
    now[0] += 50.0
    mine.turn.release()

    assert await asked == "made" and mine.spent.owed(now[0]) == pytest.approx(2.0)
    assert not mine.turn.locked()
