"""What can go wrong outside, as activities see it.

Raised by adapters, which classify by code or status and never by message text; turned into Temporal's errors in one
place, activities/shared/every_step/temporal_errors.py. The tree asks one question: can trying again help?
"""


class Failure(Exception):
    """Something outside failed. `subject` names the object or call, as Kind/name or service:Operation."""

    reason: str = ""  # as a condition says it, where the other side has a word of its own for it

    def __init__(self, subject: str, message: str) -> None:
        super().__init__(f"{subject}: {message}")
        self.subject = subject


class Retryable(Failure):
    """Trying again may help. `after` is the least wait in seconds, where the other side named one."""

    def __init__(self, subject: str, message: str, after: float | None = None) -> None:
        super().__init__(subject, message)
        self.after = after


class Conflict(Retryable):
    """The object has changed since it was read. `current` is the object as it is now, where that is known already."""

    def __init__(self, subject: str, message: str, current: object | None = None) -> None:
        super().__init__(subject, message)
        self.current = current


class Throttled(Retryable):
    """The other side asks for fewer calls."""


class Unreachable(Retryable):
    """No answer, or an answer that says "not now"."""


class Postponed(Retryable):
    """Nothing is wrong: it waits for the end of something outside, which is reported where it happens."""


class NotAsked(Postponed):
    """The other side was not asked at all: what it says about that place is not to be relied on now."""


class NotSeenYet(Retryable):
    """The watch-fed view has not caught up with a write, or is not usable now."""


class Unauthenticated(Retryable):
    """Credentials are missing or have expired; they are renewed outside, so trying again helps."""


class NotReadable(Retryable):
    """An object that cannot be read. Nothing is decided on it until it has been corrected or is gone."""


class Permanent(Failure):
    """Trying the same again cannot help before a person has acted."""


class Forbidden(Permanent):
    """The identity lacks a right."""


class Refused(Permanent):
    """The other side finds the request wrong."""


class Misconfigured(Permanent):
    """A file or setting of ours is missing or wrong."""


class Taken(Permanent):
    """An object of that name exists and is not ours."""


def least_wait(failure: Failure) -> float | None:
    """The least wait in seconds before another try, where the other side named one."""
    return failure.after if isinstance(failure, Retryable) else None


def needs_a_person(failure: BaseException) -> bool:
    """Whether a person has to put it right outside: a right, a setting, credentials.

    Trying again is then worth it, but slowly. All other failures that trying again cannot help say that this very
    request is wrong.
    """
    return isinstance(failure, Forbidden | Misconfigured | Unauthenticated)


def worth_retrying(failure: Failure) -> Retryable:
    """The failure for a step that tries again all the same, because what is missing may be put right outside."""
    return Retryable(failure.subject, str(failure), least_wait(failure))
