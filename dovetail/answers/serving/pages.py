"""The pages that a worker is started with. What answers is loaded with the first question."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from dovetail.answers.serving.replies import Answer, Followed, Page
from dovetail.answers.shadow.shadow import Shadow
from dovetail.connection.presence import TemporalPresence
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

if TYPE_CHECKING:
    from dovetail.answers.serving.api import Api

BELOW: Final = "/api/v1/"

Fails = Callable[[], Sequence[str]]


def _loaded(settings: Settings, world: World, presence: TemporalPresence, shadow: Shadow | None, fails: Fails) -> "Api":
    """With everything that answers; it takes longer than a heartbeat may wait."""
    from dovetail.answers.serving.api import Api
    from dovetail.answers.serving.worker_source import WorkerSource

    return Api(WorkerSource(settings, world, presence, shadow, fails), until_away=presence.until_away)


def pages(
    settings: Settings, world: World, presence: TemporalPresence, fails: Fails, shadow: Shadow | None = None
) -> Mapping[str, Page]:
    """The API; nothing where it is switched off. `fails`: what fails in this worker, in lines."""
    if not settings.api:
        return {}
    made: list[Api] = []

    async def answer(target: str) -> Answer | Followed:
        if not made:
            made.append(await asyncio.to_thread(_loaded, settings, world, presence, shadow, fails))
        return await made[0].reply(target)

    return {BELOW: answer}
