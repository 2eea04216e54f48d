"""The health of this process's steps: when each loop last had seen everything, and what fails.

A heartbeat shows that a process lives, a started attempt that Temporal has handed it out; neither shows that a step
completes. Where a part of a long step fails and the step goes on without it, the part is listed like a step that fails:
otherwise nobody would learn of it. Kept in memory. After a failure the next attempt may run in another worker, so a
failure is forgotten when the step has not failed here again for five minutes, or once it is known to succeed elsewhere
(`worker/elsewhere.py`). A loop counts as well as soon as it sleeps: its step completes only after up to an hour.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from dovetail.activities.shared.every_step.temporal_errors import is_wait
from dovetail.ports.failures import NotSeenYet, Throttled, Unreachable
from dovetail.telemetry.metrics.karpenters.reconciles import Run
from dovetail.telemetry.metrics.ours.steps import step_failed

# The steps that the loops of the singletons live in, and the names of these loops.
LOOPS: Final = {
    "await_provisioning_plan": "provisioning",
    "await_disruption_plan": "disruption",
    "await_orders": "orders",
    "keep_up": "upkeep",
    "watch_interruptions": "interruptions",
}

MANY_ATTEMPTS: Final = 3  # more failures than this in a row are shown
FORGOTTEN_SECONDS: Final = 300.0
WELL_SECONDS: Final = 40.0  # a loop that looked and has gone on for so long: before they work they wait 30 s at most
STUCK_SECONDS: Final = 600.0  # a loop that has not seen everything for this long does not do its work

# The part of a loop that is its look itself. While it fails the loop is behind, as it would be in a fresh process.
READING: Final = "reading"

_Key = tuple[str, str, str]


@dataclass(slots=True, eq=False)
class RunningStep:
    workflow_id: str
    step: str
    subject: str
    attempt: int
    now: Callable[[], float]
    text: str = ""  # how far it has come
    sleeps: int = 0
    last_look: float = 0.0
    began: float = 0.0
    has_looked: bool = False  # in this attempt

    def looked(self) -> None:
        """The loop has seen everything that there is."""
        self.last_look, self.has_looked = self.now(), True

    @property
    def is_well(self) -> bool:
        """Whether it has seen everything, and got beyond the point at which a loop that was handed out anew could
        fail."""
        return self.has_looked and self.now() - self.began >= WELL_SECONDS

    @property
    def key(self) -> _Key:
        """A key that is the same at each attempt, and at each repetition for the same subject."""
        return self.workflow_id, self.step, self.subject


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingStep:
    """A step whose last attempt here has failed, or a part of one that goes on without it."""

    workflow_id: str
    step: str
    failure: str  # the class of the failure
    text: str
    times: int  # in a row
    attempt: int  # the last one that failed here
    since: float
    last: float
    part: str = ""  # empty: the step as a whole
    unanswered: bool = False  # the API server, or the cloud, does not answer, or is too busy to

    def line(self, now: float) -> str:
        times = "once" if self.times == 1 else f"{self.times} times in a row"
        what = f"{self.step} ({self.part})" if self.part else self.step
        return f"{what} of {self.workflow_id} has failed {times}, last {now - self.last:.0f} s ago: {self.text}"


@dataclass(slots=True)
class StepHealth:
    now: Callable[[], float] = time.monotonic
    running: set[RunningStep] = field(default_factory=set)
    known: dict[_Key, FailingStep] = field(default_factory=dict)

    def begin(self, workflow_id: str, step: str, argument: object, attempt: int) -> RunningStep:
        """A step begins. A loop that failed keeps the age of its last look."""
        found = RunningStep(workflow_id, step, "" if step in LOOPS else repr(argument)[:200], attempt, self.now)
        found.began = self.now()
        failing = self.known.get(found.key)
        found.last_look = failing.since if failing is not None else self.now()
        self.running.add(found)
        return found

    def end(self, step: RunningStep) -> None:
        self.running.discard(step)

    def runs(self, step: str, workflow_id: str) -> bool:
        return any(one.step == step and one.workflow_id == workflow_id for one in list(self.running))

    def runs_now(self) -> Iterator[Run]:
        return (Run(one.step, one.attempt, one.began) for one in list(self.running))

    def works_on(self, loop: str) -> bool:
        return any(LOOPS.get(one.step) == loop for one in list(self.running))

    def succeeded(self, step: RunningStep) -> None:
        """The step has come to its end."""
        self.known.pop(step.key, None)

    def failed(self, step: RunningStep, error: Exception) -> FailingStep | None:
        """An attempt has failed; None where it only looks again later."""
        if is_wait(error):
            self.known.pop(step.key, None)
            return None
        before, kind, now = self._fresh().get(step.key), type(error).__name__, self.now()
        found = FailingStep(
            workflow_id=step.workflow_id,
            step=step.step,
            failure=kind,
            text=(str(error) or kind)[:500],
            times=_in_a_row(step, before),
            attempt=step.attempt,
            since=step.last_look if before is None else max(before.since, step.last_look),
            last=now,
            unanswered=isinstance(error, NotSeenYet | Throttled | Unreachable),
        )
        self.known[step.key] = found
        step_failed(step.step, kind)
        return found

    def part_failed(self, step: RunningStep, part: str, error: Exception) -> FailingStep | None:
        """A part of a running step has failed, and the step goes on; None where it only looks again later."""
        if is_wait(error):
            self.part_works(step, part)
            return None
        before, kind, now = self._fresh().get(_of_part(step, part)), type(error).__name__, self.now()
        found = FailingStep(
            workflow_id=step.workflow_id,
            step=step.step,
            failure=kind,
            text=(str(error) or kind)[:500],
            times=1 if before is None else before.times + 1,
            attempt=step.attempt,
            since=now if before is None else before.since,
            last=now,
            part=part,
        )
        self.known[_of_part(step, part)] = found
        step_failed(step.step, kind)
        return found

    def part_works(self, step: RunningStep, part: str) -> None:
        self.known.pop(_of_part(step, part), None)

    def failing(self) -> tuple[FailingStep, ...]:
        """What has failed more than three times in a row."""
        found = [one for one in self._fresh().values() if one.times > MANY_ATTEMPTS]
        return tuple(sorted(found, key=lambda one: (-one.times, one.workflow_id, one.step)))

    def quiet(self) -> tuple[FailingStep, ...]:
        """The failing steps that have not run here for a while: another worker may have them."""
        limit = self.now() - WELL_SECONDS
        return tuple(one for one in self.failing() if one.last <= limit and not self.runs(one.step, one.workflow_id))

    def forget(self, failing: FailingStep) -> None:
        """Forget a failure that is known to be over, unless the step has failed here again since."""
        self.known = {key: one for key, one in self.known.items() if one is not failing}

    def ages(self) -> dict[str, float]:
        """For how long each loop that runs or fails here has not seen everything. 0 while it sleeps."""
        now = self.now()
        failed = [one for one in self._fresh().values() if one.step in LOOPS and not one.part]
        found = {LOOPS[one.step]: now - one.since for one in failed}
        for step in list(self.running):
            if step.step in LOOPS:
                found[LOOPS[step.step]] = 0.0 if step.sleeps else now - step.last_look
        return found

    def stuck(self) -> Iterator[str]:
        """The loops that have not seen everything for so long that a fresh process is worth a try. It is not where
        nobody answers: it would be without its drains and launches, and get no answer either."""
        failed = [one for one in self._fresh().values() if one.step in LOOPS]
        in_vain = {LOOPS[one.step] for one in failed if one.part == READING or (one.unanswered and not one.part)}
        for loop, age in sorted(self.ages().items()):
            if age >= STUCK_SECONDS and loop not in in_vain:
                yield f"the loop {loop} has not come to the end of a look for {age:.0f} s"

    def lines(self) -> list[str]:
        now = self.now()
        return [one.line(now) for one in self.failing()]

    def _fresh(self) -> dict[_Key, FailingStep]:
        limit, well = self.now() - FORGOTTEN_SECONDS, {step.key for step in list(self.running) if step.is_well}
        self.known = {key: one for key, one in self.known.items() if one.last >= limit and key not in well}
        return self.known


def _of_part(step: RunningStep, part: str) -> _Key:
    return step.workflow_id, step.step, f"part {part}"


def _in_a_row(step: RunningStep, before: FailingStep | None) -> int:
    """Failures in a row, including the attempts that failed in other workers."""
    if step.is_well:
        return 1
    return step.attempt if before is None else before.times + max(step.attempt - before.attempt, 1)
