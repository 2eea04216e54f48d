"""A background task that fails is started anew, counted and named; one that has ended is not."""

import asyncio

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dovetail.background import supervised as supervision
from dovetail.background.supervised import stop, supervised, task_troubles
from dovetail.telemetry.metrics.exposition import counted
from dovetail.telemetry.metrics.ours import background


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    found = InMemoryMetricReader()
    meter = MeterProvider(metric_readers=[found]).get_meter("test")
    monkeypatch.setattr(background, "INSTRUMENTS", background.INSTRUMENTS.on(meter))
    monkeypatch.setattr(supervision, "_known", {})
    return found


class Work:
    """Fails a number of times, then runs until it is stopped."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.left, self.error = failures, error or KeyError("an answer that nobody foresaw")
        self.runs = asyncio.Event()
        self.pauses: list[float] = []

    async def run(self) -> None:
        if self.left:
            self.left -= 1
            raise self.error
        self.runs.set()
        await asyncio.Event().wait()

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


async def test_a_task_that_fails_is_started_anew_with_growing_pauses_and_counted(reader: InMemoryMetricReader) -> None:
    work = Work(failures=8)
    task = supervised("aws prices", work.run, work.pause)
    await asyncio.wait_for(work.runs.wait(), 5)

    assert work.pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    line = 'dovetail_background_task_failures_total{task="aws prices"} 8'
    assert line in list(counted(reader.get_metrics_data()))
    await stop(task)


async def test_what_fails_now_is_named_with_its_failure_and_no_longer_once_it_was_stopped(
    reader: InMemoryMetricReader,
) -> None:
    bad, good = Work(failures=2), Work(failures=0)
    tasks = [supervised("bad", bad.run, bad.pause), supervised("good", good.run)]
    await asyncio.wait_for(asyncio.gather(bad.runs.wait(), good.runs.wait()), 5)

    (trouble,) = task_troubles()
    assert trouble.startswith("bad has failed 2 times, last 0 s ago: KeyError: 'an answer that nobody foresaw'")
    await stop(*tasks)
    assert task_troubles() == ()


async def test_a_task_that_has_run_well_for_long_is_no_longer_named_and_begins_with_a_short_pause(
    reader: InMemoryMetricReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(failures=3)
    now = [1000.0]

    async def long_run() -> None:
        now[0] += supervision.WELL_SECONDS
        await work.run()

    monkeypatch.setattr(supervision, "monotonic", lambda: now[0])
    task = supervised("slow", long_run, work.pause)
    await asyncio.wait_for(work.runs.wait(), 5)
    assert work.pauses == [1.0, 1.0, 1.0]
    assert task_troubles() == ()
    await stop(task)


async def test_work_that_returns_ends_its_task(reader: InMemoryMetricReader) -> None:
    failures = iter([KeyError("once")])

    async def work() -> None:
        for failure in failures:
            raise failure

    async def no_pause(_: float) -> None:
        assert task_troubles() != ()

    await asyncio.wait_for(supervised("once", work, no_pause), 5)
    assert task_troubles() == ()


async def test_a_cancelled_task_is_not_started_anew(reader: InMemoryMetricReader) -> None:
    work = Work(failures=0)
    task = supervised("stopped", work.run, work.pause)
    await asyncio.wait_for(work.runs.wait(), 5)
    await stop(task)
    assert task.cancelled()
    assert work.pauses == []
