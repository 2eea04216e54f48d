"""The pages that a worker is started with. What answers is loaded with the first question."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from dovetail.answers.serving.replies import Answer, Followed, Page
from dovetail.answers.shadow.shadow import Shadow
from dovetail.connection.presence import TemporalPresence
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

if TYPE_CHECKING:
    from dovetail.answers.serving.api import Api

BELOW: Final = "/api/v1/"


def _loaded() -> "type[Api]":
    """It takes longer than a heartbeat may wait."""
    from dovetail.answers.serving.api import Api

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
