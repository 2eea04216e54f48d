"""A worker beside a Karpenter that is still in charge: it observes, plans and answers questions, and writes nothing.

It is for people who want to see what Dovetail would do before they hand anything over. There are no steps, no workflows
and no connection to Temporal: everything that acts by itself is absent, rather than kept from writing. As a second
safeguard, the clients of the API server and of the cloud refuse every call that would change something. What remains
are the endpoints (probes, metrics, and the API, which answers `dovetail status`, `plan` and `explain` from this
worker's view) and the shadow, which decides all the time and compares its decisions with Karpenter's (`dovetail shadow
report`). It remains so when Karpenter ends.
"""

import asyncio
from functools import partial

from dovetail.answers.record.trend import Trend
from dovetail.answers.serving.duties import keep_trend
from dovetail.answers.serving.pages import Known, pages
from dovetail.answers.shadow.shadow import Shadow
from dovetail.background.supervised import stop as stop_tasks
from dovetail.background.supervised import supervised
from dovetail.connection.presence import TemporalPresence
from dovetail.settings.settings import Settings, SettingsError
from dovetail.telemetry.log.start import product_version
from dovetail.worker.absence.opening import until_opened, until_ready
from dovetail.worker.endpoints import open_endpoints
from dovetail.worker.self_watch import SelfWatch
from dovetail.worker.steps import Wiring, times_of


async def look_on(settings: Settings, stop: asyncio.Event) -> None:
    """Answer until `stop`."""
    if not settings.asked_at or not settings.api:
        raise SettingsError(
            "DOVETAIL_BESIDE_KARPENTER: with METRICS_PORT=0 or DOVETAIL_API=false there is nothing that this worker "
            "could do: it answers questions on that port, and nothing else"
        )
    world = await until_opened(settings, stop)
    if world is None:
        return
    presence = TemporalPresence(settings.cluster)
    watch = SelfWatch(view=world.view, why_unfit=world.why_unfit, presence=presence, only_looks=True)
    wiring = Wiring(settings=settings, world=world, times=times_of(watch.steps, presence))
    shadow = Shadow(settings, world, world.clock.now)
    known = Known(fails=watch.failures, past=Trend(), shadow=shadow)
    endpoints = open_endpoints(settings, wiring, watch, pages(settings, world, presence, known))
    deciding: list[asyncio.Task[None]] = []
    try:
        for endpoint in endpoints:
            await endpoint.start()
        if not await until_ready(world, settings, stop):
            return
        print(
            f"dovetail {product_version()}: looks at cluster {settings.cluster}, plans and answers, and writes nothing",
            flush=True,
        )
        shadow.listen()
        deciding = [
            supervised("shadow of disruption", shadow.watch_nodes),
            supervised("shadow of provisioning", shadow.watch_pods),
            supervised("trend", partial(keep_trend, settings, world, presence, known.past)),
        ]
        await stop.wait()
    finally:
        await stop_tasks(*deciding)
        shadow.close()
        for endpoint in endpoints:
            await endpoint.stop()
        await world.close()
