"""What a process knows of its steps, what it publishes of those that fail, and that no sleep is without length."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ExecuteActivityInput

from dovetail.activities.interruptions.watch_interruptions import InstanceChecks
from dovetail.activities.orders.vanished_instances import LostInstanceFinder
from dovetail.activities.shared.every_step import heartbeats, step_health
from dovetail.activities.shared.every_step.heartbeats import HeartbeatInterceptor
from dovetail.activities.shared.every_step.step_health import FailingStep, RunningStep, StepHealth
from dovetail.activities.shared.every_step.step_notices import StepNotices, worked_on
from dovetail.activities.shared.every_step.temporal_errors import NotYet
from dovetail.activities.shared.looks.look import Look, Write
from dovetail.activities.shared.waits.cluster_changes import IN_VAIN, SHORTEST_SECONDS, ClusterSleep
from dovetail.activities.upkeep.keep_up import KeepUp, looked
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Failure, Forbidden, Misconfigured, NotSeenYet, Postponed, Refused, Unreachable
from tests.activities.test_heartbeats import Step
from tests.lifecycle.objects import a_new_pool
from worlds.fakes import FakeNotices, World, step_notices, unasked

HOUR = timedelta(hours=1)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class StillView:
    """A cluster that does not change, unless told to."""

    def __init__(self) -> None:
        self.number = 0
        self.rung = asyncio.Event()

    def revision(self) -> int:
        return self.number

    async def changed(self, after: int) -> int:
        while self.number <= after:
            await self.rung.wait()
        return self.number

    def snapshot(self, reads: object = None) -> Snapshot:
        return Snapshot(now=0.0, pools={"pool": a_new_pool()})


async def test_a_moment_that_has_passed_is_slept_for_longer_and_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that asked for no sleep took all of a core, for ever."""
    slept: list[float] = []
    whole = asyncio.timeout

    def timeout(seconds: float) -> Any:
        slept.append(seconds)
        return whole(0.001)

    monkeypatch.setattr(asyncio, "timeout", timeout)
    sleep = ClusterSleep(StillView())  # type: ignore[arg-type]  # asked for changes only
    for _ in range(12):
        await sleep.until_changed(0, -3.0)

    assert slept[0] == SHORTEST_SECONDS
    assert slept == sorted(slept)
    assert slept[-1] == IN_VAIN.longest
    await sleep.until_changed(0, 2.0)
    await sleep.until_changed(0, 0.0)
    assert slept[-2:] == [2.0, SHORTEST_SECONDS], "a proper sleep forgives"


async def test_a_change_ends_the_sleep_but_never_at_once() -> None:
    view = StillView()
    view.number = 5
    loop = asyncio.get_running_loop()
    began = loop.time()
    await ClusterSleep(view).until_changed(4, math.inf)  # type: ignore[arg-type]
    assert loop.time() - began >= SHORTEST_SECONDS * 0.9


def test_a_loop_is_as_old_as_its_last_complete_look() -> None:
    clock = Clock()
    health = StepHealth(clock)
    step = health.begin("c/scheduler", "await_disruption_plan", None, 1)
    clock.now += 30
    assert health.ages() == {"disruption": 30.0}
    step.sleeps += 1
    assert health.ages() == {"disruption": 0.0}, "it has seen everything, and sleeps"
    step.sleeps -= 1
    step.looked()
    clock.now += step_health.STUCK_SECONDS
    assert list(health.stuck()) == ["the loop disruption has not come to the end of a look for 600 s"]
    health.succeeded(step)
    health.end(step)
    assert (health.ages(), list(health.stuck())) == ({}, []), "another worker may have the loop now"


def test_a_loop_that_fails_at_each_attempt_is_as_old_as_its_last_look_and_is_forgotten_in_the_end() -> None:
    clock = Clock()
    health = StepHealth(clock)
    for attempt in range(1, 5):
        step = health.begin("c/scheduler", "await_provisioning_plan", None, attempt)
        health.failed(step, RuntimeError("a pod that nobody foresaw"))
        health.end(step)
        clock.now += 60
    assert health.ages() == {"provisioning": 240.0}
    [failing] = health.failing()
    assert (failing.times, failing.text) == (4, "a pod that nobody foresaw")
    assert "has failed 4 times in a row, last 60 s ago" in health.lines()[0]
    clock.now += step_health.FORGOTTEN_SECONDS
    assert (health.failing(), health.ages()) == ((), {})


async def test_a_loop_that_has_seen_everything_after_its_failures_is_well_though_its_step_goes_on() -> None:
    """`status` said "failing" for five minutes after the API server was back: the step had nothing to do, and slept."""
    clock, view = Clock(), StillView()
    health = StepHealth(clock)

    async def fails(attempt: int) -> None:
        failed = health.begin("c/scheduler", "await_disruption_plan", None, attempt)
        clock.now += 5
        health.failed(failed, Unreachable("kube", "503"))
        health.end(failed)

    for attempt in (18, 20, 21):  # another worker had the 19th
        await fails(attempt)
    assert [one.times for one in health.failing()] == [21]

    step = health.begin("c/scheduler", "await_disruption_plan", None, 22)
    assert [one.times for one in health.failing()] == [21], "it has only begun"
    clock.now += 5
    sleeping = asyncio.create_task(_asleep(step, view))
    await asyncio.sleep(0)
    assert [one.times for one in health.failing()] == [21], "a loop may sleep before it does what fails"
    clock.now += step_health.WELL_SECONDS
    assert (health.failing(), health.known) == ((), {})
    view.rung.set()
    await sleeping

    clock.now += 5
    assert health.failed(step, Unreachable("kube", "503")) is not None
    health.end(step)
    assert [one.times for one in health.known.values()] == [1], "the first since it was well"
    await fails(23)
    assert [one.times for one in health.known.values()] == [2]
    await fails(1)  # the step of the next round
    assert [one.times for one in health.known.values()] == [3]


async def _asleep(step: RunningStep, view: StillView) -> None:
    """As the interceptor of heartbeats runs a step."""
    progress = heartbeats._Progress()
    progress.step = step
    token = heartbeats._progress.set(progress)
    try:
        with heartbeats.asleep():
            await view.rung.wait()
    finally:
        heartbeats._progress.reset(token)


@pytest.mark.parametrize("wait", [NotYet("z", after=5.0), Postponed("x", "traffic is shifted away")])
def test_a_look_that_comes_again_later_is_no_failure_and_three_failures_are_not_shown(wait: Exception) -> None:
    health = StepHealth(Clock())
    for _ in range(3):
        health.failed(
            health.begin("c/claim/a", "launch_instance", ClaimRef(name="a", uid="1"), 1), Unreachable("x", "y")
        )
    assert health.failing() == ()
    assert health.failed(health.begin("c/claim/a", "launch_instance", ClaimRef(name="a", uid="1"), 9), wait) is None
    assert health.known == {}


async def as_a_worker_runs(step: Any, health: StepHealth, kind: str) -> None:
    """A step of one of the loops, with what every worker puts around a step."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, activity_type=kind, workflow_id="c/w", heartbeat_timeout=HOUR)
    around = HeartbeatInterceptor(health, notices=step_notices(World())).intercept_activity(Step())
    await environment.run(around.execute_activity, ExecuteActivityInput(fn=step, args=(), executor=None, headers={}))


class Sick:
    """A cloud and a cluster that refuse whatever a long step goes on without, until they are well."""

    def __init__(self) -> None:
        self.well = False

    async def answer(self, *given: object) -> Any:
        if not self.well:
            raise Forbidden("all", "no")
        return ()

    troubles = list_instances = answer

    async def look(self, snapshot: object) -> Look[Write]:
        await self.answer()
        return Look()

    async def keep(self) -> float:
        await self.answer()
        return 0.0


async def _checks(sick: Any, turns: range) -> None:
    left = iter([*turns[1:], 0])
    await InstanceChecks(sick, sick.answer).run(lambda: next(left) > 0)


async def _lists(sick: Any, turns: range) -> None:
    world = World()
    finder = LostInstanceFinder(sick, FakeNotices(world), world.now, world.now)
    for _ in turns:
        world.clock += 60.0
        await finder.look(Snapshot(now=world.clock))


async def _tasks(sick: Any, turns: range) -> None:
    for _ in turns:
        await looked([sick], Snapshot(now=0.0))


def _upkeep(sick: Any, now: Callable[[], float] = lambda: 0.0) -> KeepUp:
    return KeepUp(SimpleNamespace(view=StillView()), tuple, sick, now, questions=unasked())  # type: ignore[arg-type]


async def _writes(sick: Any, turns: range) -> None:
    for _ in turns:
        await _upkeep(sick).carried_out([Look(due=[sick.answer])])


async def _classes(sick: Any, turns: range) -> None:
    left = iter([*[0.0] * (2 * len(turns)), 9.0])
    await _upkeep(sick, lambda: next(left, 9.0))._keep_classes(1.0)


@pytest.mark.parametrize(
    ("step", "kind", "part"),
    [
        (_checks, "watch_interruptions", "checks of instances"),
        (_lists, "await_orders", "list of instances"),
        (_tasks, "keep_up", "Sick"),
        (_writes, "keep_up", "writes"),
        (_classes, "keep_up", "NodeClasses"),
    ],
)
async def test_what_a_long_step_goes_on_without_is_listed_like_a_step_until_it_works(
    step: Any, kind: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of the log was all: no orphan was collected, no status written, and no alert fired, for ever."""
    monkeypatch.setattr("dovetail.activities.interruptions.watch_interruptions.CHECK_SECONDS", 0.0)
    health, sick = StepHealth(Clock()), Sick()

    await as_a_worker_runs(lambda: step(sick, range(1, 6)), health, kind)
    [failing] = health.failing()
    ages = health.ages()
    sick.well = True
    await as_a_worker_runs(lambda: step(sick, range(1, 3)), health, kind)

    assert (failing.step, failing.part, failing.failure) == (kind, part, "Forbidden")
    assert failing.times > step_health.MANY_ATTEMPTS
    assert ages == {}, "the loop itself is not behind because of it"
    assert health.failing() == ()


def test_a_loop_whose_reading_fails_is_behind_and_no_reason_to_restart_until_it_hangs() -> None:
    clock = Clock()
    health = StepHealth(clock)
    step = health.begin("c/interruptions", "watch_interruptions", None, 1)
    for _ in range(7):
        clock.now += 100
        health.part_failed(step, step_health.READING, Unreachable("sqs:ReceiveMessage", "no answer"))
    assert (health.ages(), list(health.stuck())) == ({"interruptions": 700.0}, [])

    clock.now += step_health.FORGOTTEN_SECONDS + 1
    assert list(health.stuck()) == ["the loop interruptions has not come to the end of a look for 1001 s"]


def failing(times: int = 1) -> FailingStep:
    return FailingStep(
        workflow_id="w", step="terminate_instance", failure="F", text="no", times=times, attempt=1, since=0.0, last=0.0
    )


@pytest.mark.parametrize(
    ("error", "times", "told"),
    [
        (Forbidden("ec2:TerminateInstances", "denied"), 1, True),
        (Misconfigured("x", "y"), 1, True),
        (Refused("x", "y"), 1, True),
        (NotSeenYet("x", "y"), 3, False),
        (Unreachable("x", "y"), 4, True),
    ],
)
async def test_what_a_person_must_mend_is_told_at_once_and_all_else_after_three_tries(
    error: Failure, times: int, told: bool
) -> None:
    world = World()
    notices = StepNotices(FakeNotices(world), StillView())  # type: ignore[arg-type]
    departure = Departure(claim=ClaimRef(name="a", uid="1"), nodes=("n",), node_uids=("2",))
    notices.publish_failure(failing(times), departure, error)
    await asyncio.gather(*notices.publishing)
    assert [(n.kind, n.name, n.uid, n.reason) for n in world.notices] == (
        [("NodeClaim", "a", "1", "StepFailing"), ("Node", "n", "2", "StepFailing")] if told else []
    )


async def test_a_step_without_an_object_of_its_own_is_told_of_on_the_pools() -> None:
    world = World()
    notices = StepNotices(FakeNotices(world), StillView())  # type: ignore[arg-type]
    notices.publish_failure(failing(), None, Forbidden("x", "y"))
    await asyncio.gather(*notices.publishing)
    assert [(n.kind, n.name) for n in world.notices] == [("NodePool", "pool")]
    assert worked_on("a text") == ()
