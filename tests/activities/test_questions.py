"""Questions to Prometheus beside upkeep: asked as long as they are wanted, and one that hangs holds nothing up."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from temporalio.testing import ActivityEnvironment

from dovetail.activities.shared.looks.look import Look, Write
from dovetail.activities.upkeep.keep_up import KeepUp
from dovetail.activities.upkeep.questions import AT_ONCE, NOT_SET, MetricQuestions
from dovetail.model.own.gates import Series
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Unreachable
from tests.waiting import until

NOW = 1_700_000_000.0


@dataclass
class Asked:
    """A Prometheus that hangs at some questions and fails at others."""

    hang: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    under_way: int = 0

    async def ask(self, expression: str) -> tuple[Series, ...]:
        self.asked.append(expression)
        self.under_way += 1
        try:
            if expression in self.hang:
                await asyncio.Event().wait()
            if expression == "fails":
                raise Unreachable("Prometheus", "it did not answer within 10 s")
            if expression == "bug":
                raise TypeError("a bug of ours")
            return (Series(value=1.0),)
        finally:
            self.under_way -= 1


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


async def test_each_question_is_asked_when_it_is_due_and_no_longer_than_it_is_wanted() -> None:
    metrics, clock = Asked(), Clock()
    questions = MetricQuestions(metrics, clock)
    keeping = asyncio.create_task(questions.keep_asking())

    questions.want({"up": 60.0, "fails": 15.0, "bug": 15.0})
    await until(lambda: len(questions.answers) == 3, words="all are answered")
    assert questions.answers["up"].samples == (Series(value=1.0),) and questions.answers["up"].at == NOW
    assert questions.answers["fails"].fault == "Prometheus: it did not answer within 10 s"
    assert questions.answers["bug"].fault == "the question failed: TypeError"

    clock.now += 15.0
    questions.want({"up": 60.0, "fails": 15.0})
    await until(lambda: questions.answers["fails"].at == NOW + 15, words="it is asked again")
    assert set(questions.answers) == {"up", "fails"} and metrics.asked.count("up") == 1

    questions.want({})
    assert questions.answers == {}
    clock.now += 600.0
    questions.want({"new": 15.0})
    await until(lambda: "new" in questions.answers, words="another one is asked")
    assert metrics.asked.count("up") == 1
    keeping.cancel()


async def test_one_that_hangs_holds_no_other_up_and_ends_with_the_step() -> None:
    metrics, clock = Asked(hang={"hangs"}), Clock()
    questions = MetricQuestions(metrics, clock)
    keeping = asyncio.create_task(questions.keep_asking())
    questions.want({"hangs": 15.0, "up": 15.0})
    await until(lambda: "up" in questions.answers, words="the other is answered")

    clock.now += 60.0
    questions.want({"hangs": 15.0, "up": 15.0})
    await until(lambda: questions.answers["up"].at == NOW + 60, words="and again")
    assert metrics.asked.count("hangs") == 1 and metrics.under_way == 1
    keeping.cancel()
    await until(lambda: metrics.under_way == 0, words="nothing is left of it")


async def test_so_many_are_asked_at_once_and_no_more() -> None:
    metrics = Asked(hang={f"q{n}" for n in range(50)})
    questions = MetricQuestions(metrics, Clock())
    keeping = asyncio.create_task(questions.keep_asking())
    questions.want({f"q{n}": 15.0 for n in range(50)})
    await until(lambda: metrics.under_way == AT_ONCE, words="some are under way")
    assert len(metrics.asked) == AT_ONCE
    keeping.cancel()


async def test_without_a_prometheus_every_question_is_answered_so() -> None:
    questions = MetricQuestions(None, Clock())
    keeping = asyncio.create_task(questions.keep_asking())
    questions.want({"up": 60.0})
    await until(lambda: "up" in questions.answers, words="it is answered")

    assert questions.answers["up"].fault == NOT_SET
    keeping.cancel()


class Quiet:
    """Snapshots of a cluster in which nothing changes, and its view."""

    def __init__(self, now: Clock) -> None:
        self.now, self.view = now, self

    async def whole(self, reads: object = None) -> Snapshot:
        return Snapshot(now=self.now())

    def revision(self) -> int:
        return 1

    async def changed(self, revision: int) -> None:
        await asyncio.Event().wait()


async def test_upkeep_looks_again_at_an_answer_and_goes_on_while_another_hangs() -> None:
    """Nothing changes in the cluster: only what is answered wakes it."""
    metrics, clock = Asked(hang={"hangs"}), Clock()
    questions = MetricQuestions(metrics, clock)
    looks: list[set[str]] = []

    class Task:
        async def look(self, snapshot: Snapshot) -> Look[Write]:
            questions.want({"hangs": 15.0, "up": 15.0})
            looks.append(set(questions.answers))
            return Look(due=[])

    snapshots: Any = Quiet(clock)
    upkeep = KeepUp(snapshots, lambda: [Task()], None, clock, questions)
    keeping = asyncio.create_task(ActivityEnvironment().run(upkeep.keep_up))
    await until(lambda: {"up"} in looks, words="it has looked at the answer")
    assert looks[0] == set()

    keeping.cancel()
    await until(lambda: keeping.done() and metrics.under_way == 0, words="the questions end with the step")
