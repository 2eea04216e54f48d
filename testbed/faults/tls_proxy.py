"""Stands before a server that speaks no TLS, and speaks it towards its clients: Temporal as users run it.

It may ask for a client certificate, keeps the serial numbers of those that came, and can refuse one that has been
withdrawn, as an operator does who rotates certificates. A client that is refused is told why by TLS's own alert, as
real servers tell it; asyncio's TLS would close the connection without a word.
"""

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Final, cast

from testbed.faults.certificates import Pair
from testbed.faults.tcp_proxy import TcpProxy

HTTP2: Final = "h2"
_CHUNK: Final = 65536
_PARTING_SECONDS: Final = 1.0


class TlsProxy(TcpProxy):
    """One proxy before one server."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext) -> None:
        super().__init__(host, port)
        self.serials: list[int] = []  # of the client certificates, in the order of the connections
        self.withdrawn: set[int] = set()
        self._tls = tls
        self._by_serial: dict[asyncio.Task[None], int] = {}

    @classmethod
    async def before(cls, address: str, server: Pair, clients_of: Path | None = None) -> "TlsProxy":
        """A proxy before host:port with that certificate. `clients_of`: it serves only this authority's clients."""
        host, _, port = address.rpartition(":")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(server.certificate, server.key)
        tls.set_alpn_protocols([HTTP2])
        if clients_of is not None:
            tls.verify_mode = ssl.CERT_REQUIRED
            tls.load_verify_locations(clients_of)
        proxy = cls(host, int(port), tls)
        proxy._server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        proxy.address = f"127.0.0.1:{proxy._server.sockets[0].getsockname()[1]}"
        return proxy

    def withdraw(self, serial: int) -> None:
        """Refuse this certificate from now on; its open connections are broken off."""
        self.withdrawn.add(serial)
        for task, held in list(self._by_serial.items()):
            if held == serial:
                task.cancel()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
        task, stream = asyncio.current_task(), _TlsStream(reader, writer, self._tls)
        serial = await stream.shake_hands()
        if serial is None or serial in self.withdrawn or task is None:
            return
        self.serials.append(serial)
        self._by_serial[task] = serial
        try:
            await super()._connect(cast(asyncio.StreamReader, stream), cast(asyncio.StreamWriter, stream), silent)
        finally:
            del self._by_serial[task]


class _TlsStream:
    """Both ends of one connection, encrypted on the wire and plain towards the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: ssl.SSLContext) -> None:
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def shake_hands(self) -> int | None:
        """The serial number of the client's certificate, 0 without one; None if the client was refused."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._receive():
                    return None
            except ssl.SSLError:
                await self._part()
                return None
        await self._flush()
        shown = self._tls.getpeercert()
        return int(str(shown["serialNumber"]), 16) if shown else 0

    async def read(self, size: int) -> bytes:
        """What the client sent; nothing at the end."""
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                if not await self._receive():
                    return b""
            except ssl.SSLError:
                return b""

    def write(self, data: bytes) -> None:
        """To the client."""
        self._tls.write(data)
        self._writer.write(self._outgoing.read())

    async def drain(self) -> None:
        """Until the client has taken most of it."""
        await self._writer.drain()

    async def _receive(self) -> bool:
        data = await self._reader.read(_CHUNK)
        self._incoming.write(data)
        return bool(data)

    async def _flush(self) -> None:
        self._writer.write(self._outgoing.read())
        await self._writer.drain()

    async def _part(self) -> None:
        """Send the alert, and give the client the time to read it."""
        await self._flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PARTING_SECONDS):
                while await self._reader.read(_CHUNK):
                    pass
