"""From Temporal's events to lines that read like a story: one reader for each event that people want to know of.

A step is one line when it has ended, with its own summary, its outcome, how long it took and how often it was tried;
what only the machinery needs (tasks, markers) is left out.
"""

from collections.abc import Callable, Sequence
from typing import Final

from temporalio.api.common.v1 import SearchAttributes
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent

from dovetail.activities.identity.search_attributes import PHASE
from dovetail.answers.history.beginnings import beginning_text, called_off_text
from dovetail.answers.record.steps import Step, StoryLines, failure_text, moment, outcome_text
from dovetail.answers.wording import duration_text

# Causes of a failed workflow task that belong to every day: two things came at once, a worker was asked to leave. The
# task is tried again at once, and nothing is wrong with the code.
HARMLESS: Final = frozenset(
    {
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    }
)


def read_run(story: StoryLines, events: Sequence[HistoryEvent]) -> None:
    """One run."""
    story.begin_run()
    for event in events:
        reader = _TELLERS.get(event.event_type)
        if reader is not None:
            reader(story, event)


def _started(story: StoryLines, event: HistoryEvent) -> None:
    given = event.workflow_execution_started_event_attributes
    summary = beginning_text(story, given.workflow_type.name, given.input) or story.summary(event)
    _show_phase(story, given.search_attributes)
    if not given.continued_execution_run_id:
        story.add(event, f"{given.workflow_type.name} starts{f': {summary}' if summary else ''}")


def _scheduled(story: StoryLines, event: HistoryEvent) -> None:
    given = event.activity_task_scheduled_event_attributes
    step = Step(words=story.summary(event) or given.activity_type.name, at=moment(event))
    story.steps[event.event_id] = story.by_activity[given.activity_id] = step


def _taken(story: StoryLines, event: HistoryEvent) -> None:
    given = event.activity_task_started_event_attributes
    step = story.steps.get(given.scheduled_event_id)
    if step is not None:
        step.attempt = given.attempt
        step.trouble = failure_text(given.last_failure) if given.HasField("last_failure") else ""


def _step_end(story: StoryLines, event: HistoryEvent, scheduled: int, outcome: str) -> None:
    step = story.steps.get(scheduled)
    if step is None:
        return
    seconds = round(moment(event) - step.at, 3)
    took = duration_text(round(seconds, 1))
    tries = f", try {step.attempt}" if step.attempt > 1 else ""
    trouble = f"; before: {step.trouble}" if step.trouble else ""
    story.add(event, f"{step.words}{f' -> {outcome}' if outcome else ''} ({took}{tries}{trouble})", seconds)


def _completed(story: StoryLines, event: HistoryEvent) -> None:
    given = event.activity_task_completed_event_attributes
    _step_end(story, event, given.scheduled_event_id, outcome_text(story.value(given.result)))


def _failed(story: StoryLines, event: HistoryEvent) -> None:
    given = event.activity_task_failed_event_attributes
    _step_end(story, event, given.scheduled_event_id, f"FAILED: {failure_text(given.failure)}")


def _timed_out(story: StoryLines, event: HistoryEvent) -> None:
    given = event.activity_task_timed_out_event_attributes
    _step_end(story, event, given.scheduled_event_id, f"TIMED OUT: {failure_text(given.failure)}")


def _step_cancelled(story: StoryLines, event: HistoryEvent) -> None:
    _step_end(story, event, event.activity_task_canceled_event_attributes.scheduled_event_id, "cut short")


def _timer(story: StoryLines, event: HistoryEvent) -> None:
    wait = event.timer_started_event_attributes.start_to_fire_timeout.ToMilliseconds() / 1000
    summary = story.summary(event)
    story.add(event, f"waits {duration_text(wait)}{f': {summary}' if summary else ''}")


def _signalled(story: StoryLines, event: HistoryEvent) -> None:
    given = event.workflow_execution_signaled_event_attributes
    text = outcome_text(story.value(given.input))
    story.add(event, f"signal {given.signal_name}{f': {text}' if text else ''}")


def _update(story: StoryLines, event: HistoryEvent) -> None:
    request = event.workflow_execution_update_accepted_event_attributes.accepted_request
    text = outcome_text(story.value(request.input.args))
    story.add(event, f"update {request.input.name}{f': {text}' if text else ''}, accepted")


def _update_end(story: StoryLines, event: HistoryEvent) -> None:
    outcome = event.workflow_execution_update_completed_event_attributes.outcome
    refused = outcome.HasField("failure")
    text = failure_text(outcome.failure) if refused else outcome_text(story.value(outcome.success))
    story.add(event, f"update {'failed' if refused else 'answered'}: {text}")


def _child(story: StoryLines, event: HistoryEvent) -> None:
    given = event.child_workflow_execution_started_event_attributes
    story.add(event, f"starts {given.workflow_type.name} {given.workflow_execution.workflow_id}")


def _child_refused(story: StoryLines, event: HistoryEvent) -> None:
    given = event.start_child_workflow_execution_failed_event_attributes
    story.add(event, f"{given.workflow_type.name} {given.workflow_id} runs already")


def _attributes(story: StoryLines, event: HistoryEvent) -> None:
    _show_phase(story, event.upsert_workflow_search_attributes_event_attributes.search_attributes)


def _show_phase(story: StoryLines, attributes: SearchAttributes) -> None:
    if PHASE.name in attributes.indexed_fields:
        value = story.value([attributes.indexed_fields[PHASE.name]])
        story.phase = str(value[0] if isinstance(value, list) and value else value)


def _cancel_asked(story: StoryLines, event: HistoryEvent) -> None:
    given = event.workflow_execution_cancel_requested_event_attributes
    story.add(event, f"cancellation asked for by {given.identity or 'somebody'}: {given.cause or 'no reason given'}")


def _task_failed(story: StoryLines, event: HistoryEvent) -> None:
    given = event.workflow_task_failed_event_attributes
    if given.cause in HARMLESS:
        return
    story.task_failure = failure_text(given.failure)
    story.add(event, f"its code could not go on: {story.task_failure}")


def _goes_on(story: StoryLines, event: HistoryEvent) -> None:
    given = event.workflow_execution_continued_as_new_event_attributes
    story.add(event, f"goes on as {given.workflow_type.name}")


def _ended(story: StoryLines, event: HistoryEvent) -> None:
    result = story.value(event.workflow_execution_completed_event_attributes.result)
    text = called_off_text(result) or outcome_text(result)
    story.add(event, f"ends{f': {text}' if text else ''}")


def _ended_badly(story: StoryLines, event: HistoryEvent) -> None:
    story.add(event, f"FAILS: {failure_text(event.workflow_execution_failed_event_attributes.failure)}")


def _ended_by_hand(story: StoryLines, event: HistoryEvent) -> None:
    given = event.workflow_execution_terminated_event_attributes
    story.add(event, f"TERMINATED by {given.identity or 'somebody'}: {given.reason or 'no reason given'}")


def _ended_cancelled(story: StoryLines, event: HistoryEvent) -> None:
    story.add(event, "ends: cancelled")


def _ended_late(story: StoryLines, event: HistoryEvent) -> None:
    story.add(event, "TIMED OUT")


_TELLERS: Final[dict[int, Callable[[StoryLines, HistoryEvent], None]]] = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: _started,
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: _scheduled,
    EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED: _taken,
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: _completed,
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: _failed,
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: _timed_out,
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED: _step_cancelled,
    EventType.EVENT_TYPE_TIMER_STARTED: _timer,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: _signalled,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: _update,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED: _update_end,
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED: _child,
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED: _child_refused,
    EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES: _attributes,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED: _cancel_asked,
    EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED: _task_failed,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW: _goes_on,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: _ended,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED: _ended_badly,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED: _ended_by_hand,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED: _ended_cancelled,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT: _ended_late,
}
