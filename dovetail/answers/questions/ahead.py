"""What would happen now, after a change, and in the days to come."""

import asyncio

from dovetail.answers.change.documents import documents_of
from dovetail.answers.change.forecast import forecast_in, forecast_on
from dovetail.answers.change.planned import change_in, change_on
from dovetail.answers.plan.plan import plan_now
from dovetail.answers.plan.plan_text import plan_text
from dovetail.answers.questions.asking import Answered, Asked, Source, in_one_form
from dovetail.answers.questions.table import CARRIED
from dovetail.answers.turn import computing
from dovetail.answers.wording import seconds_of


async def plan(source: Source, asked: Asked) -> Answered:
    """What would happen now; with a file, what it would cause."""
    file = dict(asked.words).get(CARRIED)
    if file is not None:
        return await _change(source, asked, file)
    look = await source.look()
    answer = await asyncio.to_thread(plan_now, look)
    return Answered("Plan", look.settings.cluster, answer, in_one_form(plan_text, answer))


async def _change(source: Source, asked: Asked, file: str) -> Answered:
    ahead, called = seconds_of(asked.word("for", "30d")), asked.word("called", "the file")
    async with source.basis() as basis:
        classes = basis.look.snapshot.supported_node_classes
        async with computing():
            documents = await asyncio.to_thread(documents_of, file, called, classes)
        answer = await change_on(basis, documents, ahead)
    diff = bool(asked.word("diff"))
    return Answered("PlannedChange", answer.cluster, answer, lambda form, _: change_in(answer, form, diff=diff))


async def forecast(source: Source, asked: Asked) -> Answered:
    ahead = seconds_of(asked.word("for", "7d"))
    async with source.basis() as basis:
        answer = await forecast_on(basis, ahead, asked.word("pool"))
    return Answered("Forecast", answer.cluster, answer, lambda form, _: forecast_in(answer, form))
