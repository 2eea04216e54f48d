"""What a worker answers over HTTP: its metrics, its liveness and readiness (OPS-3), and people's questions.

The entry point starts them for each port that is configured. `dovetail.answers.serving` answers the questions, as
pages.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.answers.serving.askers import Askers
from dovetail.answers.serving.replies import Answer, Page
from dovetail.settings.deciding import disruption_settings
from dovetail.settings.settings import Settings
from dovetail.telemetry.log.start import product_version
from dovetail.telemetry.metrics.duties import Duties
from dovetail.telemetry.metrics.exposition import CONTENT_TYPE
from dovetail.telemetry.metrics.karpenters import reconciles
from dovetail.telemetry.metrics.karpenters.condition_metrics import ConditionMetrics
from dovetail.telemetry.metrics.ours.phases import PhaseTimes
from dovetail.telemetry.metrics.scrape import Scrape
from dovetail.telemetry.metrics.sources import Source
from dovetail.wiring.world import World
from dovetail.worker.http_server import PLAIN, Endpoint, Pieces, Route
from dovetail.worker.sdk_metrics import sdk_lines
from dovetail.worker.self_watch import SelfWatch
from dovetail.worker.steps import Wiring


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    scrape: Scrape
    watch: SelfWatch

    async def metrics(self) -> Pieces:
        return 200, CONTENT_TYPE, await self.scrape.pieces()

    async def alive(self) -> Answer:
        """Whether no loop that runs here is stuck; other failures are listed in the answer."""
        stuck = self.watch.stuck()
        lines = [*(stuck or ["ok"]), *self.watch.troubles(), *self.watch.ages()]
        return 503 if stuck else 200, PLAIN, "\n".join(lines) + "\n"

    async def ready(self) -> Answer:
        """Whether the worker may act and Temporal hands out steps. Broken watches of some kinds are listed; the rest
        still works."""
        why = await self.watch.unready()
        if why:
            return 503, PLAIN, f"{why}\n"
        return 200, PLAIN, "".join(["ok\n", *[f"{problem}\n" for problem in self.watch.view.stale().values()]])


def open_endpoints(settings: Settings, wiring: Wiring, watch: SelfWatch, pages: Mapping[str, Page]) -> list[Endpoint]:
    """Metrics, probes and pages, for each port; they may share one. From here on what they show is counted."""
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
        last_day=wiring.last_day,
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
            host=settings.listens_on,
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
