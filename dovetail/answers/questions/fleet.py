"""The cluster's state, its nodes, the waiting pods, and the names of all of them."""

import asyncio

from dovetail.answers.questions.asking import Answered, Asked, Source
from dovetail.answers.questions.names import names_of
from dovetail.answers.status.nodes import nodes_of, pods_of
from dovetail.answers.status.status import status_of
from dovetail.model.objects.watched_kinds import FLEET


async def status(source: Source, asked: Asked) -> Answered:
    answer = await asyncio.to_thread(status_of, await source.fleet())
    besides = await source.besides("ClusterStatus", answer)
    return Answered("ClusterStatus", source.settings.cluster, answer, besides=besides)


async def nodes(source: Source, asked: Asked) -> Answered:
    answer = await asyncio.to_thread(nodes_of, await source.fleet())
    return Answered("NodeList", source.settings.cluster, answer, besides=await source.besides("NodeList", answer))


async def pods(source: Source, asked: Asked) -> Answered:
    return Answered("PendingPodList", source.settings.cluster, await asyncio.to_thread(pods_of, await source.fleet()))


async def trend(source: Source, asked: Asked) -> Answered:
    """Cost and number of nodes over the last day."""
    return Answered("Trend", source.settings.cluster, source.trend())


async def names(source: Source, asked: Asked) -> Answered:
    """The names that a shell completes."""
    async with source.world() as world:
        answer = await asyncio.to_thread(lambda: names_of(world.view.snapshot(FLEET)))
    return Answered("Names", source.settings.cluster, answer)
