"""What a worker answers over HTTP: its metrics, whether it lives and is ready (OPS-3), and questions of people.

Started by the entry point where a port is named. Questions are answered by `dovetail.answers.serving`, as pages.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from dovetail.answers.serving.askers import Askers, Visitor
from dovetail.answers.serving.headers import headers_of
from dovetail.answers.serving.replies import ASKER, Answer, Followed, Page
from dovetail.settings.deciding import disruption_settings
from dovetail.settings.settings import Settings, SettingsError
from dovetail.telemetry.log.start import product_version
from dovetail.telemetry.metrics import reconciles
from dovetail.telemetry.metrics.condition_metrics import ConditionMetrics
from dovetail.telemetry.metrics.duties import Duties
from dovetail.telemetry.metrics.exposition import CONTENT_TYPE
from dovetail.telemetry.metrics.phases import PhaseTimes
from dovetail.telemetry.metrics.scrape import PIECE, Scrape, gathered
from dovetail.telemetry.metrics.sources import Source
from dovetail.wiring.world import World
from dovetail.worker.sdk_metrics import sdk_lines
from dovetail.worker.self_watch import SelfWatch
from dovetail.worker.steps import Wiring

Pieces = tuple[int, str, list[bytes]]  # an answer whose body is sent piece by piece
Route = Callable[[], Awaitable[Answer | Pieces]]

_PLAIN = "text/plain; charset=utf-8"
_WORDS = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
REQUEST_SECONDS: Final = 10.0  # for a client to say what it wants
READ_SECONDS: Final = 20.0  # for a client to take the next piece of an answer
ANSWER_SECONDS: Final = 120.0  # to take all of it, but for what is followed
MOST_OPEN: Final = 200  # connections to one port
MOST_OF_ONE: Final = 32  # requests of one asker to the pages that are under way


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the endpoints answer."""

    scrape: Scrape
    watch: SelfWatch

    async def metrics(self) -> Pieces:
        """All metrics."""
        return 200, CONTENT_TYPE, await self.scrape.pieces()

    async def alive(self) -> Answer:
        """No loop that works here is stuck; what fails besides is named."""
        stuck = self.watch.stuck()
        lines = [*(stuck or ["ok"]), *self.watch.troubles(), *self.watch.ages()]
        return 503 if stuck else 200, _PLAIN, "\n".join(lines) + "\n"

    async def ready(self) -> Answer:
        """It may act, and Temporal hands out steps. Broken watches of some kinds are named, and the rest goes on."""
        why = await self.watch.unready()
        if why:
            return 503, _PLAIN, f"{why}\n"
        return 200, _PLAIN, "".join(["ok\n", *[f"{problem}\n" for problem in self.watch.view.stale().values()]])


@dataclass(slots=True, kw_only=True)
class Endpoint:
    """A small HTTP server: GET, one answer a connection. `askers`: who may ask for pages; without them everybody.

    Who opens connections and says nothing, or does not read, keeps nobody out: the oldest that says nothing makes
    room, and an answer that nobody takes is dropped.
    """

    host: str
    port: int
    routes: Mapping[str, Route]
    pages: Mapping[str, Page] = field(default_factory=dict)
    askers: Askers | None = None
    server: asyncio.Server | None = field(default=None, init=False)
    _silent: dict[asyncio.StreamWriter, None] = field(default_factory=dict, init=False)  # the oldest first
    _open: int = field(default=0, init=False)
    _asking: Counter[str] = field(default_factory=Counter, init=False)  # requests under way, by asker

    async def start(self) -> None:
        """Listen; SettingsError names the port where that is not possible."""
        try:
            self.server = await asyncio.start_server(self._serve, self.host, self.port)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            at = f"port {self.port} of {self.host or 'every address'}"
            named = "METRICS_PORT, HEALTH_PROBE_PORT, DOVETAIL_API_PORT"
            raise SettingsError(f"{named}: {at}: {why}; name another one") from None

    async def stop(self) -> None:
        """Stop listening."""
        if self.server is not None:
            self.server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        self._silent[writer] = None
        if self._open > MOST_OPEN:
            next(iter(self._silent)).transport.abort()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            del self._silent[writer]
            await self._reply(writer, head)
            writer.close()
            async with asyncio.timeout(READ_SECONDS):
                await writer.wait_closed()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError):
            return  # the client has gone away
        finally:
            self._open -= 1
            self._silent.pop(writer, None)
            writer.transport.abort()  # what is still to be sent is not waited for

    async def _reply(self, writer: asyncio.StreamWriter, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        target = rest.partition(" ")[0]
        if method != "GET":
            await _send(writer, (405, _PLAIN, "only GET\n"))
            return
        route = self.routes.get(target.partition("?")[0])
        if route is not None:
            await _send(writer, await route())
            return
        for below, page in self.pages.items():
            if target.startswith(below):
                await self._ask(writer, partial(page, target[len(below) :]), _headers_in(lines))
                return
        await _send(writer, (404, _PLAIN, f"only {', '.join(sorted([*self.routes, *self.pages]))}\n"))

    async def _ask(
        self, writer: asyncio.StreamWriter, page: Callable[[], Awaitable[Answer | Followed]], headers: dict[str, str]
    ) -> None:
        visitor = Visitor(address=str(writer.get_extra_info("peername")[0]), headers=headers)
        refused = await self.askers.refusal(visitor) if self.askers is not None else None
        who = self.askers.who(visitor) if self.askers is not None else visitor.address
        if refused is None and self._asking[who] >= MOST_OF_ONE:
            refused = 503, _PLAIN, f"{MOST_OF_ONE} questions from {who} are under way\n"
        if refused is not None:
            await _send(writer, refused)
            return
        self._asking[who] += 1
        ASKER.set(who)
        try:
            await _send(writer, await page())
        finally:
            self._asking[who] -= 1
            self._asking += Counter()  # without those that ask for nothing any more


def _headers_in(lines: list[str]) -> dict[str, str]:
    """By names in small letters; of one that stands twice the last."""
    parts = [line.partition(":") for line in lines]
    return {name.strip().lower(): value.strip() for name, colon, value in parts if colon}


async def _send(writer: asyncio.StreamWriter, answer: Answer | Pieces | Followed) -> None:
    """TimeoutError where nobody reads."""
    status, kind, body = answer
    said = [("Content-Type", kind), ("Connection", "close"), *headers_of(kind)]
    words = f"HTTP/1.1 {status} {_WORDS[status]}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in said)
    if isinstance(body, AsyncIterator):
        await _followed(writer, words, body)
        return
    pieces = _pieces(body)
    writer.write(f"{words}Content-Length: {sum(map(len, pieces))}\r\n\r\n".encode())
    async with asyncio.timeout(ANSWER_SECONDS):
        for piece in gathered(pieces):  # the loop has heartbeats to send between two of them
            await _write(writer, piece)


async def _write(writer: asyncio.StreamWriter, piece: bytes) -> None:
    writer.write(piece)
    async with asyncio.timeout(READ_SECONDS):
        await writer.drain()


def _pieces(body: str | bytes | list[bytes]) -> list[bytes]:
    """A body that is whole by now, as it is sent."""
    if isinstance(body, list):
        return body
    data = body.encode() if isinstance(body, str) else body
    return [data[start : start + PIECE] for start in range(0, len(data), PIECE)]


async def _followed(writer: asyncio.StreamWriter, words: str, body: AsyncIterator[str]) -> None:
    """Piece by piece, until there is no more or nobody reads."""
    writer.write(f"{words}\r\n".encode())
    try:
        async for piece in body:
            await _write(writer, piece.encode())
    finally:
        if isinstance(body, AsyncGenerator):
            await body.aclose()


def endpoints_of(settings: Settings, wiring: Wiring, watch: SelfWatch, pages: Mapping[str, Page]) -> list[Endpoint]:
    """Metrics, probes and pages, each where a port is named; they may be one."""
    world, times, observed = wiring.world, wiring.times, wiring.observed
    duties = times.duties
    world.view.cache.listen("Pod", times.heard)
    world.view.cache.listen("NodeClaim", PhaseTimes(duties).heard)
    reader = observed.counting()
    reconciles.begin()
    scrape = Scrape(
        view=world.view,
        supported=world.catalogues.supported_classes,
        settings=disruption_settings(settings),
        reader=reader,
        version=product_version(),
        times=times,
        faults=wiring.faults,
        catalogues=world.catalogues,
        clock=world.clock,
        why_unfit=world.why_unfit,
        conditions=None if settings.unobserved else _conditions(world, duties),
        observed=not settings.unobserved,
        duties=duties,
        sources=(Source(lines=watch.lines), Source(lines=sdk_lines)),
    )
    if observed.metrics is not None:
        observed.metrics.gauges_from(scrape)
    answers = Answers(scrape=scrape, watch=watch)
    routes: dict[int, dict[str, Route]] = {settings.metrics_port: {"/metrics": answers.metrics}}
    routes.setdefault(settings.health_port, {}).update({"/healthz": answers.alive, "/readyz": answers.ready})
    routes.setdefault(settings.asked_at, {})
    askers = Askers(settings.api_from, world.inspection.servers)
    return [
        Endpoint(
            host=settings.listen_address,
            port=port,
            routes=paths,
            pages=pages if port == settings.asked_at else {},
            askers=askers,
        )
        for port, paths in routes.items()
        if port and (paths or pages)
    ]


def _conditions(world: World, duties: Duties) -> ConditionMetrics:
    """The metrics of conditions, counting from now on (PLM-13)."""
    found = ConditionMetrics(world.conditions, sorted(world.catalogues.supported_classes()), time.time, duties)
    found.follow()
    return found
