"""The cluster's network as a process: whoever has waited for it can call, and one that does not come up is told."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from testbed.plane import PlaneError
from testbed.service import network_plays
from testbed.up import ROOT

PLAYER = ("-m", "testbed.service")


@contextmanager
def playing(*arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
    process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def test_it_takes_calls_once_it_was_waited_for(tmp_path: Path) -> None:
    with playing(*PLAYER, str(tmp_path), "1") as process:
        await network_plays(tmp_path, process)

        await _called(tmp_path)


async def test_a_socket_that_an_earlier_one_has_left_is_not_taken_for_it(tmp_path: Path) -> None:
    with playing(*PLAYER, str(tmp_path), "1") as earlier:
        await network_plays(tmp_path, earlier)
    assert (tmp_path / "network.sock").exists(), "killed, it left its socket"

    with playing(*PLAYER, str(tmp_path), "1") as process:
        await network_plays(tmp_path, process)

        await _called(tmp_path)


async def test_one_that_ends_is_told_at_once(tmp_path: Path) -> None:
    ends = pytest.raises(PlaneError, match="the cluster's network ended with 3")
    with playing("-c", "raise SystemExit(3)") as process, ends:
        await network_plays(tmp_path, process)


async def _called(folder: Path) -> None:
    _, writer = await asyncio.open_unix_connection(str(folder / "network.sock"))
    with closing(writer):
        writer.write(b"CONNECT 10.128.200.1:8080 HTTP/1.1\r\n\r\n")
        await writer.drain()
