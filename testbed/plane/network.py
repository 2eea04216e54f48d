"""The network inside the cluster, as far as the API server's proxy needs it: addresses of pods that lead to loopback.

The API server dials no loopback address for a Service, and nothing of ours listens anywhere else. It is told to dial
through a socket instead (egress.json), where this answers: an address that is known leads to a port of this machine,
and any other is unreachable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

CHUNK: Final = 65536
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ClusterNetwork:
    """Use it as an async context manager. `leads`: from "10.128.0.1:8080" to a port on loopback."""

    def __init__(self, socket: Path, leads: Mapping[str, int]) -> None:
        self._socket, self._leads = socket, leads
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._socket.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, str(self._socket))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        self._socket.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            there = await self._dial(target) if method == "CONNECT" else None
            if there is None:
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
                return
            there_reader, there_writer = there
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(copied(reader, there_writer), copied(there_reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            return  # one side has gone away
        finally:
            writer.close()

    async def _dial(self, target: str) -> Streams | None:
        """None where nothing has that address."""
        port = self._leads.get(target)
        return None if port is None else await asyncio.open_connection("127.0.0.1", port)


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """All that is read, until one side ends."""
    with suppress(ConnectionError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
