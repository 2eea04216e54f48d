"""A local Temporal server: the development server with a database file and the Web UI.

Started by the demo, by `make up` and by tests that need a full server; for development only. It listens on 127.0.0.1
and is stopped by its process id. If the `temporal` command is not installed, the error says how to get it.
"""

import asyncio
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from temporalio.client import Client

from dovetail.activities.identity.search_attributes import ALL
from dovetail.answers.failures import CommandFailed
from dovetail.workflows.converter import DATA_CONVERTER

START_SECONDS = 30.0
PORTS: Final = (15_000, 32_000)
PORT_TRIES: Final = 1_000
STARTS: Final = 3  # it chooses some of its ports itself, and ends if another program takes one at that moment
STOP_SECONDS = 10.0


class ServerEnded(CommandFailed):
    """The server ended while it was starting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalServer:
    process: subprocess.Popen[bytes]
    address: str
    ui: str
    database: Path
    binary: Path
    metrics: str = ""  # where it serves its metrics

    async def client(self) -> Client:
        return await Client.connect(self.address, data_converter=DATA_CONVERTER)

    def stop(self) -> None:
        """Stop it and wait until it has ended."""
        stop_process(self.process)


def temporal_binary() -> Path:
    """The `temporal` command: next to this Python, or on the PATH."""
    beside = Path(sys.executable).parent / "temporal"
    found = str(beside) if beside.exists() else shutil.which("temporal")
    if found is None:
        raise CommandFailed("there is no `temporal` command: `pipx install 'dovetail[demo]'` or `make setup` brings it")
    return Path(found)


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 that nothing listens on.

    They are below those used for outgoing connections: such a port may be taken between this answer and its use, and a
    server that finds its port taken ends.
    """
    sockets: list[socket.socket] = []
    chance = random.SystemRandom()
    try:
        for _ in range(PORT_TRIES):
            one = socket.socket()
            sockets.append(one)
            try:
                one.bind(("127.0.0.1", chance.randrange(*PORTS)))
            except OSError:
                sockets.pop().close()
            if len(sockets) == count:
                return [int(each.getsockname()[1]) for each in sockets]
        raise CommandFailed(f"of {PORT_TRIES} ports between {PORTS[0]} and {PORTS[1]} fewer than {count} are free")
    finally:
        for one in sockets:
            one.close()


# Four partitions of a task queue serve thousands of tasks a second; one takes a fifth less processor time.
_ONE_PARTITION: Final = {
    "matching.numTaskqueueReadPartitions": 1,
    "matching.numTaskqueueWritePartitions": 1,
}


async def start_temporal(
    folder: Path,
    database: Path | None = None,
    limits: Mapping[str, int] = MappingProxyType({}),
    port: int = 0,
) -> TemporalServer:
    """Start one and wait until it answers. Its output goes to a file in the folder; `limits` is dynamic configuration.
    `port`: that of an earlier server on this database; without it a free one. A server that ends at once is started
    again."""
    for _ in range(STARTS - 1):
        try:
            return await _started(folder, database, limits, port)
        except ServerEnded:
            continue
    return await _started(folder, database, limits, port)


async def _started(folder: Path, database: Path | None, limits: Mapping[str, int], port: int) -> TemporalServer:
    binary = temporal_binary()
    free, ui_port, http_port, metrics_port = free_ports(4)
    port = port or free
    database = database or folder / "temporal.db"
    command = [str(binary), "server", "start-dev", "--ip", "127.0.0.1", "--port", str(port)]
    command += ["--ui-port", str(ui_port), "--http-port", str(http_port), "--metrics-port", str(metrics_port)]
    command += ["--db-filename", str(database), "--log-level", "error"]
    # A write-ahead log: a third less processor time and half the wait of each step; a killed server's writes are kept.
    command += ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=1"]
    for key in ALL:
        command += ["--search-attribute", f"{key.name}=Keyword"]
    for name, value in {**_ONE_PARTITION, **limits}.items():
        command += ["--dynamic-config-value", f"{name}={value}"]
    with (folder / "temporal.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=_environment(folder))
    server = TemporalServer(
        process=process,
        address=f"127.0.0.1:{port}",
        ui=f"http://127.0.0.1:{ui_port}",
        database=database,
        binary=binary,
        metrics=f"http://127.0.0.1:{metrics_port}/metrics",
    )
    try:
        await _answering(server)
    except BaseException:
        server.stop()
        raise
    return server


def _environment(folder: Path) -> dict[str, str]:
    """The environment without the caller's Temporal profile: the server must not read a configuration meant for
    clients."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}


async def _answering(server: TemporalServer) -> None:
    deadline = asyncio.get_running_loop().time() + START_SECONDS
    while True:
        if server.process.poll() is not None:
            raise ServerEnded(f"the Temporal server ended with {server.process.returncode}; see temporal.log")
        try:
            client = await server.client()
            await client.count_workflows()
            return
        except Exception as error:
            if asyncio.get_running_loop().time() > deadline:
                raise CommandFailed(f"the Temporal server does not answer: {error}") from None
            await asyncio.sleep(0.2)


def stop_process(process: subprocess.Popen[bytes], with_signal: int = signal.SIGTERM) -> None:
    """Stop a child by its process id; kill it if it does not react."""
    if process.poll() is None:
        process.send_signal(with_signal)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
