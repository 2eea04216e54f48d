"""Turns failures into Temporal's ApplicationError.

A failure that can be retried keeps its cause and, if the other side named one, its wait. What a person has to correct
outside is retried slowly, unless the workflow has an alternative (`impatient` in workflows/options.py). An error in the
request itself is non-retryable and names its subject; any other error is a bug of ours and passes through unchanged.
`NotYet` and `Postponed` are waits, not failures: they are benign, and their messages say what is missing.
"""

from datetime import timedelta
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from dovetail.model.values.backoff import Backoff
from dovetail.ports.failures import Failure, Permanent, Postponed, least_wait, needs_a_person

SLOW: Final = Backoff(first=5.0, longest=60.0)  # until the next attempt at what a person has to correct


class NotYet(Exception):
    """A retried step finds that what it waits for has not happened; look again after that many seconds."""

    def __init__(self, message: str, after: float) -> None:
        super().__init__(message)
        self.after = after


def is_wait(error: Exception) -> bool:
    """Whether the step only looks again later: nothing has failed."""
    return isinstance(error, NotYet | Postponed)


def translate(error: Exception) -> Exception:
    """The error as Temporal should see it."""
    if isinstance(error, NotYet):
        return ApplicationError(
            str(error),
            type="NotYet",
            next_retry_delay=timedelta(seconds=error.after),
            category=ApplicationErrorCategory.BENIGN,
        )
    if not isinstance(error, Failure):
        return error
    slow = needs_a_person(error)
    seconds = max(least_wait(error) or 0.0, SLOW.pause(_attempt()) if slow else 0.0)
    return ApplicationError(
        str(error),
        error.subject,
        type=type(error).__name__,
        non_retryable=isinstance(error, Permanent) and not slow,
        next_retry_delay=timedelta(seconds=seconds) if seconds else None,
        category=ApplicationErrorCategory.BENIGN if is_wait(error) else ApplicationErrorCategory.UNSPECIFIED,
    )


def _attempt() -> int:
    return activity.info().attempt if activity.in_activity() else 1
