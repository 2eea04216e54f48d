"""A start waits for an API server or a cloud that does not answer, and for nothing that a person must put right."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from dovetail.adapters.kube import adapter as adapters
from dovetail.adapters.kube.watching import watch
from dovetail.adapters.kubernetes_json.pod_kind import POD
from dovetail.cli.demo.temporal_server import free_ports
from dovetail.ports.failures import Forbidden, Misconfigured, Permanent, Unauthenticated, Unreachable
from dovetail.settings.providers import PROVIDERS
from dovetail.settings.settings import Settings, read_settings
from dovetail.wiring.world import World
from dovetail.worker.absence import opening
from dovetail.worker.absence.opening import until_opened, until_ready
from dovetail.worker.http_server import Endpoint
from tests.adapters.kube.fake_server import FakeServer, Reply, fake_server, says
from tests.system.test_temporal_away import ask
from tests.waiting import until
from tests.worker.made_up_cloud import MadeUpCloud
from tests.worker.test_providers import CHOSEN, an_empty_cluster

NAMESPACE = "/api/v1/namespaces/kube-system"
NO_LEASES = {"kind": "LeaseList", "metadata": {"resourceVersion": "1"}, "items": []}
ITS_UID = says(200, {"metadata": {"name": "kube-system", "uid": "uid-1"}})


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[FakeServer]:
    async with fake_server(tmp_path) as started:
        an_empty_cluster(started)
        started.on("/apis/coordination.k8s.io/v1/leases", says(200, NO_LEASES))
        yield started


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROVIDERS, "made-up", "tests.worker.made_up_cloud")


async def is_opened(waiting: "asyncio.Task[World | None]") -> bool:
    world = await waiting
    if world is not None:
        await world.close()
    return world is not None


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Those between two tries; here they have no length."""
    pauses: list[float] = []

    async def pause(stop: asyncio.Event, seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(opening, "pause", pause)
    return pauses


def settings_of(server: FakeServer, port: int = 0) -> Settings:
    found = {
        **CHOSEN,
        "KUBECONFIG": str(server.kubeconfig()),
        "HEALTH_PROBE_PORT": str(port),
        "DOVETAIL_LISTEN_ADDRESS": "*",  # as a pod has it
    }
    return read_settings(found)


@pytest.fixture(autouse=True)
def listened(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Where it would have listened; here nothing listens beyond this machine."""
    hosts: list[str | None] = []

    def here(*, host: str | None, **rest: Any) -> Endpoint:
        hosts.append(host)
        return Endpoint(host="127.0.0.1", **rest)

    monkeypatch.setattr(opening, "Endpoint", here)
    return hosts


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Waits for the first lists, and between two of one kind."""
    for module, name in ((adapters, "READY_SECONDS"), (adapters, "REFUSED_SECONDS"), (watch, "_REFUSED_SECONDS")):
        monkeypatch.setattr(module, name, 0.1)
    return monkeypatch


@pytest.mark.parametrize(("status", "failure"), [(401, Unauthenticated), (403, Forbidden)])
async def test_what_a_person_must_put_right_ends_the_start(
    server: FakeServer, status: int, failure: type[Exception]
) -> None:
    server.on(NAMESPACE, says(status, {"message": "the token has expired"}))

    with pytest.raises(failure, match=f"^cluster {server.url}: the token has expired"):
        await until_opened(settings_of(server), asyncio.Event())


async def test_it_waits_for_an_api_server_without_its_store_and_answers_probes_meanwhile(
    server: FakeServer, caplog: pytest.LogCaptureFixture, listened: list[str | None]
) -> None:
    caplog.set_level(logging.WARNING)
    server.on(NAMESPACE, says(500, {"message": "etcdserver: no leader"}))
    [port] = free_ports(1)
    waiting = asyncio.create_task(until_opened(settings_of(server, port), asyncio.Event()))
    await until(lambda: len(server.asked) > 2, words="the server is asked again and again")
    health, ready = [await ask(port, path) for path in ("/healthz", "/readyz")]
    server.on(NAMESPACE, ITS_UID)

    why = f"cluster {server.url}: etcdserver: no leader"
    assert await is_opened(waiting)
    assert (health, ready) == ((200, f"ok\n{why}\n"), (503, f"{why}\n"))
    assert listened == [None], "a kubelet asks at the pod's address"
    said = [each.message for each in caplog.records if each.name != "asyncio"]
    assert said == [f"{why}; this worker waits until it answers"]


@pytest.mark.parametrize(
    "page",
    [
        says(200, b'{"status": "ok"}'),
        *[says(status, b"<html>not for you</html>") for status in (400, 401, 403, 404)],
    ],
)
async def test_it_waits_where_a_gateway_answers_in_the_place_of_the_api_server(server: FakeServer, page: Reply) -> None:
    server.on(NAMESPACE, page, page, ITS_UID)

    assert await is_opened(asyncio.create_task(until_opened(settings_of(server), asyncio.Event())))


async def test_it_waits_for_a_cloud_that_hangs_and_then_refuses_connections_and_answers_probes_meanwhile(
    server: FakeServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that ended instead drained nothing and answered no warning until its back-off was over, and while its
    first call hung a kubelet had nobody to ask."""
    hangs, goes_on, tries = asyncio.Event(), asyncio.Event(), list[int]()

    async def check(self: MadeUpCloud) -> None:
        tries.append(1)
        hangs.set()
        await goes_on.wait()
        if len(tries) < 3:
            raise Unreachable("made-up:Look", "could not connect")

    monkeypatch.setattr(MadeUpCloud, "check", check)
    [port] = free_ports(1)
    waiting = asyncio.create_task(until_opened(settings_of(server, port), asyncio.Event()))
    await hangs.wait()
    (alive, _), (ready, _) = [await ask(port, path) for path in ("/healthz", "/readyz")]
    goes_on.set()

    assert await is_opened(waiting)
    assert (alive, ready, len(tries)) == (200, 503, 3)
    said = "made-up:Look: could not connect; this worker waits until it answers"
    assert [each.message for each in caplog.records if each.name == opening.__name__] == [said]


async def test_a_cloud_that_stays_away_is_asked_less_and_less_often(
    server: FakeServer, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try begins to list the whole cluster."""

    async def check(self: MadeUpCloud) -> None:
        if len(pauses) < 6:
            raise Unreachable("made-up:Look", "could not connect")

    monkeypatch.setattr(MadeUpCloud, "check", check)

    assert await is_opened(asyncio.create_task(until_opened(settings_of(server), asyncio.Event())))
    assert pauses == [4, 8, 16, 30, 30, 30]


async def test_a_cloud_that_a_person_must_put_right_ends_the_start(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(self: MadeUpCloud) -> None:
        raise Misconfigured("made-up credentials", "they are of another account")

    monkeypatch.setattr(MadeUpCloud, "check", check)

    with pytest.raises(Misconfigured, match="another account"):
        await until_opened(settings_of(server), asyncio.Event())


async def test_a_worker_that_is_stopped_waits_no_longer(server: FakeServer) -> None:
    server.on(NAMESPACE, says(503))
    stop = asyncio.Event()
    waiting = asyncio.create_task(until_opened(settings_of(server), stop))
    await until(lambda: bool(server.asked), words="the server is asked")
    stop.set()

    assert not await waiting
    assert not await until_ready(cast(World, None), settings_of(server), stop)


NO_PODS = says(200, {"kind": "PodList", "metadata": {"resourceVersion": "5"}, "items": []})
LATE = {
    "slow": None,
    "busy": says(429),
    "overloaded": says(503),
    "no route": says(404, b"no route"),
    "a login": says(401, b"<html>Sign in</html>"),
    "a gateway's right": says(403, b"<html>Access denied</html>"),
}


@pytest.mark.parametrize("answer", LATE)
async def test_first_lists_are_waited_for_however_late_they_come(
    server: FakeServer, caplog: pytest.LogCaptureFixture, short: pytest.MonkeyPatch, answer: str
) -> None:
    """A worker that ended instead was started again after ever longer, and listed the whole cluster each time."""
    is_there = asyncio.Event()

    async def slowly(request: web.Request) -> web.StreamResponse:
        await is_there.wait()
        return await NO_PODS(request)

    server.on(POD.path, LATE[answer] or slowly)
    world = await until_opened(settings_of(server), asyncio.Event())
    assert world is not None
    try:
        if answer == "no route":
            server.on(NAMESPACE, says(404, b"no route"))
        waiting = asyncio.create_task(until_ready(world, settings_of(server), asyncio.Event()))
        await until(lambda: "this worker waits until it answers" in caplog.text, words="the log says what it waits for")
        assert not waiting.done()
        server.on(POD.path, NO_PODS)
        server.on(NAMESPACE, ITS_UID)
        is_there.set()
        short.setattr(adapters, "REFUSED_SECONDS", 60.0)
        assert await waiting
    finally:
        await world.close()


@pytest.mark.parametrize("status", [403, 404])
async def test_first_lists_that_are_refused_end_the_start(
    server: FakeServer, short: pytest.MonkeyPatch, status: int
) -> None:
    """Rights and definitions are a person's."""
    server.on(POD.path, says(503), says(status))
    world = await until_opened(settings_of(server), asyncio.Event())
    assert world is not None
    try:
        with pytest.raises(Permanent, match=r"^cluster view: Pod: "):
            await until_ready(world, settings_of(server), asyncio.Event())
    finally:
        await world.close()
