"""Waits for an API server or a cloud that does not answer at the worker's start, and for an API server that goes away
before everything has been listed.

A worker that exited instead would be restarted with growing back-off: for minutes after an outage nothing would be
launched or drained. Meanwhile the probes are answered: it is alive, and not ready. What a person must put right still
ends the start: a kubeconfig, credentials, rights, definitions.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from dovetail.answers.serving.replies import Answer
from dovetail.model.values.backoff import Backoff
from dovetail.ports.failures import NotSeenYet, Permanent, Throttled, Unreachable
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World, open_world, silence_of_cluster
from dovetail.worker.absence.connecting import AGAIN_SECONDS, WAITS, pause
from dovetail.worker.http_server import PLAIN, Endpoint

_log = logging.getLogger(__name__)

NO_PORT: Final = 0
PAUSES: Final = Backoff(first=AGAIN_SECONDS, longest=30.0)  # each try to open a world begins to list the whole cluster


class _Wait:
    """Why the API server or the cloud is still waited for, as the log and the probes say it. Empty: the first try is
    under way."""

    why = ""

    def goes_on(self, why: str) -> None:
        if why != self.why:
            _log.warning(WAITS, why)
        self.why = why

    async def alive(self) -> Answer:
        return 200, PLAIN, f"ok\n{self.why}\n"

    async def ready(self) -> Answer:
        return 503, PLAIN, f"{self.why or 'the API server and the cloud are being asked'}\n"


async def until_opened(settings: Settings, stop: asyncio.Event) -> World | None:
    """The world, once the API server and the cloud answer; None when the worker is stopped before. Probes are answered
    from the first moment: a cloud that hangs lets a try last longer than a kubelet waits."""
    wait = _Wait()
    endpoint = Endpoint(
        host=settings.listens_on,
        port=settings.health_port,
        routes={"/healthz": wait.alive, "/readyz": wait.ready},
    )
    if settings.health_port != NO_PORT:
        await endpoint.start()
    stopping, seconds = asyncio.create_task(stop.wait()), AGAIN_SECONDS
    try:
        while not stop.is_set():
            opening = asyncio.create_task(_opened(settings))
            try:
                await asyncio.wait((opening, stopping), return_when=asyncio.FIRST_COMPLETED)
            finally:
                opening.cancel()  # of no effect where it is done
            if not opening.done():
                return None
            found = opening.result()
            if not isinstance(found, _Silent):
                return found
            wait.goes_on(found.why)
            seconds = AGAIN_SECONDS if found.is_cluster else PAUSES.after(seconds)
            await pause(stop, seconds)
    finally:
        stopping.cancel()
        await endpoint.stop()
    return None


@dataclass(frozen=True, slots=True)
class _Silent:
    """Why no world could be opened. `is_cluster`: not even the API server answers, and a try costs next to nothing."""

    why: str
    is_cluster: bool = False


async def _opened(settings: Settings) -> World | _Silent:
    silence = await silence_of_cluster(settings)
    if silence:
        return _Silent(silence, is_cluster=True)
    try:
        return await open_world(settings)
    except (Unreachable, Throttled) as failure:
        return _Silent(str(failure))


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
    """Raises what a person must put right where the API server answers: rights, definitions."""
    try:
        listing.result()
    except (NotSeenYet, Permanent) as failure:
        why = await silence_of_cluster(settings)
        if not why and isinstance(failure, Permanent):
            raise
        _log.warning(WAITS, why or failure)
        return False
    return True
