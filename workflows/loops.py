"""The loops of a singleton, and what keeps them going.

A loop takes one turn after another. A turn that fails ends neither its loop nor the others, and its workflow forgets
nothing: the loop shows what failed, waits (5 s, then twice as long each time, at most a minute; a poke ends it) and
takes its next turn. What a failed turn has left half done is found again from the objects.

The wait is the only command that is added, and only after a failure, so a history without one replays unchanged. An
error that is not the failure of a step or a child is a mistake in this code: it fails the workflow task, which Temporal
repeats until the mistake is corrected, with nothing lost.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from temporalio import workflow
from temporalio.exceptions import ActivityError, ChildWorkflowError, FailureError, is_cancelled_exception

from dovetail.model.values.backoff import Backoff
from dovetail.workflows.waits import Waits

PAUSES = Backoff(first=5.0, longest=60.0)

Turn = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What fails in a loop now: how often in a row, when last, and how long the loop waits before its next turn."""

    times: int
    text: str
    at: str = ""

    @property
    def pause(self) -> float:
        """Seconds until the next turn."""
        return PAUSES.pause(self.times)


class Loops:
    """The loops of one workflow, by name."""

    def __init__(self, show: Callable[[], None], max_history: int) -> None:
        self.waits = Waits()
        self.max_history = max_history
        self.troubles: dict[str, Trouble] = {}
        self.show = show  # called whenever the troubles have changed
        self.woken: dict[str, asyncio.Event] = {}

    async def run(self, **turns: Turn) -> None:
        """Run all loops, each until its workflow is leaving."""
        await asyncio.gather(*[asyncio.create_task(self.go_on(name, turn)) for name, turn in turns.items()])

    async def go_on(self, name: str, turn: Turn) -> None:
        """Turn after turn; one that fails is followed by a wait."""
        while not self.waits.leaving:
            try:
                await turn()
            except FailureError as error:
                if is_cancelled_exception(error) and workflow.cancellation_reason() is not None:
                    raise
                await self.fail(name, error)
            else:
                self.recover(name)
            self.waits.leave_if_long(self.max_history)

    async def fail(self, name: str, error: FailureError) -> None:
        before = self.troubles.get(name)
        times = 1 if before is None else before.times + 1
        trouble = Trouble(times=times, text=said(error), at=f"{workflow.now():%H:%M:%S} UTC")
        self.troubles[name] = trouble
        workflow.logger.warning("%s failed, again in %.0f s: %s", name, trouble.pause, trouble.text)
        self.show()
        await self.pause(name, trouble.pause)

    def recover(self, name: str) -> None:
        if self.troubles.pop(name, None) is not None:
            self.show()

    async def pause(self, name: str, seconds: float) -> None:
        """Wait this long, or until the loop is woken or leaves."""
        woken = self.woken[name] = asyncio.Event()
        try:
            with contextlib.suppress(TimeoutError):  # the pause is over
                await workflow.wait_condition(
                    lambda: woken.is_set() or self.waits.leaving,
                    timeout=seconds,
                    timeout_summary=f"{name}: wait after a failure",
                )
        finally:
            self.woken.pop(name, None)

    def wake(self, *names: str) -> None:
        """Cancel these waits and end these pauses, or all of them if none is named: they look again at once."""
        self.waits.cancel(*names)
        for name in sorted(names or self.woken):
            if name in self.woken:
                self.woken[name].set()

    def lines(self) -> list[str]:
        """The troubles, for the workflow's details."""
        return [
            f"- **{name} fails** ({found.times} in a row, last at {found.at}, wait {found.pause:.0f} s): {found.text}"
            for name, found in sorted(self.troubles.items())
        ]


def raise_first(outcomes: Iterable[object]) -> None:
    """Raise the first failure among the outcomes of what was done in parallel."""
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


def said(error: BaseException) -> str:
    """The step or child that failed, and the root cause."""
    cause = error
    while isinstance(cause, FailureError) and cause.__cause__ is not None:
        cause = cause.__cause__
    text = (str(cause) or type(cause).__name__)[:500]
    if isinstance(error, ActivityError):
        return f"{error.activity_type}: {text}"
    return f"{error.workflow_type} {error.workflow_id}: {text}" if isinstance(error, ChildWorkflowError) else text
