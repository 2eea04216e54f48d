"""A run as people read it: a line for each thing that happened, and the steps that have not ended.

A step that has ended is one line, with its summary, its outcome, how long it took and how often it was tried. A step
that hangs has no event: it is read from the workflow's description, with its progress and last failure.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.converter import PayloadConverter

from dovetail.answers.record.decoding import Values, failure_text, plain, shortened, typed
from dovetail.answers.record.facts import (
    Answered,
    Asked,
    Began,
    Child,
    CodeFailed,
    Ended,
    Fact,
    Run,
    Step,
    StepEnded,
    Waits,
)
from dovetail.answers.wording import duration_text, plural, price_text, shown
from dovetail.messages.inputs import DisruptInput
from dovetail.messages.plans import DisruptionCommand
from dovetail.messages.workflow_types import DISRUPT_NODES


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
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
class StoryLines:
    """The lines so far, across the runs of one workflow id."""

    converter: PayloadConverter
    lines: list[Line] = field(default_factory=list)
    phase: str = ""
    task_failure: str = ""
    steps: dict[str, Step] = field(default_factory=dict)  # of the last run, by the activity's id

    def read(self, run: Run) -> None:
        self.steps = {step.activity: step for step in run.steps}
        if run.phase:
            value = self._plain(run.phase)
            self.phase = str(value[0] if isinstance(value, list) and value else value)
        for fact in run.facts:
            if isinstance(fact, CodeFailed):
                self.task_failure = failure_text(fact.failure)
            if text := self._text(fact):
                seconds = _seconds(fact) if isinstance(fact, StepEnded) else None
                self.lines.append(Line(at=moment(fact), text=shortened(text), seconds=seconds))

    def pending(self, activities: Iterable[PendingActivityInfo]) -> tuple[Pending, ...]:
        """The steps that have not ended, as the workflow's description has them."""
        return tuple(self._pending(info) for info in activities)

    def _pending(self, info: PendingActivityInfo) -> Pending:
        step, next_try = self.steps.get(info.activity_id), info.HasField("next_attempt_schedule_time")
        return Pending(
            step=self.words(step) if step else info.activity_type.name,
            since=moment(step) if step else info.scheduled_time.ToMicroseconds() / 1e6,
            attempt=info.attempt,
            progress=outcome_text(self._plain(info.heartbeat_details.payloads)),
            last_failure=failure_text(info.last_failure) if info.HasField("last_failure") else "",
            next_try=info.next_attempt_schedule_time.ToMicroseconds() / 1e6 if next_try else None,
            runs=info.state == 2,  # PENDING_ACTIVITY_STATE_STARTED
        )

    def words(self, step: Step) -> str:
        """The summary that the workflow gave it, or its name."""
        return self._said(step.summary) or step.name

    def _text(self, fact: Fact) -> str:
        match fact:
            case Began(before=""):
                summary = self._beginning(fact) or self._said(fact.summary)
                return f"{fact.workflow} starts{_behind(summary)}"
            case StepEnded():
                return self._step_text(fact)
            case Waits():
                return f"waits {duration_text(fact.seconds)}{_behind(self._said(fact.summary))}"
            case Asked(how="cancellation"):
                return f"cancellation asked for by {fact.by or 'somebody'}: {fact.why or 'no reason given'}"
            case Asked():
                accepted = ", accepted" if fact.how == "update" else ""
                return f"{fact.how} {fact.name}{_behind(outcome_text(self._plain(fact.given)))}{accepted}"
            case Answered():
                text = outcome_text(self._plain(fact.result)) if fact.failure is None else failure_text(fact.failure)
                return f"update {'answered' if fact.failure is None else 'failed'}: {text}"
            case Child():
                return (
                    f"{fact.workflow} {fact.id} runs already"
                    if fact.runs_already
                    else f"starts {fact.workflow} {fact.id}"
                )
            case CodeFailed():
                return f"its code could not go on: {failure_text(fact.failure)}"
            case Ended():
                return self._end_text(fact)
        return ""

    def _step_text(self, fact: StepEnded) -> str:
        step = fact.step
        outcome = fact.how if fact.failure is None else f"{fact.how.upper()}: {failure_text(fact.failure)}"
        if fact.how == "answered":
            outcome = outcome_text(self._plain(fact.result))
        took = duration_text(round(_seconds(fact), 1))
        tries = f", try {step.attempt}" if step.attempt > 1 else ""
        before = failure_text(step.trouble) if step.trouble is not None else ""
        trouble = f"; before: {before}" if before else ""
        return f"{self.words(step)}{f' -> {outcome}' if outcome else ''} ({took}{tries}{trouble})"

    def _end_text(self, fact: Ended) -> str:
        match fact.how:
            case "completed":
                result = self._plain(fact.result)
                return f"ends{_behind(called_off_text(result) or outcome_text(result))}"
            case "terminated":
                return f"TERMINATED by {fact.by or 'somebody'}: {fact.why or 'no reason given'}"
            case "continued":
                return f"goes on as {fact.workflow}"
            case "cancelled":
                return "ends: cancelled"
        return "TIMED OUT" if fact.failure is None else f"FAILS: {failure_text(fact.failure)}"

    def _beginning(self, fact: Began) -> str:
        """What a disruption was begun for: the summary that Temporal lists has only the reason and the nodes, and is
        cut. Empty for other workflows, and if the input cannot be read."""
        if fact.workflow != DISRUPT_NODES or not fact.given:
            return ""
        try:
            return command_text(typed(self.converter, fact.given, DisruptInput).command)
        except Exception:  # an encrypted payload must not hide the rest
            return ""

    def _plain(self, values: Values) -> Any:
        return plain(self.converter, values)

    def _said(self, summary: Values) -> str:
        return str(self._plain(summary) or "")


def moment(fact: Fact) -> float:
    """When it happened, to the microsecond."""
    return fact.at // 1000 / 1e6


def _seconds(fact: StepEnded) -> float:
    return round(moment(fact) - moment(fact.step), 3)


def _behind(text: str) -> str:
    return f": {text}" if text else ""


def command_text(command: DisruptionCommand) -> str:
    """Drifted of n1: 11 pods, 1 replacement, $0.3840/h → $0.1920/h."""
    pods = len({uid for target in command.targets for uid in target.pods})
    parts = [plural(pods, "pod") if pods else "no pods"]
    parts += [plural(len(command.replacements), "replacement")] if command.replacements else []
    parts += [_price(command)] if command.price or command.savings else []
    return f"{command.reason} of {shown(target.node or target.claim for target in command.targets)}: {', '.join(parts)}"


def _price(command: DisruptionCommand) -> str:
    """The decision's prices. Without prices of nodes only the saving is given; what replaces a node that leaves at once
    is not known beforehand."""
    if command.price and not command.replacements and not command.savings:
        return f"{price_text(command.price)} until it leaves"
    if command.price:
        return f"{price_text(command.price)} → {price_text(command.price - command.savings)}"
    return f"{'saves' if command.savings > 0 else 'costs'} {price_text(abs(command.savings))}"


def called_off_text(result: Any) -> str:
    """Who called a disruption off and why, from how it ended; empty if nobody did."""
    if not isinstance(result, dict) or result.get("outcome") != "cancelled":
        return ""
    author = result.get("by")
    return f"called off by {author}: {result.get('message') or ''}" if author else ""


def outcome_text(value: Any) -> str:
    """A step's or a workflow's result in a few words: its kind and message, else the names in it."""
    match value:
        case None | "" | []:
            return ""
        case str() | int() | float():
            return str(value)
        case {"name": str(name), **_rest}:
            return name
        case {"claim": {}, "deadline": _, "reason": str(reason), "nodes": list(nodes), **more}:  # of a termination
            goes = " of ".join(filter(None, (str(more.get("because") or reason), _names(nodes))))
            return f"{goes}: {words}" if (words := more.get("because_words")) else goes
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
