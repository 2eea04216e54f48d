"""Keeps a background task running, whatever fails in it.

A task that refreshes prices or feeds the cache must not end in silence with the first failure that nobody foresaw. One
that fails is logged with its trace, counted, and started anew after a pause that grows from one second to a minute.
Every supervised task of the process is known here by its name, so that probes, metrics and `doctor` can say which of
them fails now, since when and with what.

    task = supervised("aws prices", refresh.run)   # a function that makes the coroutine, not the coroutine itself
    ...
    await stop(task)
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass
from time import monotonic
from typing import Final

from dovetail.model.values.backoff import Backoff
from dovetail.telemetry.metrics.ours.background import task_failed

_log = logging.getLogger(__name__)

PAUSES: Final = Backoff(first=1.0, longest=60.0)
WELL_SECONDS: Final = 300.0  # a task that has run for this long without a failure is well, and its pause is short again

Work = Callable[[], Awaitable[None]]
Pause = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class TaskHealth:
    name: str
    failures: int = 0  # since the process began
    failed_at: float = 0.0  # on the monotonic clock
    message: str = ""  # of the last failure
    ended: bool = False  # it has done what it had to do, or was stopped

    def trouble(self) -> str:
        """The current failure, in a line; empty if the task is well."""
        ago = monotonic() - self.failed_at
        if self.ended or not self.failures or ago >= WELL_SECONDS:
            return ""
        return f"{self.name} has failed {self.failures} times, last {ago:.0f} s ago: {self.message}"


_known: dict[str, TaskHealth] = {}  # written by the loop of each task, read from any thread


def supervised(
    name: str, work: Work, pause: Pause = asyncio.sleep, context: Context | None = None
) -> asyncio.Task[None]:
    """A task on the running loop that does this work, and starts it anew whenever it fails.

    It ends when the work returns or the task is cancelled. A second task of a name takes the place of the first.
    `context`: what the task sees of its surroundings; the caller's without one.
    """
    health = _known[name] = TaskHealth(name)
    return asyncio.create_task(_keep_running(health, work, pause), name=name, context=context)


async def stop(*tasks: asyncio.Task[None]) -> None:
    """Cancel these tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def task_troubles() -> tuple[str, ...]:
    """The background tasks of this process that fail now, a line for each."""
    lines = (health.trouble() for health in list(_known.values()))
    return tuple(line for line in lines if line)


async def _keep_running(health: TaskHealth, work: Work, pause: Pause) -> None:
    seconds = PAUSES.first
    try:
        while True:
            began = monotonic()
            try:
                await work()
                return
            except Exception as error:
                _note(health, error)
            if health.failed_at - began >= WELL_SECONDS:
                seconds = PAUSES.first
            await pause(seconds)
            seconds = PAUSES.after(seconds)
    finally:
        health.ended = True


def _note(health: TaskHealth, error: Exception) -> None:
    health.failures += 1
    health.failed_at = monotonic()
    health.message = f"{type(error).__name__}: {error}"
    task_failed(health.name)
    _log.error("the background task %s has failed and is restarted", health.name, exc_info=error)
