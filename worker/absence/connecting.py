"""Waits for a Temporal server that does not answer, or refuses this worker: at its start, or after it was served.
Nothing that the other side says ends the process, only settings that cannot be read and search attributes that are
missing: a proxy that Temporal is away behind, or a certificate that is about to be renewed, says what a wrong setting
says.

A worker that exited instead would be restarted with growing back-off, and meanwhile nobody would answer the cloud's
warnings.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from dovetail.connection.configuration import TemporalRefuses
from dovetail.connection.presence import TemporalPresence
from dovetail.connection.search_attributes import register_search_attributes

AGAIN_SECONDS: Final = 2.0
WAITS: Final = "%s; this worker waits until it answers"

_log = logging.getLogger(__name__)


async def until_connected(
    connect: Callable[[], Awaitable[Client]], presence: TemporalPresence, stop: asyncio.Event
) -> Client | None:
    """A client of a server that answers and can be used; None when the worker is stopped before there is one."""
    said = ""
    while not stop.is_set():
        client, why = await _try(connect, presence)
        if client is not None:
            return client
        if why != said:
            said = why
            _log.warning(WAITS, why)
        await pause(stop)
    return None


async def _try(connect: Callable[[], Awaitable[Client]], presence: TemporalPresence) -> tuple[Client | None, str]:
    """A client, or the reason why none can be had now."""
    try:
        client = await connect()
        await register_search_attributes(client)
    except (TemporalRefuses, RPCError) as error:
        why = str(error) or type(error).__name__
        presence.miss(why)
        return None, why
    presence.use(client)
    if await presence.look():
        return client, ""
    return None, f"Temporal cannot be used: {presence.problem}"


async def pause(stop: asyncio.Event, seconds: float = AGAIN_SECONDS) -> None:
    """Before another try; over at once when the worker is stopped."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
