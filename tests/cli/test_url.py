"""A worker that is asked by its own address: no kubeconfig, no Service, and an embedded world's variables beside it."""

import asyncio
import gzip
import threading
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dovetail.answers.serving.api import Api
from dovetail.answers.serving.worker_source import WorkerSource
from dovetail.cli.main import main
from dovetail.cli.remote.workers import Where, Workers
from dovetail.cli.top.web import forwarder
from dovetail.connection.presence import TemporalPresence
from dovetail.wiring.world import open_world
from dovetail.worker.http_server import Endpoint
from tests.adapters.simulator.manifests import a_deployment
from tests.cli.worlds import a_ready_pool, a_world, settings_of


@pytest_asyncio.fixture(loop_scope="session")
async def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """Of a worker; nobody has a kubeconfig here."""
    simulated = a_world(tmp_path, a_ready_pool(), a_deployment(3))
    world = await open_world(settings_of(simulated))
    api = Api(WorkerSource(settings_of(simulated), world, TemporalPresence("demo")))
    endpoint = Endpoint(host="127.0.0.1", port=0, routes={}, pages={"/api/v1/": api.reply})
    await endpoint.start()
    assert endpoint.server is not None
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    monkeypatch.delenv("CLUSTER_NAME", raising=False)
    yield f"http://127.0.0.1:{endpoint.server.sockets[0].getsockname()[1]}"
    await endpoint.stop()
    await world.close()


@pytest.mark.parametrize("words", [["status"], ["nodes"], ["top", "--once"], ["plan"], ["explain", "node", "nope"]])
async def test_a_worker_is_asked_by_its_address(url: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = await asyncio.to_thread(main, [*words, "--url", url])

    said = capsys.readouterr()
    expected = "nope: there is no such" if words[0] == "explain" else ""
    assert (code, expected in said.err) == (1 if expected else 0, True)
    assert bool(said.out) != bool(expected)


async def test_the_variable_is_enough_also_beside_an_embedded_world(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOVETAIL_URL", url)
    monkeypatch.setenv("DOVETAIL_WORLD", "/nowhere/world.db")

    assert await asyncio.to_thread(main, ["top", "--once"]) == 0
    assert capsys.readouterr().out.startswith("demo · ")


async def test_the_page_comes_from_there_too(url: str) -> None:
    def fetched() -> str:
        workers = Workers(Where(url=url))
        workers.document("version")
        server = forwarder(workers, 0)
        try:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            with urllib.request.urlopen(server.address, timeout=60) as answer:
                plain = str(answer.read().decode())
            compressed = urllib.request.Request(server.address, headers={"Accept-Encoding": "gzip"})
            with urllib.request.urlopen(compressed, timeout=60) as answer:
                assert answer.headers["Content-Encoding"] == "gzip"
                assert gzip.decompress(answer.read()).decode() == plain
            return plain
        finally:
            server.shutdown()
            server.server_close()

    assert "<title>Dovetail" in await asyncio.to_thread(fetched)


def test_an_address_that_is_none_and_one_where_nobody_is_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--url", "localhost:1"]) == 1
    assert "--url localhost:1: it is written as http://HOST:PORT" in capsys.readouterr().err
    assert main(["status", "--url", "http://127.0.0.1:1"]) == 1
    assert capsys.readouterr().err.startswith("dovetail: no worker could be asked: http://127.0.0.1:1: no answer")
