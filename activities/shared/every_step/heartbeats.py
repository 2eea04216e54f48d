"""Sends the heartbeats of every activity, with its progress.

An interceptor of every worker. A heartbeat proves two things: that the process lives (a killed worker costs a step its
heartbeat timeout, not its whole start-to-close timeout), and that the step makes progress. A step describes its
progress with `report`, and one that waits in a loop calls `progressed` with each look; a step that does neither for
five minutes hangs, so its heartbeats stop and Temporal retries it. `keep` records what a retry need not do again. With
`say_seen` an idle wait names those whom it has seen waiting (sight.py), soon after it saw them and again while it works
for them. StepHealth learns when each step last had seen everything (`asleep`, `looked`), and what fails.

The interval depends on the step's timeout, and on how many steps send heartbeats in this process: a thousand drains
send at most a hundred heartbeats a second. Every activity is `async def`: a plain function would block the event loop
that sends the heartbeats, and with it the worker.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ExecuteActivityInput

from dovetail.activities.around_steps import AroundSteps, GoOn
from dovetail.activities.shared.every_step.step_health import RunningStep, StepHealth
from dovetail.activities.shared.every_step.step_notices import StepNotices
from dovetail.activities.shared.every_step.temporal_errors import is_wait, translate
from dovetail.telemetry.metrics.karpenters.reconciles import ended, started

BEATS_PER_SECOND: Final = 80.0  # of all steps of this process together, as far as their timeouts allow
SILENT_AFTER: Final = 300.0  # seconds without progress: the step hangs
LATE_BY: Final = 12.0  # of a long timeout: a heartbeat may be that late
FIRST_PAUSE: Final = 1.0
ACTS: Final = 11.0  # a step with a shorter timeout acts: its heartbeats also keep what it has done
PART: Final = 0.65  # of its timeout, after which a wait beats again
SOON: Final = 15.0  # with a longer timeout it takes a while until a step learns that it was called off
GOLDEN: Final = 0.618
SAID_AFTER: Final = 1.5  # what a wait has seen; a plan for few pods comes sooner, and then nothing need be said
AT_WORK_SECONDS: Final = 2.0  # between two heartbeats of a wait that is at work for somebody


class _Progress:
    """How far one running step has come."""

    def __init__(self) -> None:
        self.text = ""
        self.kept: tuple[str, ...] = ()
        self.at = time.monotonic()
        self.sleeps = 0
        self.step: RunningStep | None = None
        self.seen: tuple[int, bool] | None = None
        self.said: tuple[int, bool] | None = None
        self.say_at: float | None = None  # when the next heartbeat must have been sent, on the loop's clock
        self.stirred = asyncio.Event()

    def details(self) -> tuple[object, ...]:
        """What a heartbeat carries: the text for people, what a retry need not do again, and who was seen waiting."""
        self.said = self.seen
        if self.seen is not None:
            return self.text, self.kept, self.seen
        return (self.text, self.kept) if self.kept else (self.text,) if self.text else ()

    def hangs(self) -> bool:
        """Whether it has made no progress for so long that it hangs."""
        return not self.sleeps and time.monotonic() - self.at > SILENT_AFTER

    async def until_next(self, seconds: float) -> None:
        """The pause before the next heartbeat, shorter if there is something to report."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while (left := min(end, end if self.say_at is None else self.say_at) - clock()) > 0:
            self.stirred.clear()
            with contextlib.suppress(TimeoutError):  # the pause is over
                async with asyncio.timeout(left):
                    await self.stirred.wait()
        self.say_at = clock() + AT_WORK_SECONDS if self.seen is not None and self.seen[1] else None


_progress: ContextVar[_Progress | None] = ContextVar("progress", default=None)


@dataclass(frozen=True, slots=True)
class _Whole:
    """The running step, to which its parts and the tasks beside it belong."""

    step: RunningStep
    health: StepHealth
    notices: StepNotices

    def part_failed(self, part: str, error: Exception) -> None:
        failing = self.health.part_failed(self.step, part, error)
        if failing is not None:
            self.notices.publish_failure(failing, None, error)


_whole: ContextVar[_Whole | None] = ContextVar("whole", default=None)


def part_failed(part: str, error: Exception) -> None:
    """A part of the running step has failed, and the step goes on without it: it is listed among the steps that
    fail."""
    whole = _whole.get()
    if whole is not None:
        whole.part_failed(part, error)


def part_works(part: str) -> None:
    """That part of the running step has done its work: what failed in it is over."""
    whole = _whole.get()
    if whole is not None:
        whole.health.part_works(whole.step, part)


def report(text: str) -> None:
    """Report the running step's progress; shown with its next heartbeat."""
    progress = _progress.get()
    if progress is not None:
        progress.text, progress.at = text, time.monotonic()


def progressed() -> None:
    """Note that the running step makes progress, though there is nothing new to report."""
    progress = _progress.get()
    if progress is not None:
        progress.at = time.monotonic()


def looked() -> None:
    """The running step has just seen everything that there is."""
    progressed()
    progress = _progress.get()
    if progress is not None and progress.step is not None:
        progress.step.looked()


@contextlib.contextmanager
def asleep() -> Iterator[None]:
    """The running step has seen everything, and sleeps until there is more: it does not hang."""
    progress = _progress.get()
    if progress is None:
        yield
        return
    looked()
    _sleep(progress, 1)
    try:
        yield
    finally:
        _sleep(progress, -1)
        looked()


def _sleep(progress: _Progress, change: int) -> None:
    progress.sleeps += change
    if progress.step is not None:
        progress.step.sleeps += change


def keep(name: str) -> None:
    """Remember with the next heartbeat that this part of the running step is done."""
    progress = _progress.get()
    if progress is not None:
        progress.kept, progress.at = (*progress.kept, name), time.monotonic()


def say_seen(version: int, *, at_work: bool) -> None:
    """Report soon up to which version of its objects the running step has seen who waits for it, and whether it still
    works for them."""
    progress = _progress.get()
    if progress is not None:
        progress.seen = (version, at_work)
        if progress.say_at is None:
            progress.say_at = asyncio.get_running_loop().time() + SAID_AFTER
        progress.stirred.set()


def say_no_more() -> None:
    """Drop what was not reported yet."""
    progress = _progress.get()
    if progress is None:
        return
    if progress.said is not None and progress.said[1]:
        say_seen(progress.said[0], at_work=False)
    else:
        progress.seen, progress.say_at = progress.said, None


def kept() -> frozenset[str]:
    """The parts that earlier tries of the running step have done, as far as their heartbeats say."""
    details = activity.info().heartbeat_details if activity.in_activity() else ()
    found = frozenset(str(name) for name in details[1]) if len(details) > 1 else frozenset[str]()
    progress = _progress.get()
    if progress is not None and not progress.kept:
        progress.kept = tuple(sorted(found))
    return found


def beside() -> Context:
    """Run a task beside the running step: the task's progress is not counted as the step's, its failures are."""
    context = copy_context()
    context.run(_progress.set, None)
    return context


def pause_between(timeout: float, sent: int, beating: int) -> float:
    """Seconds to the next heartbeat of a step with that timeout, after so many, while so many steps send heartbeats
    here.

    The first heartbeat of a step that acts comes soon, so that what it has done is kept; a step that takes less than a
    second sends none. Then a step that acts sends four within its timeout, and a wait one or two, from its beginning
    on. The more steps send heartbeats, the rarer those of each become, but each is sent two seconds before its timeout
    at the latest.
    """
    regular = timeout / 4 if timeout < ACTS else max(PART * timeout, timeout - LATE_BY)
    if sent == 0 and timeout < ACTS:
        regular = FIRST_PAUSE
    crowded = beating / BEATS_PER_SECOND * max(1.0, timeout / SOON)
    return min(max(timeout - 2.0, timeout / 2), max(regular, crowded))


class _Running:
    """The steps that send heartbeats in this process now."""

    count = 0
    started = 0
    idle: ClassVar[dict[tuple[str, str], asyncio.Task[Any]]] = {}  # the latest of each long wait


class HeartbeatInterceptor(AroundSteps):
    """Puts heartbeats around every activity."""

    def __init__(self, health: StepHealth, notices: StepNotices) -> None:
        self.health, self.notices = health, notices

    async def around(self, input: ExecuteActivityInput, go_on: GoOn) -> Any:
        progress, argument = _Progress(), input.args[0] if input.args else None
        step = progress.step = self._begin(argument)
        token, belongs = _progress.set(progress), _whole.set(_Whole(step, self.health, self.notices))
        heartbeats = asyncio.create_task(_send_heartbeats(progress))
        _Running.count += 1
        try:
            _end_predecessor()
            answer = await go_on(input)
        except Exception as error:
            self._failed(step, argument, error)
            translated = translate(error)
            _count_end(step, error, translated)
            if translated is error:
                raise
            raise translated from error
        else:
            self.health.succeeded(step)
            ended(step.step, step.now() - step.began)
            return answer
        finally:
            _Running.count -= 1
            self.health.end(step)
            heartbeats.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await heartbeats
            _progress.reset(token)
            _whole.reset(belongs)

    def _begin(self, argument: object) -> RunningStep:
        info = activity.info()
        waited = (info.started_time - info.current_attempt_scheduled_time).total_seconds()
        started(info.activity_type, info.attempt, waited)
        return self.health.begin(info.workflow_id or "", info.activity_type, argument, info.attempt)

    def _failed(self, step: RunningStep, argument: object, error: Exception) -> None:
        failing = self.health.failed(step, error)
        if failing is not None:
            self.notices.publish_failure(failing, argument, error)


def _count_end(step: RunningStep, error: Exception, translated: Exception) -> None:
    """A step that only looks again later has not failed."""
    for_good = isinstance(translated, ApplicationError) and translated.non_retryable
    ended(step.step, step.now() - step.began, failed=not is_wait(error), for_good=for_good)


def _end_predecessor() -> None:
    """A cancelled wait learns of its cancellation only with its next heartbeat, which may take a while; the wait that
    replaces it in this process ends it at once."""
    info, task = activity.info(), asyncio.current_task()
    if _timeout() <= SOON or task is None:
        return
    key = (info.workflow_id or "", info.activity_type)
    earlier = _Running.idle.get(key)
    if earlier is not None and earlier is not task:
        earlier.cancel()
    _Running.idle[key] = task
    task.add_done_callback(lambda done: _Running.idle.pop(key) if _Running.idle.get(key) is done else None)


def _timeout() -> float:
    given = activity.info().heartbeat_timeout
    return given.total_seconds() if given else SILENT_AFTER


async def _send_heartbeats(progress: _Progress) -> None:
    timeout = _timeout()
    _Running.started += 1
    share = 0.5 + 0.5 * (_Running.started * GOLDEN % 1.0)  # steps that begin together do not beat together
    await progress.until_next(max(FIRST_PAUSE, share * pause_between(timeout, 0, _Running.count)))
    for sent in count(1):
        if progress.hangs():
            return
        activity.heartbeat(*progress.details())
        await progress.until_next(pause_between(timeout, sent, _Running.count))
