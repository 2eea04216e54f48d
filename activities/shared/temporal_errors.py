"""Turns what went wrong in a step into Temporal's errors. The only place that builds an ApplicationError.

What can be tried again keeps its cause and, where the other side named one, its wait; what cannot is non-retryable and
names its subject; any other error is a bug of ours and passes through as it is. `NotYet` is a wait, not a failure: it
is benign, and its message says what is missing.
"""

from datetime import timedelta

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from dovetail.ports.failures import Failure, Permanent, Retryable


class NotYet(Exception):
    """A retried step has looked and it is not so yet; look again after that many seconds."""

    def __init__(self, message: str, after: float = 5.0) -> None:
        super().__init__(message)
        self.after = after


def translate(error: Exception) -> Exception:
    """The error as Temporal should see it."""
    if isinstance(error, NotYet):
        return ApplicationError(
            str(error),
            type="NotYet",
            next_retry_delay=timedelta(seconds=error.after),
            category=ApplicationErrorCategory.BENIGN,
        )
    if isinstance(error, Permanent):
        return ApplicationError(str(error), error.subject, type=type(error).__name__, non_retryable=True)
    if isinstance(error, Retryable):
        delay = None if error.after is None else timedelta(seconds=error.after)
        return ApplicationError(str(error), error.subject, type=type(error).__name__, next_retry_delay=delay)
    if isinstance(error, Failure):
        return ApplicationError(str(error), error.subject, type=type(error).__name__)
    return error
