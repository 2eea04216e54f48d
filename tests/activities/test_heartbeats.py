"""How often steps beat, what a beat proves, and what a retry need not do again."""

import asyncio
import contextlib
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from dovetail.activities.shared.every_step import heartbeats
from dovetail.activities.shared.every_step.heartbeats import keep, kept, pause_between, report
from dovetail.activities.shared.every_step.temporal_errors import NotYet
from dovetail.ports.failures import Postponed, Unreachable
from dovetail.workflows.heartbeat_profile import PROFILES
from dovetail.workflows.options import ending, launching, leaving, listening, planning, quick, waiting, watching
from worlds.fakes import heartbeating

DAY, HOUR = 86_400.0, 3600.0


def beats_in(seconds: float, timeout: float, beating: int) -> int:
    """How many heartbeats one step sends in that time."""
    at = 0.0
    for sent in count():
        at += pause_between(timeout, sent, beating)
        if at > seconds:
            return sent
    raise AssertionError


def seconds_of(options: Any) -> float:
    found: float = options["heartbeat_timeout"].total_seconds()
    return found


def test_a_day_at_rest_is_less_than_ten_thousand_heartbeats() -> None:
    """Four waits of the singletons and the reading of warnings, each begun anew every hour."""
    waits = [planning("c")] * 4 + [listening("c")]
    assert sum(24 * beats_in(HOUR, seconds_of(options), len(waits)) for options in waits) < 10_000


def test_on_temporal_cloud_an_idle_minute_costs_less_than_one_action() -> None:
    """Each heartbeat and each beginning of a step is an action that is paid for."""
    waits = [planning("c")] * 4 + [listening("c")]
    paid = PROFILES["cloud"]
    timeouts = [paid[options["heartbeat_timeout"]].total_seconds() for options in waits]
    assert sum(1 + beats_in(HOUR, timeout, len(waits)) for timeout in timeouts) <= 60


def paid_for(options: Any) -> float:
    """The timeout where each heartbeat has its price."""
    given = options["heartbeat_timeout"]
    return seconds_of({"heartbeat_timeout": PROFILES["cloud"].get(given, given)})


@pytest.mark.parametrize("seconds", [45.0, 90.0])
def test_a_wait_beats_once_or_twice_in_its_timeout(seconds: float) -> None:
    """It was four times, and three more in the first seconds: three quarters of what a launch cost."""
    for options in (waiting("c"), watching("c"), leaving("c"), ending("c")):
        for timeout in (seconds_of(options), paid_for(options)):
            assert beats_in(seconds, timeout, 10) <= 1 + seconds / (0.65 * timeout)


@pytest.mark.parametrize("options", [waiting("c"), watching("c"), leaving("c"), ending("c")])
def test_no_wait_beats_as_it_begins(options: Any) -> None:
    """It has done nothing yet that a retry need not do, and its timeout begins with it."""
    assert pause_between(seconds_of(options), 0, 10) == pause_between(seconds_of(options), 1, 10)


def test_where_each_heartbeat_is_paid_for_none_is_sent_early() -> None:
    assert [beats_in(25.0, paid_for(options), 10) for options in (waiting("c"), watching("c"), leaving("c"))] == [0] * 3


def test_what_acts_tells_often_what_it_has_done() -> None:
    """A retry need not do that again."""
    assert beats_in(10.0, seconds_of(quick("c")), 10) == 4


@pytest.mark.parametrize("timeout", PROFILES["cloud"].values())
@pytest.mark.parametrize("beating", [1, 100, 1000, 100_000])
def test_also_there_a_beat_has_time_to_arrive(timeout: Any, beating: int) -> None:
    seconds = timeout.total_seconds()
    assert max(pause_between(seconds, sent, beating) for sent in range(20)) <= seconds - 2.0


def test_a_thousand_drains_and_what_waits_for_them_beat_less_than_a_hundred_times_a_second() -> None:
    beating = 2 * 1000
    drains = 1000 * beats_in(600.0, seconds_of(waiting("c")), beating)
    waiters = 1000 * beats_in(600.0, seconds_of(ending("c")), beating)
    assert drains + waiters < 100 * 600


@pytest.mark.parametrize("options", [quick("c"), launching("c"), waiting("c"), watching("c")])
@pytest.mark.parametrize("beating", [1, 100, 1000, 100_000])
def test_a_beat_has_two_seconds_to_arrive_and_a_kill_costs_less_than_fifteen(options: Any, beating: int) -> None:
    """The timeout, the second before the retry, and something for the server."""
    timeout = seconds_of(options)
    assert timeout + 1.0 < 15.0
    assert max(pause_between(timeout, sent, beating) for sent in range(20)) <= timeout - 2.0


class Step(ActivityInboundInterceptor):
    """The end of the chain: the step itself."""

    def __init__(self) -> None:
        pass

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        return await input.fn(*input.args)


async def beats_of(step: Any, seconds: float, **info: Any) -> list[tuple[Any, ...]]:
    """The heartbeats that the product's interceptor sends around a step in that time."""
    beats: list[tuple[Any, ...]] = []
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, **info)
    environment.on_heartbeat = lambda *details: beats.append(details)
    around = heartbeating().intercept_activity(Step())
    given = ExecuteActivityInput(fn=step, args=(), executor=None, headers={})

    async def run() -> None:
        async with asyncio.timeout(seconds):
            await around.execute_activity(given)

    with contextlib.suppress(TimeoutError):
        await environment.run(run)
    return beats


async def test_a_step_that_hangs_falls_silent_and_one_that_gets_on_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drain that hangs in one await was invisible for a week: its heartbeats went on."""
    monkeypatch.setattr(heartbeats, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(heartbeats, "SILENT_AFTER", 0.3)
    monkeypatch.setattr(heartbeats, "pause_between", lambda timeout, sent, beating: 0.05)

    async def hangs() -> None:
        report("begun")
        await asyncio.sleep(60)

    async def gets_on() -> None:
        for number in count():
            report(f"look {number}")
            await asyncio.sleep(0.05)

    hung, well = await asyncio.gather(beats_of(hangs, 1.5), beats_of(gets_on, 1.5))

    assert 0 < len(hung) < 10
    assert len(well) > 2 * len(hung)
    assert {details[0] for details in hung} == {"begun"}


async def test_a_retry_knows_what_was_done_and_tells_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "FIRST_PAUSE", 0.02)
    found: list[frozenset[str]] = []

    async def goes_on() -> None:
        found.append(kept())
        keep("third")
        await asyncio.sleep(0.3)

    acts = quick("c")["heartbeat_timeout"]
    beats = await beats_of(goes_on, 1.0, heartbeat_details=["text", ["first", "second"]], heartbeat_timeout=acts)

    assert found == [frozenset({"first", "second"})]
    assert set(beats[-1][1]) == {"first", "second", "third"}


async def test_a_wait_that_was_called_off_ends_when_its_successor_begins() -> None:
    """An idle wait beats once in a minute, and would go on deciding until then."""
    ended: list[str] = []

    async def waits() -> None:
        name = activity.info().activity_id
        try:
            await asyncio.sleep(0.5 if name == "second" else 60)
        except asyncio.CancelledError:
            ended.append(name)
            raise

    idle = {"heartbeat_timeout": planning("c")["heartbeat_timeout"], "activity_type": "await_of_test"}
    first = asyncio.create_task(beats_of(waits, 30, activity_id="first", **idle))
    await asyncio.sleep(0.05)
    await beats_of(waits, 30, activity_id="second", **idle)
    await asyncio.gather(first, return_exceptions=True)

    assert ended == ["first"]


@pytest.mark.parametrize(
    ("error", "failed"),
    [
        (NotYet("it is terminating", after=5.0), False),
        (Postponed("x", "a shift"), False),
        (Unreachable("x", "y"), True),
    ],
)
async def test_a_step_that_only_looks_again_later_is_counted_as_no_error(
    error: Exception, failed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look at an instance that was still terminating stood in the reconciles that failed."""
    counted: list[bool] = []
    monkeypatch.setattr(heartbeats, "ended", lambda step, seconds, failed, for_good: counted.append(failed))

    async def step() -> None:
        raise error

    with pytest.raises(ApplicationError) as raised:
        await beats_of(step, 1.0)

    assert counted == [failed]
    assert (raised.value.category == ApplicationErrorCategory.BENIGN) is not failed
