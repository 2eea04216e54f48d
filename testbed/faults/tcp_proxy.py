"""Stands before a server of any protocol and disturbs its connections: mainly Temporal's gRPC."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.faults.fault import Fault, Sickness

_CHUNK = 65536


class TcpProxy(Sickness):
    """One proxy before one server. A fault holds for new connections, and for those that are open when it begins."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self._host, self._port = host, port
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.Event] = {}
        self.address = ""

    @classmethod
    async def to(cls, address: str) -> "TcpProxy":
        """A proxy before host:port that listens on a port of its own."""
        host, _, port = address.rpartition(":")
        proxy = cls(host, int(port))
        proxy._server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        proxy.address = f"127.0.0.1:{proxy._server.sockets[0].getsockname()[1]}"
        return proxy

    @property
    def leads_to(self) -> str:
        """The server's address."""
        return f"{self._host}:{self._port}"

    def lead_to(self, address: str) -> None:
        """Lead to another server from now on, or to the same one elsewhere; open connections are broken off."""
        host, _, port = address.rpartition(":")
        self._host, self._port = host, int(port)
        for task in list(self._connections):
            task.cancel()

    async def close(self) -> None:
        """Break off all connections, and stop."""
        assert self._server is not None
        self._server.close()
        connections = list(self._connections)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    @contextmanager
    def sick(self, *faults: Fault) -> Iterator[None]:
        """These faults are in force within the block. Open connections fall silent or are broken off when it begins."""
        with super().sick(*faults):
            for task, silent in list(self._connections.items()):
                fault = self.met_by("", "")
                if fault is not None and fault.hang:
                    silent.set()
                elif fault is not None and fault.drop:
                    task.cancel()
            yield

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task, silent = asyncio.current_task(), asyncio.Event()
        assert task is not None
        self._connections[task] = silent
        try:
            await self._connect(reader, writer, silent)
        except (asyncio.CancelledError, ConnectionError):
            return  # broken off, by a fault or by one of the two
        finally:
            del self._connections[task]
            if writer.transport is not None:
                writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
        fault = self.met_by("", "") or Fault()
        if fault.hang:
            silent.set()
        if fault.drop:
            return
        there_reader, there_writer = await asyncio.open_connection(self._host, self._port)
        flows = [
            asyncio.create_task(_flow(reader, there_writer, fault.delay, silent, None)),
            asyncio.create_task(_flow(there_reader, writer, fault.delay, silent, fault.cut_after)),
        ]
        try:
            await asyncio.wait(flows, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for flow in flows:
                flow.cancel()
            await asyncio.gather(*flows, return_exceptions=True)
            there_writer.transport.abort()


async def _flow(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float, silent: asyncio.Event, left: int | None
) -> None:
    """Bytes in one direction, each portion delayed; nothing more once the connection is silent."""
    while chunk := await reader.read(_CHUNK):
        await asyncio.sleep(delay)
        if silent.is_set():
            await asyncio.Event().wait()
        writer.write(chunk if left is None else chunk[:left])
        await writer.drain()
        if left is not None:
            left -= len(chunk)
            if left <= 0:
                return
