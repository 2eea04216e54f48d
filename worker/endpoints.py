"""What a worker answers over HTTP: its metrics, whether it lives and is ready (OPS-3), and questions of people.

Started by the entry point where a port is named. Questions are answered by `dovetail.answers.serving`, as pages.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from dovetail.answers.serving.replies import Answer, Followed, Page
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
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
REQUEST_SECONDS = 10.0  # for a client to say what it wants


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
    """A small HTTP server: GET, one answer a connection."""

    host: str
    port: int
    routes: Mapping[str, Route]
    pages: Mapping[str, Page] = field(default_factory=dict)
    server: asyncio.Server | None = field(default=None, init=False)

    async def start(self) -> None:
        """Listen; SettingsError names the port where that is not possible."""
        try:
            self.server = await asyncio.start_server(self._serve, self.host, self.port)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            at = f"port {self.port} of {self.host or 'every address'}"
            raise SettingsError(f"METRICS_PORT, HEALTH_PROBE_PORT: {at}: {why}; name another one") from None

    async def stop(self) -> None:
        """Stop listening."""
        if self.server is not None:
            self.server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, kind, body = await self._answer(head)
            words = f"HTTP/1.1 {status} {_WORDS[status]}\r\nContent-Type: {kind}\r\nConnection: close\r\n"
            if isinstance(body, AsyncIterator):
                await _followed(writer, words, body)
                return
            pieces = _pieces(body)
            writer.write(f"{words}Content-Length: {sum(map(len, pieces))}\r\n\r\n".encode())
            for piece in gathered(pieces):  # the loop has heartbeats to send between two of them
                writer.write(piece)
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError):
            return  # the client has gone away
        finally:
            writer.close()

    async def _answer(self, head: bytes) -> Answer | Pieces | Followed:
        method, _, rest = head.partition(b" ")
        target = rest.partition(b" ")[0].decode("ascii", "replace")
        if method != b"GET":
            return 405, _PLAIN, "only GET\n"
        route = self.routes.get(target.partition("?")[0])
        if route is not None:
            return await route()
        for below, page in self.pages.items():
            if target.startswith(below):
                return await page(target[len(below) :])
        return 404, _PLAIN, f"only {', '.join(sorted([*self.routes, *self.pages]))}\n"


def _pieces(body: str | bytes | list[bytes]) -> list[bytes]:
    """A body that is whole by now, as it is sent."""
    if isinstance(body, list):
        return body
    data = body.encode() if isinstance(body, str) else body
    return [data[start : start + PIECE] for start in range(0, len(data), PIECE)]


async def _followed(writer: asyncio.StreamWriter, words: str, body: AsyncIterator[str]) -> None:
    """Piece by piece, until there is no more or nobody reads."""
    writer.write(f"{words}Cache-Control: no-store\r\n\r\n".encode())
    try:
        async for piece in body:
            writer.write(piece.encode())
            await writer.drain()
    finally:
        if isinstance(body, AsyncGenerator):
            await body.aclose()


def endpoints_of(settings: Settings, wiring: Wiring, watch: SelfWatch, pages: Mapping[str, Page]) -> list[Endpoint]:
    """Metrics and probes, each where a port is named; both may be one. The pages are at that of the metrics."""
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
    return [
        Endpoint(
            host=settings.listen_address, port=port, routes=paths, pages=pages if port == settings.metrics_port else {}
        )
        for port, paths in routes.items()
        if port
    ]


def _conditions(world: World, duties: Duties) -> ConditionMetrics:
    """The metrics of conditions, counting from now on (PLM-13)."""
    found = ConditionMetrics(world.conditions, sorted(world.catalogues.supported_classes()), time.time, duties)
    found.follow()
    return found
