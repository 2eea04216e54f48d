"""Waits for an API server that does not answer at the worker's start, or goes away before everything has been listed.

A worker that exited instead would be restarted with growing back-off: for minutes after an outage nothing would be
launched or drained. Meanwhile the probes are answered: it is alive, and not ready. What a person must put right still
ends the start: a kubeconfig, credentials, rights, definitions.
"""

import asyncio
import logging
from typing import Final

from dovetail.answers.serving.replies import Answer
from dovetail.ports.failures import NotSeenYet
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World, silence_of_cluster
from dovetail.worker.absence.connecting import WAITS, pause
from dovetail.worker.http_server import PLAIN, Endpoint

_log = logging.getLogger(__name__)

NO_PORT: Final = 0


class _Wait:
    """Why the API server is still waited for, as the log and the probes say it."""

    def __init__(self, why: str) -> None:
        self.why = why
        _log.warning(WAITS, why)

    def goes_on(self, why: str) -> None:
        if why and why != self.why:
            _log.warning(WAITS, why)
        self.why = why

    async def alive(self) -> Answer:
        return 200, PLAIN, f"ok\n{self.why}\n"

    async def ready(self) -> Answer:
        return 503, PLAIN, f"{self.why}\n"


async def until_answered(settings: Settings, stop: asyncio.Event) -> bool:
    """True once the API server answers; False when the worker is stopped before."""
    why = await silence_of_cluster(settings)
    if not why:
        return True
    wait = _Wait(why)
    endpoint = Endpoint(
        host=settings.listens_on,
        port=settings.health_port,
        routes={"/healthz": wait.alive, "/readyz": wait.ready},
    )
    if settings.health_port != NO_PORT:
        await endpoint.start()
    try:
        while wait.why and not stop.is_set():
            await pause(stop)
            wait.goes_on(await silence_of_cluster(settings))
    finally:
        await endpoint.stop()
    return not wait.why


async def until_ready(world: World, settings: Settings, stop: asyncio.Event) -> bool:
    """True once all kinds have been listed; False when the worker is stopped before."""
    stopping = asyncio.create_task(stop.wait())
    try:
        while not stop.is_set():
            listing = asyncio.ensure_future(world.ready())
            await asyncio.wait((listing, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not listing.done():
                listing.cancel()
            elif await _is_ready(listing, settings):
                return True
    finally:
        stopping.cancel()
    return False


async def _is_ready(listing: asyncio.Future[None], settings: Settings) -> bool:
    """Raises what is missing where the API server answers: rights, definitions."""
    try:
        listing.result()
    except NotSeenYet:
        why = await silence_of_cluster(settings)
        if not why:
            raise
        _log.warning(WAITS, why)
        return False
    return True
