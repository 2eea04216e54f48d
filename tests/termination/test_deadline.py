"""LIF-51, TRM-6: the moment by which a node's pods must be gone."""

import pytest

from dovetail.model.names import TERMINATION_DEADLINE
from dovetail.termination.deadline import deadline_of, deadline_to_write, tighter, unreadable_deadline
from worlds.disruption import a_claim

DELETED = 1_700_000_000.0


def test_the_deadline_is_the_deletion_plus_the_grace_in_whole_seconds() -> None:
    """LIF-51, DUR-14: never counted from now."""
    claim = a_claim(deleting_since=DELETED, termination_grace=90.5)

    assert deadline_to_write(claim) == "2023-11-14T22:14:50Z"
    assert deadline_of(claim) == DELETED + 90


def test_without_a_grace_there_is_no_deadline() -> None:
    claim = a_claim(deleting_since=DELETED)

    assert (deadline_to_write(claim), deadline_of(claim)) == (None, None)


def test_a_deadline_that_is_written_is_never_changed() -> None:
    """LIF-51, BEH-73."""
    annotations = {TERMINATION_DEADLINE: "2023-11-14T22:13:25Z"}
    claim = a_claim(deleting_since=DELETED, termination_grace=3600.0, annotations=annotations)

    assert (deadline_to_write(claim), deadline_of(claim)) == (None, DELETED + 5)


@pytest.mark.parametrize("text", ["soon", "", "1700000000", "2023-11-14", "2023-11-14T22:13:25"])
def test_a_deadline_that_cannot_be_read_is_reported_and_the_grace_counts(text: str) -> None:
    """TRM-6: upstream stops here for ever."""
    annotations = {TERMINATION_DEADLINE: text}
    claim = a_claim(deleting_since=DELETED, termination_grace=60.0, annotations=annotations)

    assert unreadable_deadline(claim) == text
    assert (deadline_to_write(claim), deadline_of(claim)) == (None, DELETED + 60)


def test_of_two_deadlines_the_earlier_counts() -> None:
    """TRM-20."""
    assert [tighter(1.0, 2.0), tighter(None, 2.0), tighter(1.0, None), tighter(None, None)] == [1.0, 2.0, 1.0, None]
