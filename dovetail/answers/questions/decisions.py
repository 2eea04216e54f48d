"""Why decisions are as they are: for one node or pod, made again, and compared with Karpenter's."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dovetail.answers.explain.explain_node import explain_node_now
from dovetail.answers.explain.explain_node_text import node_text
from dovetail.answers.explain.explain_pod import explain_pod
from dovetail.answers.explain.explain_pod_text import pod_text
from dovetail.answers.look.sources import Look
from dovetail.answers.questions.asking import Answered, Asked, Source, in_one_form, named
from dovetail.answers.replay import replaying
from dovetail.answers.shadow.text import shadow_text


async def node(source: Source, asked: Asked) -> Answered:
    async with _look(source, asked) as look:
        answer = await asyncio.to_thread(explain_node_now, look, asked.name)
    return Answered("NodeExplanation", look.settings.cluster, answer, in_one_form(node_text, answer))


async def pod(source: Source, asked: Asked) -> Answered:
    async with _look(source, asked) as look:
        answer = await asyncio.to_thread(explain_pod, look, asked.name)
    return Answered("PodExplanation", look.settings.cluster, answer, in_one_form(pod_text, answer))


@asynccontextmanager
async def _look(source: Source, asked: Asked) -> AsyncIterator[Look]:
    """The cluster now, or as a kept decision saw it."""
    if not asked.word("at"):
        yield await source.look()
        return
    named(source.settings)
    async with replaying.look_back(source.settings, asked.word("at"), time.time()) as look:
        yield look


async def replay(source: Source, asked: Asked) -> Answered:
    """A kept decision, replayed; without a name the list of kept decisions."""
    cluster = named(source.settings, "it names the cluster whose decisions are kept")
    if not asked.name:
        kept = await replaying.list_flights(source.settings)
        return Answered("FlightList", cluster, kept, in_one_form(replaying.flights_text, kept))
    answer = await replaying.replay(source.settings, asked.name)
    return Answered("Replay", cluster, answer, in_one_form(replaying.replay_text, answer))


async def shadow(source: Source, asked: Asked) -> Answered:
    answer = source.shadow()
    return Answered("ShadowReport", source.settings.cluster, answer, in_one_form(shadow_text, answer))
