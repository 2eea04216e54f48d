"""Notices stand beside the steps: nothing waits for them, they are bounded, and they come."""

import asyncio
import time

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dovetail.adapters.kubernetes_json.rendering import events
from dovetail.adapters.kubernetes_json.rendering.events import RecentNotices
from dovetail.background import notice_queue
from dovetail.background.notice_queue import NoticeQueue
from dovetail.notices.notice import Notice
from dovetail.telemetry.metrics.exposition import counted
from dovetail.telemetry.metrics.ours import background


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    found = InMemoryMetricReader()
    meter = MeterProvider(metric_readers=[found]).get_meter("test")
    monkeypatch.setattr(background, "INSTRUMENTS", background.INSTRUMENTS.on(meter))
    return found


class Server:
    """Where Events are published; it answers only while `open` is set."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.heard: list[Notice] = []

    async def publish(self, *notices: Notice) -> None:
        await self.open.wait()
        self.heard += notices


def a_notice(name: str, message: str = "m", window: float = 120.0) -> Notice:
    return Notice(kind="Pod", name=name, reason="FailedScheduling", message=message, window=window)


def dropped(reader: InMemoryMetricReader) -> list[str]:
    return [line for line in counted(reader.get_metrics_data()) if line.startswith("dovetail_notices_dropped_total ")]


async def test_publishing_waits_for_nobody_and_everything_comes_in_order(reader: InMemoryMetricReader) -> None:
    server = Server()
    queue = NoticeQueue(server)
    for number in range(250):
        await asyncio.wait_for(queue.publish(a_notice(f"pod-{number}")), 1)
    server.open.set()
    await queue.close()

    assert [notice.name for notice in server.heard] == [f"pod-{number}" for number in range(250)]
    assert dropped(reader) == []


async def test_the_oldest_are_dropped_and_counted_when_too_many_wait(reader: InMemoryMetricReader) -> None:
    server = Server()
    queue = NoticeQueue(server, longest=10)
    await queue.publish(*[a_notice(f"pod-{number}") for number in range(25)])
    server.open.set()
    await queue.close()

    assert [notice.name for notice in server.heard] == [f"pod-{number}" for number in range(15, 25)]
    assert dropped(reader) == ["dovetail_notices_dropped_total 15"]


async def test_one_that_waits_already_is_not_queued_twice_unless_it_is_told_each_time(
    reader: InMemoryMetricReader,
) -> None:
    server = Server()
    queue = NoticeQueue(server)
    await queue.publish(a_notice("a", "first"), a_notice("a", "second"), a_notice("b", window=0.0))
    await queue.publish(a_notice("b", window=0.0))
    server.open.set()
    await queue.close()

    assert [(notice.name, notice.message) for notice in server.heard] == [("a", "second"), ("b", "m"), ("b", "m")]


async def test_a_worker_that_stops_waits_for_the_rest_but_not_for_ever(reader: InMemoryMetricReader) -> None:
    queue = NoticeQueue(Server())
    await queue.publish(*[a_notice(f"pod-{number}") for number in range(150)])
    await asyncio.wait_for(queue.close(0.05), 60)

    assert dropped(reader) == ["dovetail_notices_dropped_total 50"]  # a hundred were under way


def test_what_is_remembered_is_bounded_and_cheap_when_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further notice rebuilt the whole dictionary, 6.8 ms: 10,000 of them held the event loop for a minute."""
    monkeypatch.setattr(events, "_REMEMBERED", 20_000)
    recent = RecentNotices()
    notices = [a_notice(f"pod-{number}") for number in range(60_000)]
    began = time.process_time()
    assert all(recent.is_new(notice, 1000.0 + number * 1e-5) for number, notice in enumerate(notices))
    assert time.process_time() - began < 5.0  # 0.2 s on an idle machine; a rebuild for each took over a minute

    assert len(recent._until) == 20_000
    assert not recent.is_new(notices[-1], 1001.0)
    assert recent.is_new(notices[0], 1001.0)  # forgotten, and so published again


def test_what_has_ended_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_REMEMBERED", 3)
    recent = RecentNotices()
    assert recent.is_new(a_notice("long", window=900.0), 0.0)
    assert all(recent.is_new(a_notice(name, window=1.0), 0.0) for name in ("a", "b"))

    assert recent.is_new(a_notice("c"), 10.0)

    assert not recent.is_new(a_notice("long", window=900.0), 10.0)


class Working:
    """A server whose answers take a while, by the clock that the queue is given, and the moments of its handfuls."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now = seconds, 0.0
        self.handfuls: list[list[str]] = []
        self.rested: list[float] = []
        self.third = asyncio.Event()

    def clock(self) -> float:
        return self.now

    async def publish(self, *notices: Notice) -> None:
        self.now += self.seconds
        self.handfuls.append([notice.name for notice in notices])
        if len(self.handfuls) == 3:
            self.third.set()


@pytest.mark.parametrize(("took", "rest"), [(0.1, 0.2), (1.0, 2.0), (60.0, 5.0)])
async def test_between_two_handfuls_it_rests_for_twice_as_long_as_one_took(
    monkeypatch: pytest.MonkeyPatch, took: float, rest: float
) -> None:
    """So that twenty thousand Events leave most of the event loop to the claims of pods that fit."""
    server = Working(took)
    queue = NoticeQueue(server, clock=server.clock)
    timeout = asyncio.timeout

    def at_once(seconds: float) -> asyncio.Timeout:
        server.rested.append(seconds)
        return timeout(0.0)

    monkeypatch.setattr(asyncio, "timeout", at_once)
    await queue.publish(*[a_notice(f"pod-{number}") for number in range(250)])
    await server.third.wait()

    assert server.rested == [pytest.approx(rest)] * 2
    await queue.close()


async def test_what_is_about_pods_comes_last() -> None:
    server = Working(0.0)
    queue = NoticeQueue(server, clock=server.clock)
    claim = Notice(kind="NodeClaim", name="pool-1", reason="Launched", message="m", window=120.0)
    await queue.publish(*[a_notice(f"pod-{number}") for number in range(250)], claim)
    await queue.close()

    assert server.handfuls[0][0] == "pool-1"
    assert [len(handful) for handful in server.handfuls] == [100, 100, 51]


async def test_a_worker_that_stops_does_not_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notice_queue, "LONGEST_REST", 3600.0)  # then a single rest is longer than the test waits
    server = Working(60.0)
    queue = NoticeQueue(server, clock=server.clock)
    await queue.publish(*[a_notice(f"pod-{number}") for number in range(1000)])
    await asyncio.wait_for(queue.close(60.0), 50)

    assert sum(map(len, server.handfuls)) == 1000
