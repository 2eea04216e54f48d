"""Who may ask a worker, what a browser is held to, and that nobody keeps others out by saying or reading nothing."""

import asyncio
import gzip
import re
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import pytest

from dovetail.answers.serving.askers import LOOK_SECONDS, Askers, Visitor
from dovetail.answers.serving.headers import POLICY
from dovetail.answers.serving.page_files import file_of_page
from dovetail.answers.serving.replies import ASKER, Answer
from dovetail.ports.failures import Unreachable
from dovetail.settings.settings import SettingsError, read_settings
from dovetail.worker import http_server
from dovetail.worker.http_server import Endpoint
from tests.waiting import until

SERVER, STRANGER = "10.0.0.5", "10.244.1.9"


class Cluster:
    """Where the API server comes from, and how often that was asked."""

    def __init__(self, *addresses: str) -> None:
        self.addresses, self.asked, self.away = addresses, 0, False
        self.now = 1000.0

    async def servers(self) -> Collection[str]:
        self.asked += 1
        if self.away:
            raise Unreachable("EndpointSlice", "no answer")
        return self.addresses

    def askers(self, *named: str) -> Askers:
        return Askers(named, self.servers, clock=lambda: self.now)


async def may(askers: Askers, address: str, host: str = "", **more: str) -> bool:
    refused = await askers.refusal(Visitor(address=address, headers={"host": host, **more}))
    assert refused is None or (refused[0] == 403 and '"kind": "Error"' in str(refused[2]))
    return refused is None


async def test_nobody_but_the_api_server_and_this_machine_may_ask() -> None:
    askers = Cluster(SERVER, "fd00::5").askers()

    assert await may(askers, "127.0.0.1") and await may(askers, "::1") and await may(askers, "::ffff:127.0.0.1")
    assert await may(askers, SERVER) and await may(askers, f"::ffff:{SERVER}") and await may(askers, "fd00:0:0::5")
    assert not await may(askers, STRANGER) and not await may(askers, f"::ffff:{STRANGER}")


async def test_a_network_may_be_let_in_and_everybody_too() -> None:
    assert await may(Cluster().askers("10.244.0.0/16"), STRANGER)
    assert not await may(Cluster().askers("10.245.0.0/16", "10.244.1.8"), STRANGER)
    everybody = Cluster().askers("0.0.0.0/0", "::/0")
    assert await may(everybody, STRANGER) and await may(everybody, "fd00::9")


async def test_strangers_make_a_worker_look_twice_a_minute_at_most() -> None:
    cluster = Cluster("10.0.0.6")
    askers = cluster.askers()
    for _ in range(100):
        assert not await may(askers, STRANGER)
    assert not await may(askers, SERVER) and cluster.asked == 1

    cluster.addresses = (SERVER,)  # the API server has moved
    cluster.now += LOOK_SECONDS
    assert await may(askers, SERVER) and cluster.asked == 2
    cluster.away = True
    cluster.now += LOOK_SECONDS
    assert not await may(askers, STRANGER) and await may(askers, SERVER), "what was known is known"


OURS = ("10.0.0.9:8082", "localhost:8080", "[::1]:80", "dovetail", "d.ops.svc:8082", "", "A.b")
ANOTHERS = ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "svc.evil:1", "x.svc.co")


@pytest.mark.parametrize("host", OURS)
async def test_a_worker_is_called_by_an_address_or_a_name_that_no_stranger_can_have(host: str) -> None:
    assert await may(Cluster().askers("a.B"), "127.0.0.1", host)


@pytest.mark.parametrize("host", ANOTHERS)
async def test_a_page_of_another_origin_that_calls_itself_ours_is_refused(host: str) -> None:
    """DNS rebinding: the browser comes from this machine, and says the name under which it found us."""
    askers = Cluster(SERVER).askers("10.0.0.0/8")

    assert not await may(askers, "127.0.0.1", host) and not await may(askers, "10.3.3.3", host)


async def test_the_api_server_calls_by_the_name_that_the_person_typed() -> None:
    askers = Cluster(SERVER).askers()
    assert await may(askers, SERVER, "abc.gr7.eu-west-1.eks.amazonaws.com")


async def test_askers_are_told_apart_by_what_the_api_server_saw_and_by_nothing_that_they_say() -> None:
    askers = Cluster(SERVER).askers("10.244.0.0/16")
    assert await may(askers, SERVER)

    def who(address: str, forwarded: str) -> str:
        return askers.who(Visitor(address=address, headers={"x-forwarded-for": forwarded}))

    assert who(SERVER, "1.1.1.1, 203.0.113.4") == "203.0.113.4"
    assert who(STRANGER, "203.0.113.4") == STRANGER
    assert who(SERVER, "") == SERVER and len(who(SERVER, "x" * 9999)) == 100


def test_the_setting_says_what_it_cannot_read() -> None:
    found = read_settings({"CLUSTER_NAME": "c", "DOVETAIL_API_FROM": "10.0.0.0/8, ::/0,ops.example"})
    assert found.api_from == ("10.0.0.0/8", "::/0", "ops.example") and found.asked_at == 0
    for wrong in ("10.0.0.0/40", "10.0.0", "a/b", "*"):
        with pytest.raises(SettingsError, match=r"^DOVETAIL_API_FROM: .*neither a network"):
            read_settings({"CLUSTER_NAME": "c", "DOVETAIL_API_FROM": wrong})


def opened(endpoint: Endpoint) -> int:
    """Connections to it."""
    assert endpoint.connections is not None
    return len(endpoint.connections.connections)


async def served(target: str, endpoint: Endpoint) -> tuple[int, dict[str, str], str]:
    assert endpoint.server is not None
    reader, writer = await asyncio.open_connection(*endpoint.server.sockets[0].getsockname()[:2])
    writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    writer.close()
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


async def test_the_page_allows_no_script_but_its_own() -> None:
    async def of_page(target: str) -> Answer:
        found = file_of_page(target.lstrip("/"))
        assert found is not None
        return found

    endpoint = Endpoint(host="127.0.0.1", port=0, routes={}, pages={"/": of_page}, askers=Cluster().askers())
    await endpoint.start()
    status, headers, body = await served("/page", endpoint)
    _, of_script, _ = await served("/page/app.js", endpoint)
    await endpoint.stop()

    policy = dict(part.split(" ", 1) for part in headers[POLICY].split("; "))
    assert status == 200 and "unsafe" not in headers[POLICY] and policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert re.findall(r"<(?:script|style)[^>]*>[^<]|\sstyle=|\son[a-z]+=", body) == [], "no policy would let it run"
    assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY")
    assert of_script["X-Content-Type-Options"] == "nosniff"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"


async def test_who_says_nothing_makes_room_for_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MOST_OPEN", 3)

    async def alive() -> Answer:
        return 200, "text/plain", "ok\n"

    endpoint = Endpoint(host="127.0.0.1", port=0, routes={"/healthz": alive})
    await endpoint.start()
    assert endpoint.server is not None
    place = endpoint.server.sockets[0].getsockname()[:2]
    silent = [await asyncio.open_connection(*place) for _ in range(3)]
    await until(lambda: opened(endpoint) == 3)

    assert [(await served("/healthz", endpoint))[0] for _ in range(5)] == [200] * 5
    [dropped] = await asyncio.gather(silent[0][0].read(), return_exceptions=True)
    assert dropped == b"" or isinstance(dropped, ConnectionError), "the oldest makes room"
    for _, writer in silent:
        writer.close()
    await endpoint.stop()


async def test_an_answer_that_nobody_reads_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "READ_SECONDS", 0.2)

    async def large() -> tuple[int, str, list[bytes]]:
        return 200, "text/plain", [b"x" * 65536] * 1000

    endpoint = Endpoint(host="127.0.0.1", port=0, routes={"/metrics": large})
    await endpoint.start()
    assert endpoint.server is not None
    _, writer = await asyncio.open_connection(*endpoint.server.sockets[0].getsockname()[:2], limit=1)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await until(lambda: opened(endpoint) == 1)

    await until(lambda: opened(endpoint) == 0)
    writer.close()
    await endpoint.stop()


async def test_one_asker_has_so_many_requests_under_way_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MOST_OF_ONE", 2)
    goes_on, asked = asyncio.Event(), list[str]()

    async def waits(target: str) -> Answer:
        asked.append(ASKER.get())
        await goes_on.wait()
        return 200, "text/plain", "ok\n"

    endpoint = Endpoint(host="127.0.0.1", port=0, routes={}, pages={"/": waits}, askers=Cluster().askers())
    await endpoint.start()
    first = [asyncio.create_task(served("/a", endpoint)) for _ in range(2)]
    await until(lambda: len(asked) == 2)

    assert (await served("/a", endpoint))[0] == 503
    goes_on.set()
    assert [status for status, _, _ in await asyncio.gather(*first)] == [200, 200]
    assert (await served("/a", endpoint))[0] == 200 and not endpoint._asking
    await endpoint.stop()


@asynccontextmanager
async def one_route(body: str = "ok\n") -> AsyncIterator[tuple[Endpoint, tuple[str, int]]]:
    """An endpoint that answers /a and pages below /p, and where it listens."""

    async def route() -> Answer:
        return 200, "text/plain", body

    async def page(target: str) -> Answer:
        return 200, "text/plain", body

    endpoint = Endpoint(host="127.0.0.1", port=0, routes={"/a": route}, pages={"/p": page})
    await endpoint.start()
    assert endpoint.server is not None
    try:
        yield endpoint, endpoint.server.sockets[0].getsockname()[:2]
    finally:
        await endpoint.stop()


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """One answer of a connection that is kept."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, await reader.readexactly(int(headers["Content-Length"]))


async def test_a_connection_is_kept_for_the_next_request_and_no_longer_than_somebody_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.3)
    async with one_route() as (endpoint, place):
        reader, writer = await asyncio.open_connection(*place)
        for _ in range(3):
            writer.write(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")
            status, headers, body = await answer_of(reader)
            assert (status, headers["Server"], body) == (200, "dovetail", b"ok\n")
            assert headers.get("Connection") != "close"
        assert await reader.read() == b"" and opened(endpoint) == 0, "ten seconds later it is closed"
        writer.close()


async def test_two_requests_at_once_are_answered_in_turn() -> None:
    async with one_route() as (_, place):
        reader, writer = await asyncio.open_connection(*place)
        writer.write(
            b"".join(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in ("/a", "/nowhere"))
        )
        assert [(await answer_of(reader))[0] for _ in range(2)] == [200, 404]
        writer.close()


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br, zstd", b"gzip"),  # every browser
        ("gzip, br", b"gzip"),
        ("deflate", b""),  # the API server's proxy reads what is so called as something else
        ("identity", b""),
    ],
)
async def test_a_long_answer_is_compressed_as_the_api_server_s_proxy_can_read_it(accepted: str, coding: bytes) -> None:
    async with one_route("a node, " * 9999) as (_, place):
        reader, writer = await asyncio.open_connection(*place)
        head = f"Accept-Encoding: {accepted}\r\nConnection: close"
        writer.write(f"GET /p HTTP/1.0\r\n{head}\r\n\r\n".encode())
        said, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert re.findall(rb"Content-Encoding: (\S+)", said) == ([coding] if coding else [])
        assert len(body) < 2000 or not coding
        assert (gzip.decompress(body) if coding else body) == b"a node, " * 9999
        writer.close()


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /a HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n", 400),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", 400),
    ],
)
async def test_what_is_no_request_of_ours_is_refused_and_the_log_stays_empty(
    said: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with one_route() as (endpoint, place):
        reader, writer = await asyncio.open_connection(*place)
        writer.write(said)
        assert (await reader.readuntil(b"\r\n")).split()[1] == str(status).encode()
        writer.close()
        assert (await served("/a", endpoint))[0] == 200
    # Tasks that another test has left behind are named whenever garbage happens to be collected.
    assert [each for each in caplog.records if "Task was destroyed" not in each.getMessage()] == []


async def test_who_promises_a_body_and_sends_none_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.3)
    async with one_route() as (endpoint, place):
        for said in (b"GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n", b"GET /a HT"):
            reader, writer = await asyncio.open_connection(*place)
            writer.write(said)
            await asyncio.gather(reader.read(), return_exceptions=True)
            await until(lambda: opened(endpoint) == 0)
            writer.close()


async def test_an_answer_that_comes_to_nothing_is_said_to_have_and_is_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken() -> Answer:
        raise KeyError("x")

    endpoint = Endpoint(host="127.0.0.1", port=0, routes={"/a": broken})
    await endpoint.start()
    assert (await served("/a", endpoint))[0] == 500
    await endpoint.stop()
    assert [record.message for record in caplog.records if record.name != "asyncio"] == ["a request failed"]
