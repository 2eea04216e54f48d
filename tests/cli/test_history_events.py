"""What `dovetail history` makes of single events, and what it leaves out."""

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent

from dovetail.answers.record.facts import HARMLESS, Began, Ended, StepEnded, read_run
from dovetail.answers.record.story import StoryLines, outcome_text
from dovetail.messages.inputs import DisruptInput
from dovetail.messages.outcomes import DisruptionRecord
from dovetail.messages.plans import DisruptionCommand, PlannedPod, ProposedNode, Seen, Target
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model.nodes import NodeClassRef
from dovetail.workflows.converter import DATA_CONVERTER
from tests.replay.recorded import read_history, recorded_files

CONVERTER = DATA_CONVERTER.payload_converter
TARGETS = tuple(
    Target(claim=f"web-{n}", claim_uid=f"u{n}", node=f"n{n}", node_uid="", provider_id="", pool="web", pods=pods)
    for n, pods in ((1, ("a", "b")), (2, ("c",)))
)
NEW = ProposedNode(
    pool="web",
    pool_uid="p",
    node_class=NodeClassRef(group="g", kind="k", name="default"),
    requirements=(),
    type_list=0,
    pods=(PlannedPod(namespace="shop", name="cart-1", uid="a"),),
)


def lines(*events: HistoryEvent) -> list[str]:
    story = StoryLines(CONVERTER)
    story.read(read_run(events))
    return [line.text for line in story.lines]


def begun(**command: Any) -> HistoryEvent:
    """A disruption of two nodes."""
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)
    given = event.workflow_execution_started_event_attributes
    given.workflow_type.name = "DisruptNodes"
    asked = DisruptionCommand(**{"reason": "Drifted", "method": "drift", "targets": TARGETS, **command})
    held = DisruptInput(cluster="demo", plan_id="1", command=asked, seen=Seen(taken_at=0.0))
    given.input.payloads.extend(CONVERTER.to_payloads([held]))
    event.user_metadata.summary.CopyFrom(CONVERTER.to_payloads(["Drifted: n1, n2"])[0])
    return event


def event(kind: str, **said: Any) -> HistoryEvent:
    """Of that type, with nested fields as keys of dictionaries."""
    found = HistoryEvent(event_type=EventType.Value(f"EVENT_TYPE_{kind.upper()}"))
    return ParseDict({f"{kind}_event_attributes": said}, found)


def ended(record: DisruptionRecord) -> HistoryEvent:
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED)
    event.workflow_execution_completed_event_attributes.result.payloads.extend(CONVERTER.to_payloads([record]))
    return event


@pytest.mark.parametrize("cause", WorkflowTaskFailedCause.values())
def test_a_workflow_task_that_is_tried_again_every_day_is_no_failure_of_the_code(
    cause: WorkflowTaskFailedCause.ValueType,
) -> None:
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED)
    given = event.workflow_task_failed_event_attributes
    given.cause, given.failure.message = cause, "UnhandledCommand"
    story = StoryLines(CONVERTER)

    story.read(read_run([event]))

    told = [] if cause in HARMLESS else ["its code could not go on: UnhandledCommand"]
    assert ([line.text for line in story.lines], bool(story.task_failure)) == (told, bool(told))


def test_the_causes_of_every_day_are_three() -> None:
    assert sorted(WorkflowTaskFailedCause.Name(cause).split("CAUSE_")[1] for cause in HARMLESS) == [
        "FORCE_CLOSE_COMMAND",
        "RESET_STICKY_TASK_QUEUE",
        "UNHANDLED_COMMAND",
    ]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ({"replacements": (NEW,), "price": 0.384, "savings": 0.192}, "3 pods, 1 replacement, $0.3840/h → $0.1920/h"),
        ({"replacements": (NEW,), "price": 0.2, "savings": -0.1}, "3 pods, 1 replacement, $0.2000/h → $0.3000/h"),
        ({"savings": 0.4}, "3 pods, saves $0.4000/h"),
        ({"price": 0.2, "drain_first": True}, "3 pods, $0.2000/h until it leaves"),
        ({}, "3 pods"),
    ],
)
def test_a_disruption_says_its_pods_and_its_price_before_and_after(command: dict[str, Any], says: str) -> None:
    assert lines(begun(**command)) == [f"DisruptNodes starts: Drifted of n1, n2: {says}"]


def test_an_input_that_cannot_be_read_leaves_the_summary() -> None:
    event = begun()
    event.workflow_execution_started_event_attributes.input.payloads[0].metadata["encoding"] = b"binary/other"

    assert lines(event) == ["DisruptNodes starts: Drifted: n1, n2"]


def test_a_disruption_that_somebody_called_off_names_them() -> None:
    by_ann = DisruptionRecord(outcome="cancelled", reason="Drifted", message="not now (by bob)", by="ann")
    by_nobody = DisruptionRecord(outcome="cancelled", reason="Drifted", message="not now")
    done = DisruptionRecord(outcome="done", reason="Drifted", deleted=("web-1",))

    assert lines(ended(by_ann), ended(by_nobody), ended(done)) == [
        "ends: called off by ann: not now (by bob)",
        "ends: cancelled: not now",
        "ends: done deleted web-1",
    ]


def test_a_termination_says_why_and_of_which_node() -> None:
    departure = Departure(claim=ClaimRef(name="web-1", uid="u1", pool="web"), nodes=("n1",), reason="Drifted")
    scheduled = HistoryEvent(event_id=5, event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
    scheduled.activity_task_scheduled_event_attributes.activity_type.name = "begin_departure"
    done = HistoryEvent(event_id=6, event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
    done.activity_task_completed_event_attributes.scheduled_event_id = 5
    done.activity_task_completed_event_attributes.result.payloads.extend(CONVERTER.to_payloads([departure]))

    assert lines(scheduled, done) == ["begin_departure -> Drifted of n1 (0s)"]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (event("workflow_execution_timed_out"), "TIMED OUT"),
        (event("workflow_execution_canceled"), "ends: cancelled"),
        (event("workflow_execution_failed", failure={"message": "a", "cause": {"message": "b"}}), "FAILS: b"),
        (event("workflow_execution_terminated", reason="too old"), "TERMINATED by somebody: too old"),
        (
            event("workflow_execution_cancel_requested", identity="ann"),
            "cancellation asked for by ann: no reason given",
        ),
        (event("workflow_execution_signaled", signal_name="poke"), "signal poke"),
        (
            event("workflow_execution_update_completed", outcome={"failure": {"message": "not now"}}),
            "update failed: not now",
        ),
        (event("timer_started", start_to_fire_timeout="90s"), "waits 1m30s"),
        (
            event("start_child_workflow_execution_failed", workflow_type={"name": "LaunchNode"}, workflow_id="c/1"),
            "LaunchNode c/1 runs already",
        ),
    ],
)
def test_what_recorded_histories_hold_seldom_or_never_has_its_line(found: HistoryEvent, text: str) -> None:
    assert lines(found) == [text]


def test_a_step_that_timed_out_says_why_how_often_it_was_tried_and_what_failed_before() -> None:
    scheduled = event("activity_task_scheduled", activity_type={"name": "drain_node"})
    started = event(
        "activity_task_started", scheduled_event_id=5, attempt=3, last_failure={"message": "the API server is away"}
    )
    late = event("activity_task_timed_out", scheduled_event_id=5, failure={"message": "no heartbeat"})
    strange = event("activity_task_timed_out", scheduled_event_id=4)
    scheduled.event_id = 5

    assert lines(scheduled, started, strange, late) == [
        "drain_node -> TIMED OUT: no heartbeat (0s, try 3; before: the API server is away)"
    ]


@pytest.mark.parametrize("file", recorded_files(), ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_fact_of_a_recorded_history_is_a_line_of_its_story(file: Path) -> None:
    run = read_run(read_history(file).events)
    story = StoryLines(CONVERTER)
    story.read(run)

    assert isinstance(run.facts[0], Began) and run.facts.index(run.began) == 0
    end = run.facts[-1] if isinstance(run.facts[-1], Ended) else None
    assert run.ended == end, "nothing happens after the end"
    assert len(story.lines) == len(run.facts) - bool(run.began.before), "each fact is a line"
    assert all(fact.step in run.steps for fact in run.facts if isinstance(fact, StepEnded))


def test_a_termination_says_why_the_node_went_and_not_how_it_goes() -> None:
    """`history` said "Forceful Termination" of six causes of which `log` told one from the other."""
    departure = {"claim": {"name": "c"}, "deadline": None, "reason": "Forceful Termination", "nodes": ["n1"]}
    gone = {**departure, "because": "NeverRegistered", "because_words": "no node within 900 s"}

    assert outcome_text(gone) == "NeverRegistered of n1: no node within 900 s"
    assert outcome_text(departure) == "Forceful Termination of n1", "of a version that knew no more"
