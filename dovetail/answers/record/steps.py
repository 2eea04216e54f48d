"""The parts of a history as people read it: lines, steps that have not ended, payloads and failures in words.

A step that hangs has no event of its own. It is read from the workflow's description instead, with its progress and
its last failure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.converter import PayloadConverter

from dovetail.answers.wording import shown

_LONGEST: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that happened."""

    at: float
    text: str
    seconds: float | None = None  # of a step that has ended here: how long it took


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A step that has not ended."""

    step: str
    since: float
    attempt: int
    progress: str = ""
    last_failure: str = ""
    next_try: float | None = None
    runs: bool = False  # a worker has it now


@dataclass(slots=True)
class Step:
    """A step as it was scheduled."""

    words: str
    at: float
    attempt: int = 1
    trouble: str = ""


@dataclass(slots=True)
class StoryLines:
    """The lines so far, over the runs of one workflow id."""

    converter: PayloadConverter
    lines: list[Line] = field(default_factory=list)
    phase: str = ""
    task_failure: str = ""
    steps: dict[int, Step] = field(default_factory=dict)  # of the run being read, by event id
    by_activity: dict[str, Step] = field(default_factory=dict)

    def begin_run(self) -> None:
        """Event ids start again with each run."""
        self.steps.clear()
        self.by_activity.clear()

    def add(self, event: HistoryEvent, text: str, seconds: float | None = None) -> None:
        """Add a line; `seconds`: of a step, how long it took."""
        self.lines.append(Line(at=moment(event), text=shortened(text), seconds=seconds))

    def value(self, payloads: Payloads | Sequence[Payload]) -> Any:
        """The first payload as plain JSON; None where there is none or it cannot be read."""
        found = payloads.payloads if isinstance(payloads, Payloads) else payloads
        if not found:
            return None
        try:
            return self.converter.from_payloads([found[0]])[0]
        except Exception:  # an encrypted payload must not hide the rest
            return "(cannot be read here)"

    def summary(self, event: HistoryEvent) -> str:
        """The summary that the workflow gave the event."""
        given = event.user_metadata.summary
        return str(self.value([given]) or "") if given.ByteSize() else ""


def moment(event: HistoryEvent) -> float:
    """When it happened."""
    return event.event_time.ToMicroseconds() / 1e6


def shortened(text: str) -> str:
    """On one line, cut after a few hundred characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}..."


def failure_text(failure: Failure) -> str:
    """The message of the innermost cause that says something."""
    text = failure.message
    while failure.HasField("cause"):
        failure = failure.cause
        text = failure.message or text
    return shortened(text)


def outcome_text(value: Any) -> str:
    """A step's or a workflow's result in a few words: its kind and message, else the names that it holds."""
    match value:
        case None | "" | []:
            return ""
        case str() | int() | float():
            return str(value)
        case {"name": str(name), **_rest}:
            return name
        case {"claim": {}, "deadline": _, "reason": str(reason), "nodes": list(nodes)}:  # what a termination works on
            return " of ".join(filter(None, (reason, _names(nodes))))
        case dict():
            words = [str(value[key]) for key in ("kind", "outcome", "message") if value.get(key)]
            lists = [
                f"{key} {_names(value[key])}" for key in ("claims", "marked", "deleted", "refused") if value.get(key)
            ]
            return ": ".join(words) + (" " if words and lists else "") + "; ".join(lists)
        case list():
            return _names(value)
    return str(value)


def _names(items: list[Any]) -> str:
    return shown(": ".join(map(str, i)) if isinstance(i, list) else outcome_text(i) for i in items)


def pending_of(activities: Iterable[PendingActivityInfo], story: StoryLines) -> tuple[Pending, ...]:
    """The steps that have not ended, in words."""
    found = []
    for info in activities:
        step = story.by_activity.get(info.activity_id)
        failed = info.HasField("last_failure")
        found.append(
            Pending(
                step=step.words if step else info.activity_type.name,
                since=step.at if step else info.scheduled_time.ToMicroseconds() / 1e6,
                attempt=info.attempt,
                progress=outcome_text(story.value(info.heartbeat_details)),
                last_failure=failure_text(info.last_failure) if failed else "",
                next_try=info.next_attempt_schedule_time.ToMicroseconds() / 1e6
                if info.HasField("next_attempt_schedule_time")
                else None,
                runs=info.state == 2,  # PENDING_ACTIVITY_STATE_STARTED
            )
        )
    return tuple(found)
