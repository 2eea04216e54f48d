"""What a worker answers over HTTP: its metrics, and whether it lives and is ready (OPS-3).

Started by the entry point where a port is named.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from dovetail.metrics.background import OWN_PREFIX
from dovetail.metrics.condition_metrics import ConditionMetrics
from dovetail.metrics.exposition import CONTENT_TYPE, measured
from dovetail.metrics.faults import Faults
from dovetail.metrics.pod_times import PodTimes
from dovetail.metrics.scrape import Scrape, install_meters
from dovetail.metrics.steps import HELP
from dovetail.worker.deciding import disruption_settings
from dovetail.worker.self_watch import SelfWatch
from dovetail.worker.settings import Settings
from dovetail.worker.telemetry import product_version
from dovetail.worker.wiring import World

Answer = tuple[int, str, str]  # status, content type, body
Route = Callable[[], Awaitable[Answer]]

_PLAIN = "text/plain; charset=utf-8"
_WORDS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
REQUEST_SECONDS = 10.0  # for a client to say what it wants


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the endpoints answer."""

    scrape: Scrape
    watch: SelfWatch

    async def metrics(self) -> Answer:
        """All metrics."""
        own = "\n".join(measured(self.watch.samples(), HELP, OWN_PREFIX))
        return 200, CONTENT_TYPE, await self.scrape.text() + (f"{own}\n" if own else "")

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
    server: asyncio.Server | None = field(default=None, init=False)

    async def start(self) -> None:
        """Listen; the error names the port where that is taken."""
        self.server = await asyncio.start_server(self._serve, self.host, self.port)

    async def stop(self) -> None:
        """Stop listening."""
        if self.server is not None:
            self.server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, kind, body = await self._answer(head)
            data = body.encode()
            words = f"HTTP/1.1 {status} {_WORDS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
            writer.write(f"{words}Connection: close\r\n\r\n".encode() + data)
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError):
            return  # the client has gone away
        finally:
            writer.close()

    async def _answer(self, head: bytes) -> Answer:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("ascii", "replace")
        if method != b"GET":
            return 405, _PLAIN, "only GET\n"
        route = self.routes.get(path)
        return (404, _PLAIN, f"only {', '.join(sorted(self.routes))}\n") if route is None else await route()


def endpoints_of(
    settings: Settings, world: World, times: PodTimes, watch: SelfWatch, faults: Faults | None = None
) -> list[Endpoint]:
    """Metrics and probes, each where a port is named; both may be one."""
    world.view.cache.listen("Pod", times.heard)
    scrape = Scrape(
        view=world.view,
        supported=world.catalogues.supported_classes,
        settings=disruption_settings(settings),
        reader=install_meters(),
        version=product_version(),
        times=times,
        faults=faults or Faults(),
        catalogues=world.catalogues,
        clock=world.clock,
        why_unfit=world.why_unfit,
        conditions=None if settings.unobserved else _conditions(world),
        observed=not settings.unobserved,
    )
    answers = Answers(scrape=scrape, watch=watch)
    routes: dict[int, dict[str, Route]] = {settings.metrics_port: {"/metrics": answers.metrics}}
    routes.setdefault(settings.health_port, {}).update({"/healthz": answers.alive, "/readyz": answers.ready})
    return [Endpoint(host=settings.listen_address, port=port, routes=paths) for port, paths in routes.items() if port]


def _conditions(world: World) -> ConditionMetrics:
    """The metrics of conditions, counting from now on (PLM-13)."""
    found = ConditionMetrics(world.conditions, sorted(world.catalogues.supported_classes()), time.time)
    found.follow()
    return found
