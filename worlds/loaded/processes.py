"""Starts the product's commands from the process that has loaded them (server.py), or as usual if that is impossible.

`python -m MODULE …` of the modules that the server knows, and `python -c` of a program that changes something of the
product and then runs it, on Linux, which can wait for a process by a file. Anything else, another installation or a
clock that is set wrong before anything is loaded, is started as usual.
"""

import asyncio
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from worlds.loaded.server import ENTRIES, RUNS

ROOT: Final = Path(__file__).parents[2]
_CAN: Final = hasattr(os, "pidfd_open")
_IS_STARTED = threading.Lock()


class Copied(subprocess.Popen[bytes]):
    """A process that is another one's child, with the interface of one's own."""

    def __init__(self, command: Sequence[str], told: int) -> None:
        self.args = self.command = list(command)
        self.returncode: Any = None
        self.stdin = self.stdout = self.stderr = None
        self._told = os.fdopen(told, "rb", buffering=0)
        self._asking = threading.Lock()
        self.pid = int(self._line())

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            read = self._told.read(1)
            if not read:
                raise ChildProcessError(f"what copies itself has gone, and cannot say what became of {self.command}")
            line += read
        return line

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    async def ended(self) -> int:
        """The same without a thread."""
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._told, told.set)
        try:
            await told.wait()
        finally:
            loop.remove_reader(self._told)
        return self.wait()

    def _ended(self, seconds: float | None) -> int | None:
        with self._asking:
            if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
                self.returncode = int(self._line())
                self._told.close()
        code: int | None = self.returncode
        return code


class Server:
    """The process that has loaded everything; started with the first order."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket = ours
        # One thread: those of the arithmetic library are not copied.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "worlds.loaded.server", str(theirs.fileno())],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()

    def start(self, command: Sequence[str], environment: Mapping[str, str], output: int, errors: int) -> Copied:
        """A copy that runs this command."""
        _, how, what, *arguments = command
        order = {
            "how": how,
            "what": what,
            "arguments": arguments,
            "environment": dict(environment),
            "folder": str(Path.cwd()),
        }
        told, tells = os.pipe()
        with Path(os.devnull).open() as nothing:
            socket.send_fds(self.socket, [json.dumps(order).encode()], [nothing.fileno(), output, errors, tells])
        os.close(tells)
        return Copied(command, told)

    def stop(self) -> None:
        """It ends by itself when nobody can order any more."""
        self.socket.close()
        self.process.wait()


_SERVER: list[Server] = []


def _server() -> Server:
    with _IS_STARTED:
        if not _SERVER:
            _SERVER.append(Server())
        return _SERVER[0]


def stop_server() -> None:
    """At the end of a session of tests."""
    with _IS_STARTED:
        while _SERVER:
            _SERVER.pop().stop()


def is_loaded(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a copy can run this command: options of the interpreter itself take effect only at its start."""
    python, how, what = (*command, "", "", "")[:3]
    heard = all(os.environ.get(name) == value for name, value in environment.items() if name.startswith("PYTHON"))
    known = what in ENTRIES if how == "-m" else how == "-c" and RUNS in what
    return _CAN and heard and python == sys.executable and known


def start_process(command: Sequence[str], environment: Mapping[str, str], log: IO[bytes]) -> "subprocess.Popen[bytes]":
    """The process, in a session of its own, with all its output in the log."""
    if is_loaded(command, environment):
        return _server().start(command, environment, log.fileno(), log.fileno())
    return subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


async def run_command(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes, bytes]:
    """Run to the end: exit code, output, errors."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if is_loaded(command, environment):
            copied = await asyncio.to_thread(_server().start, command, environment, out.fileno(), err.fileno())
            code = await copied.ended()
        else:
            process = await asyncio.create_subprocess_exec(*command, env=dict(environment), stdout=out, stderr=err)
            code = await process.wait()
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()
