"""The worker's HTTP server: aiohttp's, with limits, so that no client keeps others out.

Connections are kept for the next request, and long answers are compressed for clients that accept gzip.
"""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from dovetail.answers.serving.askers import Askers, Visitor
from dovetail.answers.serving.headers import headers_of
from dovetail.answers.serving.replies import ASKER, Answer, Followed, Page
from dovetail.settings.settings import SettingsError
from dovetail.telemetry.metrics.scrape import PIECE, gathered

Pieces = tuple[int, str, list[bytes]]  # an answer whose body is sent piece by piece
Route = Callable[[], Awaitable[Answer | Pieces]]

PLAIN: Final = "text/plain; charset=utf-8"
REQUEST_SECONDS: Final = 10.0  # for a client to say what it wants, and to say the next thing
READ_SECONDS: Final = 20.0  # for a client to take the next piece of an answer
ANSWER_SECONDS: Final = 120.0  # to take all of it, but for what is followed
MOST_OPEN: Final = 200  # connections to one port
MOST_OF_ONE: Final = 32  # requests of one asker to the pages that are under way
LONGEST_LINE: Final = 65536  # a question may bring a manifest with it
LEAST_COMPRESSED: Final = 1400  # bytes; a shorter answer is one packet anyway

_log = logging.getLogger(__name__)
_unsaid = logging.Logger("requests", logging.CRITICAL)  # what strangers send that is no HTTP fills no log


class Connections(web.Server):
    """The connections to one port. Idle ones are known, oldest first: the oldest is closed to make room for a new
    one."""

    def __init__(self, reply: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(
            reply,
            access_log=None,
            logger=_unsaid,
            max_line_size=LONGEST_LINE,
            lingering_time=0.0,  # nobody has anything to say beside the first lines
            keepalive_timeout=2 * REQUEST_SECONDS,  # ours comes first
        )
        self.silent: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self.rests(transport)
        if len(self.connections) > MOST_OPEN:
            self.drop(next(iter(self.silent)))

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        self.works(self._connections.get(handler))
        super().connection_lost(handler, exc)

    def rests(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit of a connection that has been answered or has not sent anything yet. What remains to be
        sent is not waited for any longer."""
        self.silent[transport] = asyncio.get_running_loop().call_later(REQUEST_SECONDS, self.drop, transport)

    def works(self, transport: asyncio.BaseTransport | None) -> None:
        """End the time limit: the connection has sent its request, or is gone."""
        timer = self.silent.pop(transport, None) if transport is not None else None
        if timer is not None:
            timer.cancel()

    def drop(self, transport: asyncio.BaseTransport) -> None:
        self.works(transport)
        if isinstance(transport, asyncio.Transport):
            transport.abort()


@dataclass(slots=True, kw_only=True)
class Endpoint:
    """One port, GET only. `askers`: who may ask for pages; without it, everybody.

    A client that opens connections and stays silent, or does not read, keeps nobody out: an answer that is not read is
    dropped.
    """

    host: str | None  # None: every address, of both families
    port: int
    routes: Mapping[str, Route]
    pages: Mapping[str, Page] = field(default_factory=dict)
    askers: Askers | None = None
    server: asyncio.Server | None = field(default=None, init=False)
    connections: Connections | None = field(default=None, init=False)
    _asking: Counter[str] = field(default_factory=Counter, init=False)  # requests under way, by asker

    async def start(self) -> None:
        """Listen; SettingsError names the port if that is not possible."""
        self.connections = Connections(self._serve)
        try:
            self.server = await asyncio.get_running_loop().create_server(self.connections, self.host, self.port)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            at = f"port {self.port} of {self.host or 'every address'}"
            named = "METRICS_PORT, HEALTH_PROBE_PORT, DOVETAIL_API_PORT"
            raise SettingsError(f"{named}: {at}: {why}; name another one") from None

    async def stop(self) -> None:
        """Stop listening; idle clients are disconnected."""
        if self.server is not None and self.connections is not None:
            self.server.close()
            self.connections.pre_shutdown()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        assert self.connections is not None
        transport = request.transport
        self.connections.works(transport)
        try:
            return await _send(request, await self._reply(request))
        except (ConnectionError, TimeoutError):  # the client has gone away, or takes nothing
            if transport is not None:
                self.connections.drop(transport)
            raise
        except Exception:
            _log.exception("a request failed")
            return await _send(request, (500, PLAIN, "it came to nothing; the worker's log has it\n"))
        finally:
            if transport is not None and not transport.is_closing():
                self.connections.rests(transport)

    async def _reply(self, request: web.BaseRequest) -> Answer | Pieces | Followed:
        target = request.raw_path
        if request.method != "GET":
            return 405, PLAIN, "only GET\n"
        route = self.routes.get(target.partition("?")[0])
        if route is not None:
            return await route()
        for below, page in self.pages.items():
            if target.startswith(below):
                return await self._ask(request, page, target[len(below) :])
        return 404, PLAIN, f"only {', '.join(sorted([*self.routes, *self.pages]))}\n"

    async def _ask(self, request: web.BaseRequest, page: Page, target: str) -> Answer | Followed:
        headers = {name.lower(): value for name, value in request.headers.items()}  # of one that stands twice the last
        visitor = Visitor(address=request.remote or "", headers=headers)
        refused = await self.askers.refusal(visitor) if self.askers is not None else None
        who = self.askers.who(visitor) if self.askers is not None else visitor.address
        if refused is None and self._asking[who] >= MOST_OF_ONE:
            refused = 503, PLAIN, f"{MOST_OF_ONE} questions from {who} are under way\n"
        if refused is not None:
            return refused
        self._asking[who] += 1
        ASKER.set(who)
        try:
            return await page(target)
        finally:
            self._asking[who] -= 1
            self._asking += Counter()  # without those that ask for nothing any more


async def _send(request: web.BaseRequest, answer: Answer | Pieces | Followed) -> web.StreamResponse:
    """Send; TimeoutError when the client does not read."""
    status, kind, body = answer
    response = web.StreamResponse(
        status=status, headers={"Server": "dovetail", "Content-Type": kind, **dict(headers_of(kind))}
    )
    if isinstance(body, AsyncIterator):
        return await _followed(request, response, body)
    data = body.encode() if isinstance(body, str) else body
    long = isinstance(data, bytes) and len(data) >= LEAST_COMPRESSED
    if long and "gzip" in request.headers.get("Accept-Encoding", ""):
        response.enable_compression(web.ContentCoding.gzip)  # the API server's proxy misreads "deflate" and answers 500
    pieces = _pieces(data)
    response.headers["Content-Length"] = str(sum(map(len, pieces)))
    async with asyncio.timeout(ANSWER_SECONDS):
        await response.prepare(request)
        for piece in gathered(pieces):  # the loop has heartbeats to send between two of them
            await _write(response, piece)
        await _end(response)
    return response


async def _followed(
    request: web.BaseRequest, response: web.StreamResponse, body: AsyncIterator[str]
) -> web.StreamResponse:
    """Send piece by piece, until there is no more or the client stops reading."""
    await response.prepare(request)
    try:
        async for piece in body:
            await _write(response, piece.encode())
    finally:
        if isinstance(body, AsyncGenerator):
            await body.aclose()
    await _end(response)
    return response


async def _write(response: web.StreamResponse, piece: bytes) -> None:
    async with asyncio.timeout(READ_SECONDS):
        await response.write(piece)


async def _end(response: web.StreamResponse) -> None:
    async with asyncio.timeout(READ_SECONDS):
        await response.write_eof()


def _pieces(body: bytes | list[bytes]) -> list[bytes]:
    """A body that is whole by now, as it is sent."""
    return body if isinstance(body, list) else [body[start : start + PIECE] for start in range(0, len(body), PIECE)]
