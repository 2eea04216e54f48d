"""A pod's network, where no CNI makes one: a namespace of its own, joined to that of its node.

Both are apart from the machine's, so nothing listens on an address of the machine's and two test runs do not meet. A
kubelet asks a pod's probes from the node, at the pod's address: what listens on loopback alone does not hear it. The
test bed's servers do listen on the machine's loopback alone, and are led in by their ports. Needs root on Linux.
"""

import asyncio
import ctypes
import itertools
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from testbed.plane.network import copied

# The node's address and the pod's.
FAMILIES: Final = {"IPv4": ("10.131.0.1", "10.131.0.2"), "IPv6": ("fd00:131::1", "fd00:131::2")}
_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET
_numbers: Final = itertools.count()


def can_make() -> str:
    """Empty, or why no network can be made here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "namespaces of networks need root on Linux"
    name = f"dovetail-{os.getpid()}-tried"
    try:
        _ip(f"netns add {name}", f"-n {name} link add one type veth peer name other")
    except (OSError, subprocess.CalledProcessError) as error:
        return str(getattr(error, "stderr", "") or error).strip()
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return ""


class PodNetwork:
    """Use it as an async context manager. `ports`: of servers on the machine's loopback that the pod may call."""

    def __init__(self, family: str = "IPv4", ports: Iterable[int] = ()) -> None:
        number = next(_numbers)
        self.node, self.pod = (f"dovetail-{os.getpid()}-{number}-{what}" for what in ("node", "pod"))
        self._node_address, self.address = FAMILIES[family]
        self._length = 64 if family == "IPv6" else 24
        self._ports = tuple(ports)
        self._servers = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await asyncio.to_thread(self._make)
            for port in self._ports:
                await self._lead_in(port)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Take it away, with whatever of it is there."""
        await self._servers.aclose()
        for name in (self.pod, self.node):
            if Path("/run/netns", name).exists():
                await asyncio.to_thread(_ip, f"netns del {name}")

    def _make(self) -> None:
        _ip(f"netns add {self.node}", f"netns add {self.pod}")
        _ip(f"-n {self.node} link add pod0 type veth peer name eth0 netns {self.pod}")
        for name, link, address in ((self.node, "pod0", self._node_address), (self.pod, "eth0", self.address)):
            lasting = " nodad" if ":" in address else ""  # else the address is not there for a second
            _ip(f"-n {name} addr add {address}/{self._length} dev {link}{lasting}")
            _ip(f"-n {name} link set {link} up", f"-n {name} link set lo up")

    async def _lead_in(self, port: int) -> None:
        listening = await asyncio.to_thread(made_in, self.pod, lambda: socket.create_server(("127.0.0.1", port)))
        server = await asyncio.start_server(led_to(port), sock=listening)
        self._servers.callback(server.close)


def inside(network: str) -> list[str]:
    """What stands before a command that shall run in that network."""
    return ["nsenter", f"--net=/run/netns/{network}"]


def led_to(port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """What serves a connection by leading it to a port of the machine's loopback."""

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(copied(reader, there_writer), copied(there_reader, writer))
        except OSError:
            return  # one side has gone away
        finally:
            writer.close()

    return lead


def made_in(network: str, make: Callable[[], socket.socket]) -> socket.socket:
    """A socket belongs to the network in which it was made, whoever holds it: a thread enters, makes it, and ends."""
    made: list[socket.socket] = []

    def enter_and_make() -> None:
        with Path("/run/netns", network).open() as there:
            if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), _NEW_NETWORK) != 0:
                raise OSError(ctypes.get_errno(), f"the network {network} cannot be entered")
        made.append(make())

    thread = threading.Thread(target=enter_and_make)
    thread.start()
    thread.join()
    if not made:
        raise OSError(f"no socket could be made in the network {network}")
    return made[0]


def _ip(*lines: str) -> None:
    for line in lines:
        subprocess.run(["ip", *line.split()], check=True, capture_output=True, text=True)
