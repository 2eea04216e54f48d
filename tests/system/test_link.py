"""The link to Temporal of one process: what is exchanged when files change, and what stays as it was."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from dovetail.activities.identity.search_attributes import ALL
from dovetail.cli.commands.set_up_temporal import set_up_temporal
from dovetail.cli.demo.temporal_server import TemporalServer
from dovetail.connection import search_attributes
from dovetail.connection.configuration import TemporalRefuses, TemporalUnusable, is_encrypted, link_words
from dovetail.connection.link import Link
from dovetail.connection.presence import TemporalPresence
from dovetail.connection.search_attributes import missing_search_attributes, register_search_attributes
from dovetail.connection.temporal import connect
from dovetail.settings.settings import read_settings
from dovetail.worker.absence import connecting
from dovetail.worker.absence.connecting import until_connected
from tests.system.secured import Secured
from tests.waiting import until

pytestmark = pytest.mark.temporal


@pytest_asyncio.fixture(loop_scope="session")
async def secured(tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer) -> AsyncIterator[Secured]:
    made = await Secured.before(temporal_server.address, tmp_path_factory.mktemp("secured"))
    yield made
    await made.proxy.close()


@pytest.fixture
def linked(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> Secured:
    """This process finds the server by that link."""
    for name, value in secured.link.items():
        monkeypatch.setenv(name, value)
    return secured


async def a_link(**environment: str) -> Link:
    settings = read_settings(environment)
    return Link(await connect(settings), settings)


async def test_while_nothing_changes_the_client_stays(linked: Secured) -> None:
    link = await a_link()
    client = link.current()

    assert not await link.look() and link.current() is client
    assert is_encrypted(client) and link_words(client) == "encrypted, with a client certificate"


async def test_a_new_certificate_is_used_by_a_new_client_that_all_get(linked: Secured) -> None:
    link, told = await a_link(), list[Client]()
    link.add_follower(told.append)
    renewed = linked.authority.client("renewed")
    renewed.put_over(linked.pair)

    assert await link.look()
    assert told == [link.current()] and linked.proxy.serials[-1] == renewed.serial
    await link.current().count_workflows()
    assert not await link.look()


async def test_half_of_a_new_pair_changes_nothing_and_the_rest_is_taken_up(
    linked: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    """What renews certificates writes one file after the other."""
    link = await a_link()
    client, renewed = link.current(), linked.authority.client("renewed")
    linked.pair.certificate.write_bytes(renewed.certificate.read_bytes())

    with caplog.at_level(logging.WARNING):
        half = [await link.look(), await link.look()]
    kept = link.current()
    linked.pair.key.write_bytes(renewed.key.read_bytes())

    assert half == [False, False] and kept is client
    why = f"Temporal at {linked.proxy.address}: the client certificate and its key do not belong together"
    warned = [each.message for each in caplog.records if "stays in use" in each.message]
    assert warned == [f"the connection to Temporal could not be renewed and stays in use: {why}"]
    assert await link.look() and linked.proxy.serials[-1] == renewed.serial


async def test_a_file_that_is_gone_for_a_moment_changes_nothing(linked: Secured) -> None:
    link = await a_link()
    client, content = link.current(), linked.pair.certificate.read_bytes()
    linked.pair.certificate.unlink()
    gone = await link.look()
    linked.pair.certificate.write_bytes(content)

    assert not gone and not await link.look() and link.current() is client


async def test_an_api_key_is_read_again_from_its_file_and_the_connection_stays(linked: Secured, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("first\n")
    link = await a_link(DOVETAIL_TEMPORAL_API_KEY_FILE=str(file))
    client, connections = link.current(), len(linked.proxy.serials)
    before = client.api_key
    file.write_text("second\n")

    assert await link.look() and not await link.look()
    assert (before, client.api_key) == ("first", "second")
    assert link.current() is client and len(linked.proxy.serials) == connections
    assert link_words(client) == "encrypted, with a client certificate and an API key"


async def test_an_empty_key_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("\n")
    with pytest.raises(TemporalUnusable, match=r"DOVETAIL_TEMPORAL_API_KEY_FILE: .* is empty"):
        await a_link(DOVETAIL_TEMPORAL_API_KEY_FILE=str(tmp_path / "key"))


OPERATORS = ("list_search_attributes", "add_search_attributes")


@contextmanager
def refusing(
    client: Client, monkeypatch: pytest.MonkeyPatch, status: RPCStatusCode, calls: tuple[str, ...] = OPERATORS
) -> Iterator[None]:
    """The server, with its operator's calls refused as a namespace without those rights refuses them."""

    async def refused(*_: object, **__: object) -> None:
        raise RPCError("Request unauthorized.", status, b"")

    with monkeypatch.context() as patched:
        for call in calls:
            patched.setattr(client.operator_service, call, refused)
        yield


@pytest.mark.parametrize("status", [RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED])
async def test_without_an_operator_s_rights_attributes_are_checked_by_a_query(
    linked: Secured, monkeypatch: pytest.MonkeyPatch, status: RPCStatusCode
) -> None:
    client = (await a_link()).current()
    with refusing(client, monkeypatch, status):
        assert await missing_search_attributes(client) == []
        await register_search_attributes(client)


async def test_what_is_missing_there_is_told_with_the_lines_that_add_it(
    linked: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = (await a_link()).current()
    unknown = [type(ALL[0]).for_keyword(name) for name in ("DovetailOne", "DovetailOther")]
    monkeypatch.setattr(search_attributes, "ALL", (*ALL, *unknown))
    with refusing(client, monkeypatch, RPCStatusCode.PERMISSION_DENIED), pytest.raises(TemporalUnusable) as raised:
        await register_search_attributes(client)

    text = str(raised.value)
    assert "temporal operator search-attribute create --namespace default --name DovetailOne --type Keyword " in text
    assert 'tcld namespace search-attributes add --namespace default --search-attribute "DovetailOne=Keyword" ' in text
    assert 'resource "temporalcloud_namespace_search_attribute"' in text
    assert 'toset(["DovetailOne", "DovetailOther"])' in text


PASSING = [
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.INTERNAL,
]


@pytest.mark.parametrize("call", OPERATORS)
@pytest.mark.parametrize("status", PASSING, ids=lambda status: status.name)
async def test_a_start_waits_for_an_answer_about_search_attributes(
    linked: Secured, monkeypatch: pytest.MonkeyPatch, status: RPCStatusCode, call: str
) -> None:
    """The frontend takes calls before its database does. Only a right that is missing ends the start."""
    client = (await a_link()).current()

    async def connected() -> Client:
        return client

    async def none_is_there(*_: object) -> list[str]:
        return [key.name for key in ALL]

    monkeypatch.setattr(connecting, "AGAIN_SECONDS", 0.01)
    presence = TemporalPresence("c")
    with refusing(client, monkeypatch, status, (call,)), monkeypatch.context() as patched:
        if call == "add_search_attributes":
            patched.setattr(search_attributes, "missing_search_attributes", none_is_there)
        waiting = asyncio.create_task(until_connected(connected, presence, asyncio.Event()))
        await until(lambda: waiting.done() or "Request" in presence.problem, words="it says why it waits")
    assert presence.problem == "namespace default cannot be used: Request unauthorized."
    assert await waiting is client


async def test_a_worker_waits_for_a_namespace_that_is_lost_until_it_is_made(
    linked: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a command it is one line."""
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "lost")
    client = (await a_link()).current()
    with pytest.raises(TemporalRefuses, match="namespace lost cannot be used: "):
        await register_search_attributes(client)

    presence = TemporalPresence("c")
    waiting = asyncio.create_task(until_connected(partial(connect, read_settings({})), presence, asyncio.Event()))
    await until(lambda: waiting.done() or "namespace lost" in presence.problem, words="it says why it waits")
    assert not waiting.done()
    await set_up_temporal(client, "30d")

    found = await waiting
    assert found is not None and await missing_search_attributes(found) == []
