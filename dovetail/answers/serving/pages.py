"""The pages of a worker. The answering code is loaded with the first question."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dovetail.answers.serving.replies import Answer, Followed, Page
from dovetail.answers.shadow.shadow import Shadow
from dovetail.connection.presence import TemporalPresence
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

if TYPE_CHECKING:
    from dovetail.answers.record.trend import Trend
    from dovetail.answers.serving.api import Api

BELOW: Final = "/api/v1/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a worker knows of itself and of the past. `fails`: what fails in it, in lines."""

    fails: Callable[[], Sequence[str]]
    past: "Trend"
    shadow: Shadow | None = None


def _loaded(settings: Settings, world: World, presence: TemporalPresence, known: Known) -> "Api":
    """Import all answering code, off the event loop: it takes longer than a heartbeat may wait."""
    from dovetail.answers.serving.api import Api
    from dovetail.answers.serving.worker_source import WorkerSource

    source = WorkerSource(settings, world, presence, known.shadow, known.fails, past=known.past)
    return Api(source, until_away=presence.until_away)


def pages(settings: Settings, world: World, presence: TemporalPresence, known: Known) -> Mapping[str, Page]:
    """The API; none if it is switched off."""
    if not settings.api:
        return {}
    made: list[Api] = []

    async def answer(target: str) -> Answer | Followed:
        if not made:
            made.append(await asyncio.to_thread(_loaded, settings, world, presence, known))
        return await made[0].reply(target)

    return {BELOW: answer}
