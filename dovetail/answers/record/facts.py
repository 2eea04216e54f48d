"""What a workflow's history says: the one reader of Temporal's events.

The story (story.py) and the ledger (entries.py) are two views of these facts. A step is one fact, when it has ended;
what only Temporal itself needs (tasks, markers) is left out. Payloads are not decoded: their readers know the types,
and most are never read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.failure.v1 import Failure
from temporalio.api.history import v1
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from dovetail.activities.identity.search_attributes import PHASE
from dovetail.answers.record.decoding import Values, decode

# Ordinary causes of a failed workflow task: two things came at once, or a worker was asked to stop. The task is retried
# at once, and nothing is wrong with the code.
HARMLESS: Final = frozenset(
    {
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that happened, at that nanosecond of Unix time."""

    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Began(Fact):
    """`before`: the run that this one continues."""

    workflow: str
    given: Values
    summary: Values
    before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Fact):
    """A step that was scheduled. `looked`: when its last attempt began; `trouble`: why the one before failed."""

    name: str
    activity: str  # its id in the run
    given: Values
    summary: Values
    attempt: int = 1
    looked: int | None = None
    trouble: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded(Fact):
    """`failure`: if it failed or timed out."""

    step: Step
    how: Literal["answered", "failed", "timed out", "cut short"]
    result: Values = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits(Fact):
    seconds: float
    summary: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Fact):
    """A request from outside. A cancellation has no name, but says who made it and why."""

    how: Literal["signal", "update", "cancellation"]
    name: str = ""
    given: Values = ()
    by: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Fact):
    """The answer to an update accepted before."""

    result: Values
    failure: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Child(Fact):
    """A workflow that this one started, or could not start because one with that id runs."""

    workflow: str
    id: str
    runs_already: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFailed(Fact):
    """A workflow task that failed; it is retried until a worker can continue."""

    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Fact):
    """`by` and `why`: who terminated it; `workflow`: the type as which it continues."""

    how: Literal["completed", "failed", "terminated", "cancelled", "timed out", "continued"]
    result: Values = ()
    failure: Failure | None = None
    by: str = ""
    why: str = ""
    workflow: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `steps`: in the order in which they were scheduled, including those that have not ended; `phase`: as the
    visibility list shows it."""

    facts: tuple[Fact, ...]
    steps: tuple[Step, ...]
    phase: Values = ()

    @property
    def began(self) -> Began:
        return next(fact for fact in self.facts if isinstance(fact, Began))

    @property
    def ended(self) -> Ended | None:
        """The last fact of a finished run."""
        return next((fact for fact in self.facts if isinstance(fact, Ended)), None)

    def answered(self, step: str) -> StepEnded | None:
        """The first step of that name that has succeeded."""
        ends = (fact for fact in self.facts if isinstance(fact, StepEnded) and fact.how == "answered")
        return next((fact for fact in ends if fact.step.name == step), None)

    def asked(self, step: str) -> tuple[Step, ...]:
        return tuple(each for each in self.steps if each.name == step)


async def run_of(client: Client, workflow: str, run_id: str, *, decoded: bool = True) -> Run | None:
    """A run as Temporal has it; None if the retention has deleted it. Without `decoded` its payloads are left as they
    are stored: decoding a long history takes a while."""
    try:
        events = (await client.get_workflow_handle(workflow, run_id=run_id).fetch_history()).events
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise
    if decoded:
        await decode(client, *events)
    return read_run(events)


def read_run(events: Iterable[v1.HistoryEvent]) -> Run:
    facts: list[Fact] = []
    steps: dict[int, Step] = {}  # by the event that scheduled each
    phase: Values = ()
    for event in events:
        at, said = event.event_time.ToNanoseconds(), getattr(event, event.WhichOneof("attributes") or "", None)
        given = event.user_metadata.summary
        summary = (given,) if given.ByteSize() else ()
        if isinstance(said, v1.ActivityTaskScheduledEventAttributes):
            steps[event.event_id] = _step(at, said, summary)
        elif isinstance(said, v1.ActivityTaskStartedEventAttributes):
            if said.scheduled_event_id in steps:
                steps[said.scheduled_event_id] = _taken_up(at, said, steps[said.scheduled_event_id])
        else:
            phase = _phase(said) or phase
            step = steps.get(getattr(said, "scheduled_event_id", 0))
            fact = _of_step(at, said, step) if step else _of_others(at, said, summary) or _of_the_run(at, said, summary)
            facts += [fact] if fact is not None else []
    return Run(tuple(facts), tuple(steps.values()), phase)


def _step(at: int, said: v1.ActivityTaskScheduledEventAttributes, summary: Values) -> Step:
    name, given = said.activity_type.name, said.input.payloads
    return Step(at=at, name=name, activity=said.activity_id, given=given, summary=summary)


def _taken_up(at: int, said: v1.ActivityTaskStartedEventAttributes, step: Step) -> Step:
    trouble = said.last_failure if said.HasField("last_failure") else None
    return replace(step, attempt=said.attempt, looked=at, trouble=trouble)


def _phase(said: Any) -> Values:
    match said:
        case v1.WorkflowExecutionStartedEventAttributes() | v1.UpsertWorkflowSearchAttributesEventAttributes():
            found = said.search_attributes.indexed_fields
            return (found[PHASE.name],) if PHASE.name in found else ()
    return ()


def _of_step(at: int, said: Any, step: Step) -> Fact | None:
    match said:
        case v1.ActivityTaskCompletedEventAttributes():
            return StepEnded(at=at, step=step, how="answered", result=said.result.payloads)
        case v1.ActivityTaskFailedEventAttributes():
            return StepEnded(at=at, step=step, how="failed", failure=said.failure)
        case v1.ActivityTaskTimedOutEventAttributes():
            return StepEnded(at=at, step=step, how="timed out", failure=said.failure)
        case v1.ActivityTaskCanceledEventAttributes():
            return StepEnded(at=at, step=step, how="cut short")
    return None


def _of_others(at: int, said: Any, summary: Values) -> Fact | None:
    """Events from outside, from the clock and from its child workflows."""
    match said:
        case v1.TimerStartedEventAttributes():
            return Waits(at=at, seconds=said.start_to_fire_timeout.ToMilliseconds() / 1000, summary=summary)
        case v1.WorkflowExecutionSignaledEventAttributes():
            return Asked(at=at, how="signal", name=said.signal_name, given=said.input.payloads)
        case v1.WorkflowExecutionUpdateAcceptedEventAttributes():
            asked = said.accepted_request.input
            return Asked(at=at, how="update", name=asked.name, given=asked.args.payloads)
        case v1.WorkflowExecutionUpdateCompletedEventAttributes():
            failure = said.outcome.failure if said.outcome.HasField("failure") else None
            return Answered(at=at, result=said.outcome.success.payloads, failure=failure)
        case v1.WorkflowExecutionCancelRequestedEventAttributes():
            return Asked(at=at, how="cancellation", by=said.identity, why=said.cause)
        case v1.ChildWorkflowExecutionStartedEventAttributes():
            return Child(at=at, workflow=said.workflow_type.name, id=said.workflow_execution.workflow_id)
        case v1.StartChildWorkflowExecutionFailedEventAttributes():
            return Child(at=at, workflow=said.workflow_type.name, id=said.workflow_id, runs_already=True)
    return None


def _of_the_run(at: int, said: Any, summary: Values) -> Fact | None:
    match said:
        case v1.WorkflowExecutionStartedEventAttributes():
            name, given, before = said.workflow_type.name, said.input.payloads, said.continued_execution_run_id
            return Began(at=at, workflow=name, given=given, summary=summary, before=before)
        case v1.WorkflowTaskFailedEventAttributes() if said.cause not in HARMLESS:
            return CodeFailed(at=at, failure=said.failure)
        case v1.WorkflowExecutionCompletedEventAttributes():
            return Ended(at=at, how="completed", result=said.result.payloads)
        case v1.WorkflowExecutionFailedEventAttributes():
            return Ended(at=at, how="failed", failure=said.failure)
        case v1.WorkflowExecutionTerminatedEventAttributes():
            return Ended(at=at, how="terminated", by=said.identity, why=said.reason)
        case v1.WorkflowExecutionContinuedAsNewEventAttributes():
            return Ended(at=at, how="continued", workflow=said.workflow_type.name)
        case v1.WorkflowExecutionCanceledEventAttributes():
            return Ended(at=at, how="cancelled")
        case v1.WorkflowExecutionTimedOutEventAttributes():
            return Ended(at=at, how="timed out")
    return None
