"""The findings of a new version's gate. The checks are loaded with the first question: few workers are ever asked."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dovetail.activities.identity.judge_version import Findings
from dovetail.connection.presence import TemporalPresence
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

if TYPE_CHECKING:
    from temporalio.client import Client


def _loaded() -> "Callable[[Settings, World, Client | None], Awaitable[tuple[str, ...]]]":
    """Import the answering code, off the event loop: it takes longer than a heartbeat may wait."""
    from dovetail.answers.doctor.stopping import stopping

    return stopping


def findings(settings: Settings, world: World, presence: TemporalPresence) -> Findings:
    async def look() -> tuple[str, ...]:
        stopping = await asyncio.to_thread(_loaded)
        return await stopping(settings, world, presence.client)

    return look
