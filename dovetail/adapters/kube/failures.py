"""What an answer of the API server means: its status becomes one of dovetail.ports.failures.

Classified by status code and by the machine-read `reason` of the Status object, never by the message. Asked for raw
answers, the client library raises for no status at all, so every status is looked at here.

The API server refuses with a Status object. A refusal without one is a page of a gateway that stands before it, which
starts or has no route: no answer, and nobody has refused anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dovetail.ports.failures import (
    Conflict,
    Failure,
    Forbidden,
    Refused,
    Taken,
    Throttled,
    Unauthenticated,
    Unreachable,
)

NOT_FOUND: Final = 404
CONFLICT: Final = 409
INVALID: Final = 422

_NOT_FOUND_REASON: Final = "NotFound"  # of an object; a path that is not served has none

_SIGNS: Final = ("kind", "gitVersion")  # of an object, a list and a Status; of /version

_NOT_NOW: Final = frozenset({408, 425})  # and all from 500 on
_EXPIRED: Final = 410
_LONGEST_MESSAGE: Final = 500  # a refusal may quote a whole object


class Expired(Conflict):
    """The version to continue from is no longer kept: list again (410)."""


class NotServed(Unreachable):
    """Nothing at that path (404). The API server says so of a kind that is not installed, without a Status, and a
    gateway's page looks the same: only discovery tells them apart (`discovery.py`)."""


class NotAWatch(Unreachable):
    """What a watch was answered with is no stream of events: a gateway before the server has answered."""

    def __init__(self, subject: str, what: str) -> None:
        super().__init__(subject, f"not a watch of the API server: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer: its status and its decoded body. The body of a failure is a Status object, unless a proxy wrote it."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)
    retry_after: float | None = None
    moment: float | None = None  # the server's clock as it answered, in whole seconds

    @property
    def reason(self) -> str:
        """The machine-read reason of a Status object."""
        return str(self.body.get("reason") or "")

    @property
    def message(self) -> str:
        return str(self.body.get("message") or f"HTTP {self.status}")[:_LONGEST_MESSAGE]

    @property
    def is_the_servers(self) -> bool:
        """Whether the API server has said it: done, refused, or there is no such object. A gateway before it has pages
        of its own for all three, and by them nothing has happened, is forbidden or is gone."""
        if self.status < 300:
            return not self.body.keys().isdisjoint(_SIGNS)
        return self.body.get("kind") == "Status" and (self.status != NOT_FOUND or self.reason == _NOT_FOUND_REASON)

    @property
    def causes(self) -> tuple[Mapping[str, Any], ...]:
        """The details' causes: which field is wrong, or what kept an eviction back. None where a gateway has written
        the details in a form of its own."""
        details = self.body.get("details")
        causes = details.get("causes") if isinstance(details, dict) else None
        return tuple(cause for cause in causes if isinstance(cause, dict)) if isinstance(causes, list) else ()

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(str(cause["field"]) for cause in self.causes if cause.get("field"))


def body_of(decoded: object, text: str) -> dict[str, Any]:
    """An answer's body; what is no JSON object is kept as the message."""
    return decoded if isinstance(decoded, dict) else {"message": text[:200]}


def failure_of(answer: Answer, subject: str) -> Failure:
    status, message = answer.status, answer.message
    if status == 429:  # where too much is in flight, without a Status
        return Throttled(subject, message, answer.retry_after)
    if not answer.is_the_servers:
        kind = NotServed if status == NOT_FOUND else Unreachable
        return kind(subject, f"not an answer of the API server about it ({status}): {message}", answer.retry_after)
    if status == 401:
        return Unauthenticated(subject, message)
    if status == 403 or _is_denied(answer):
        return Forbidden(subject, message)
    if status == CONFLICT:
        return Taken(subject, message) if answer.reason == "AlreadyExists" else Conflict(subject, message)
    if status == _EXPIRED:
        return Expired(subject, message)
    if status in _NOT_NOW or status >= 500:
        return Unreachable(subject, message, answer.retry_after)
    return Refused(subject, _with_fields(answer))


def _is_denied(answer: Answer) -> bool:
    """Whether an admission policy refuses it, which by default answers 422: what is invalid is a field, and named."""
    return answer.status == INVALID and bool(answer.causes) and not answer.fields


def _with_fields(answer: Answer) -> str:
    """The message, with the invalid fields if the server names them and the message does not."""
    missing = [name for name in answer.fields if name not in answer.message]
    return f"{answer.message} ({', '.join(missing)})" if missing else answer.message
