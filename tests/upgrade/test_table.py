"""What the drill prints, and what counts as a failed workflow task."""

import pytest
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import History, HistoryEvent, WorkflowTaskFailedEventAttributes
from temporalio.client import WorkflowHistory

from tests.upgrade.crews import WAYS
from tests.upgrade.play import PAUSE, Played, failed_tasks, table
from tests.upgrade.plays import PLAYS
from tests.upgrade.scenes import DRAINING, SCENES


def test_a_cell_that_is_wrong_is_told_below_the_table() -> None:
    well, ill = Played(name="all at once"), Played(name="rolling")
    ill.note(DRAINING.pool, "old to new: nothing instead of draining")

    lines = table([well, ill]).splitlines()

    [row] = [line for line in lines if line.startswith("claim: draining")]
    assert [cell.strip() for cell in row.split("|")[1:]] == ["ok", "wrong"]
    assert lines[-1] == "rolling: draining: old to new: nothing instead of draining"
    assert sum("wrong" in line for line in lines) == 1
    assert any(line.startswith(PAUSE) for line in lines)


def test_every_phase_has_its_row_once() -> None:
    assert len({(scene.owner, scene.phase) for scene in SCENES}) == len(SCENES) == len({s.pool for s in SCENES})


def test_every_way_of_swapping_is_played_and_back_again() -> None:
    assert {play.way for play in PLAYS.values()} == set(WAYS)
    assert {play.way for play in PLAYS.values() if play.legs[0] == play.legs[-1]} == set(WAYS)


@pytest.mark.parametrize(
    ("cause", "counts"),
    [
        (WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR, True),
        (WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE, True),
        (WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, False),
    ],
)
def test_a_failed_task_counts_unless_its_cause_is_everyday(
    cause: WorkflowTaskFailedCause.ValueType, counts: bool
) -> None:
    attributes = WorkflowTaskFailedEventAttributes(cause=cause)
    event = HistoryEvent(
        event_type=EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED, workflow_task_failed_event_attributes=attributes
    )

    found = failed_tasks(WorkflowHistory("some", list(History(events=[event]).events)))

    assert bool(found) is counts
