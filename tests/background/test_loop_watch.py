"""A loop that is held: how long is counted, and the line says what held it."""

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Iterator

import pytest

from dovetail.background import loop_watch
from dovetail.background.loop_watch import LATE_SECONDS, STUCK_SECONDS, TICK_SECONDS, LoopWatch, frames_from, watch_loop
from tests.waiting import until


class Times:
    """Clocks that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.worked = 3.0

    def watch(self, thread: int = 0) -> LoopWatch:
        watch = LoopWatch(thread or threading.get_ident(), clock=lambda: self.now, own_work=lambda: self.worked)
        watch.begin()
        return watch

    def pass_by(self, seconds: float, work: float = 0.0) -> None:
        self.now += seconds
        self.worked += work


@pytest.fixture
def lags(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    found: list[float] = []
    monkeypatch.setattr(loop_watch, "loop_late", found.append)
    yield found


def test_each_beat_is_counted_and_one_in_time_says_nothing(lags: list[float], caplog: pytest.LogCaptureFixture) -> None:
    times = Times()
    watch = times.watch()
    for seconds in (TICK_SECONDS, TICK_SECONDS + 0.5, TICK_SECONDS / 2):
        times.pass_by(seconds, 0.1)
        watch.look()
        watch.beat()
    assert lags == pytest.approx([0.0, 0.5, 0.0]) and not caplog.records


def test_a_long_hold_is_named_with_the_work_in_it_and_what_was_seen_most(
    lags: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    times = Times()
    watch = times.watch()

    def parses() -> None:
        times.pass_by(TICK_SECONDS + LATE_SECONDS, 1.0)
        for _ in range(3):
            watch.look()

    parses()
    times.pass_by(13.5, 13.0)
    watch.look()
    watch.beat()

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    words = record.getMessage()
    assert words.startswith("the event loop was held for 14.5 s, 14.0 s of them by work of its own: LoopWatch.look")
    assert "parses (background/test_loop_watch.py:" in words
    times.pass_by(TICK_SECONDS)
    watch.beat()
    assert len(caplog.records) == 1 and lags[-1] == 0.0


def test_a_loop_that_does_not_come_back_is_named_once_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    times = Times()
    watch = times.watch()
    times.pass_by(TICK_SECONDS + STUCK_SECONDS)
    watch.look()
    watch.look()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "has been blocked for 30 s and still is: LoopWatch.look" in caplog.records[0].getMessage()


def test_a_thread_that_is_gone_is_no_trouble(caplog: pytest.LogCaptureFixture) -> None:
    times = Times()
    watch = times.watch(thread=-1)
    times.pass_by(TICK_SECONDS + LATE_SECONDS)
    watch.look()
    watch.beat()
    assert caplog.records[0].getMessage().endswith("by work of its own")


def test_a_real_loop_that_is_held_says_by_what(caplog: pytest.LogCaptureFixture) -> None:
    async def holds() -> None:
        watching = asyncio.create_task(watch_loop())
        await asyncio.sleep(0)
        time.sleep(TICK_SECONDS + 1.5 * LATE_SECONDS)  # noqa: ASYNC251 - this is the hold
        await until(lambda: bool(caplog.records), words="the line is written")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(holds())

    words = caplog.records[0].getMessage()
    assert "test_a_real_loop_that_is_held_says_by_what.<locals>.holds (background/test_loop_watch.py:" in words
    for thread in threading.enumerate():
        if thread.name == "watch over the event loop":
            thread.join(60)
            assert not thread.is_alive(), "it ends with the loop that it watched over"


def test_no_collection_comes_between_the_frames_of_another_thread() -> None:
    """It runs Python, lets the other thread go on meanwhile, and a frame that is left then ends the process."""

    class Frame:
        def __init__(self) -> None:
            self.seen = list[bool]()

        @property
        def f_back(self) -> "Frame":
            self.seen.append(gc.isenabled())
            return self

    frame = Frame()

    assert len(frames_from(frame, 5)) == 5  # type: ignore[arg-type]
    assert frame.seen == [False] * 4 and gc.isenabled()
