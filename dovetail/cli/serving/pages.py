"""The pages that a worker is started with. What answers is loaded with the first question."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from dovetail.worker.absence.presence import TemporalPresence
from dovetail.worker.endpoints import Answer, Followed, Page
from dovetail.worker.settings import Settings
from dovetail.worker.shadow.shadow import Shadow
from dovetail.worker.wiring import World

if TYPE_CHECKING:
    from dovetail.cli.serving.api import Api

BELOW: Final = "/api/v1/"


def _loaded() -> "type[Api]":
    """It takes longer than a heartbeat may wait."""
    from dovetail.cli.serving.api import Api

    return Api


def pages(
    settings: Settings, world: World, presence: TemporalPresence, shadow: Shadow | None = None
) -> Mapping[str, Page]:
    """The API; nothing where it is switched off."""
    if not settings.api:
        return {}
    made: list[Api] = []

    async def answer(target: str) -> Answer | Followed:
        if not made:
            kind = await asyncio.to_thread(_loaded)
            made.append(kind(settings, world, lambda: presence.client, shadow))
        return await made[0].reply(target)

    return {BELOW: answer}
