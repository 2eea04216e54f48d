"""The faults of the test bed do what they say."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from testbed.faults import Fault, HttpProxy, TcpProxy, jumping, paused, set_clock, skewed
from testbed.faults.clock import offset_of


async def _page(request: web.BaseRequest) -> web.StreamResponse:
    """A kilobyte; at /watch a line each 10 ms, for ever."""
    if request.path != "/watch":
        return web.Response(text="x" * 1000, headers={"X-Path": request.path_qs})
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"line\n")
        await asyncio.sleep(0.01)


@pytest.fixture
async def server() -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(_page), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
async def proxy(server: str) -> AsyncIterator[HttpProxy]:
    found = await HttpProxy.to(f"http://{server}")
    yield found
    await found.close()


@pytest.fixture
async def tunnel(server: str) -> AsyncIterator[TcpProxy]:
    found = await TcpProxy.to(server)
    yield found
    await found.close()


async def get(url: str, seconds: float = 5.0) -> tuple[int, str, Any]:
    timeout = aiohttp.ClientTimeout(total=seconds)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
        return answer.status, await answer.text(), answer.headers


async def test_without_a_fault_everything_is_passed_on(proxy: HttpProxy) -> None:
    status, text, headers = await get(f"{proxy.url}/a?b=1")
    assert (status, text, headers["X-Path"], proxy.done) == (200, "x" * 1000, "/a?b=1", [])


async def test_a_refusal_is_the_proxys_own_and_hits_only_what_it_names(proxy: HttpProxy) -> None:
    fault = Fault(path="^/a", method="GET", status=429, retry_after=7)
    with proxy.sick(fault):
        status, _, headers = await get(f"{proxy.url}/a")
        other, _, _ = await get(f"{proxy.url}/b")
    after, _, _ = await get(f"{proxy.url}/a")
    assert (status, headers["Retry-After"], other, after) == (429, "7", 200, 200)
    assert proxy.done == [(fault, "GET", "/a")]


async def test_a_delay(proxy: HttpProxy) -> None:
    began = time.monotonic()
    with proxy.sick(Fault(delay=0.3)):
        assert (await get(proxy.url))[0] == 200
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("fault", [Fault(drop=True), Fault(cut_after=500)])
async def test_an_answer_that_breaks_off(proxy: HttpProxy, fault: Fault) -> None:
    with proxy.sick(fault), pytest.raises(aiohttp.ClientError):
        await get(proxy.url)
    assert (await get(proxy.url))[0] == 200


async def test_silence(proxy: HttpProxy) -> None:
    with proxy.sick(Fault(hang=True)), pytest.raises(TimeoutError):
        await get(proxy.url, 0.3)


async def test_a_share_of_the_requests(proxy: HttpProxy) -> None:
    with proxy.sick(Fault(share=0.5, status=500)):
        found = [(await get(proxy.url))[0] for _ in range(40)]
    assert set(found) == {200, 500}


async def test_a_stream_that_is_open_when_a_fault_begins_is_broken_off(proxy: HttpProxy) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{proxy.url}/watch") as answer:
        assert await answer.content.readline() == b"line\n"
        with proxy.sick(Fault(path="/watch", status=500)), pytest.raises(aiohttp.ClientError):
            async with asyncio.timeout(5):
                await answer.content.read()


async def test_a_tunnel_passes_bytes_and_is_dropped_silenced_and_cut(tunnel: TcpProxy) -> None:
    url = f"http://{tunnel.address}/"
    assert (await get(url))[0] == 200
    for fault in (Fault(drop=True), Fault(cut_after=500)):
        with tunnel.sick(fault), pytest.raises(aiohttp.ClientError):
            await get(url)
    with tunnel.sick(Fault(hang=True)), pytest.raises(TimeoutError):
        await get(url, 0.3)
    assert (await get(url))[0] == 200


async def test_open_connections_of_a_tunnel_fall_silent(tunnel: TcpProxy) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"http://{tunnel.address}/watch") as answer:
        assert await answer.content.readline() == b"line\n"
        with tunnel.sick(Fault(hang=True)), pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await answer.content.read()


def test_a_paused_process_does_nothing_and_goes_on() -> None:
    script = "import time\nwhile True:\n    print(1, flush=True); time.sleep(0.01)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        with paused(process):
            deadline = time.monotonic() + 5
            while (state := Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]) != "T":
                assert time.monotonic() < deadline, state
        assert process.stdout.readline() == b"1\n"
        process.kill()


def test_the_clock_of_a_command_is_off_before_the_product_is_imported() -> None:
    command = skewed([sys.executable, "-m", "dovetail.cli.main", "--version"], 300.0)
    assert command[1:] == ["-m", "testbed.faults.clock", "300.0", "--version"]
    script = (
        "import time, testbed.faults.clock as clock, sys; before = time.time();"
        "import runpy; sys.modules['dovetail.cli.main'] = type(sys)('main');"
        "sys.modules['dovetail.cli.main'].run = lambda: print(round(time.time() - before), sys.argv);"
        "clock.main(['300.0', 'worker'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "300 ['dovetail', 'worker']"


def test_a_clock_jumps_when_its_file_is_written(tmp_path: Path) -> None:
    file, moment = tmp_path / "clock", [0.0]
    set_clock(file, 600.0)
    command = jumping([sys.executable, "-m", "dovetail.cli.main", "worker"], file)
    assert command[1:] == ["-m", "testbed.faults.clock", str(file), "worker"]

    offset = offset_of(str(file), lambda: moment[0])
    before = offset()
    set_clock(file, -600.0)
    moment[0] = 1.0
    assert (before, offset()) == (600.0, -600.0)
