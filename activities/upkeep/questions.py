"""Asks Prometheus for what roll-outs and policies need to know, beside the look of upkeep: a query that hangs holds
nothing up.

Each look says what is wanted. Each question is repeated for as long as it is wanted, with its own time limit. Answers
are kept, and each new one wakes upkeep, which writes what it means. Nothing here decides.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from dovetail.model.own.gates import Answer
from dovetail.ports.failures import Failure
from dovetail.ports.metrics import Metrics

_log = logging.getLogger(__name__)

NOT_SET: Final = "there is no Prometheus to ask: DOVETAIL_PROMETHEUS_URL is not set"
AT_ONCE: Final = 10  # questions under way
SOON: Final = 1.0  # seconds until it is seen what is due, at the latest


@dataclass(slots=True)
class MetricQuestions:
    metrics: Metrics | None
    now: Callable[[], float]
    answers: dict[str, Answer] = field(default_factory=dict)
    _wanted: Mapping[str, float] = field(default_factory=dict)
    _begun: dict[str, float] = field(default_factory=dict)  # question -> when it was asked last
    _asking: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)

    def want(self, questions: Mapping[str, float]) -> None:
        """What to ask from now on, and how often; nothing else is asked."""
        self._wanted = dict(questions)
        for known in (self.answers, self._begun):
            for gone in known.keys() - questions.keys():
                del known[gone]
        self._stirred.set()

    async def until_answered(self, quiet: float) -> None:
        """Until there is an answer that nobody has looked at, and those that come with it."""
        await self._news.wait()
        await asyncio.sleep(quiet)
        self._news.clear()

    async def keep_asking(self) -> None:
        slots = asyncio.Semaphore(AT_ONCE)
        try:
            while True:
                self._stirred.clear()
                wait = self._begin(slots)
                with contextlib.suppress(TimeoutError):  # the next one is due
                    async with asyncio.timeout(wait):
                        await self._stirred.wait()
        finally:
            for task in self._asking.values():
                task.cancel()
            self._asking.clear()

    def _begin(self, slots: asyncio.Semaphore) -> float | None:
        """Ask what is due; how long until the next is, None where nothing is wanted."""
        now, waits = self.now(), []
        for question, every in self._wanted.items():
            due = self._begun.get(question, now - every) + every
            if due <= now and question not in self._asking:
                self._begun[question] = now
                self._asking[question] = asyncio.create_task(self._ask(question, slots))
                due = now + every
            waits.append(max(due - now, SOON))
        return min(waits, default=None)

    async def _ask(self, question: str, slots: asyncio.Semaphore) -> None:
        try:
            async with slots:
                answer = await self._answer(question)
            if question in self._wanted:
                self.answers[question] = answer
                self._news.set()
        finally:
            self._asking.pop(question, None)

    async def _answer(self, question: str) -> Answer:
        if self.metrics is None:
            return Answer(at=self._moment(), fault=NOT_SET)
        try:
            samples = await self.metrics.ask(question)
        except Failure as failure:
            _log.debug("%s: %s", question, failure)
            return Answer(at=self._moment(), fault=str(failure))
        except Exception as error:
            _log.exception("a question to Prometheus failed")
            return Answer(at=self._moment(), fault=f"the question failed: {type(error).__name__}")
        return Answer(at=self._moment(), samples=samples)

    def _moment(self) -> float:
        """Now, in the whole seconds of a status."""
        return float(ceil(self.now()))
