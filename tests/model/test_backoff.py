"""Pauses that grow."""

import pytest

from dovetail.model.values.backoff import Backoff

PAUSES = Backoff(first=5.0, longest=60.0)


def test_a_pause_doubles_with_each_failure_up_to_the_longest() -> None:
    assert [PAUSES.pause(failures) for failures in (0, 1, 2, 3, 4, 5, 6)] == [5, 5, 10, 20, 40, 60, 60]
    assert PAUSES.pause(10**9) == 60.0


def test_who_remembers_the_last_pause_finds_the_next_one() -> None:
    pause, found = PAUSES.first, []
    for _ in range(6):
        found.append(pause)
        pause = PAUSES.after(pause)
    assert found == [PAUSES.pause(failures) for failures in range(1, 7)]


def test_a_slower_growth_has_the_same_end() -> None:
    slow = Backoff(first=1.0, longest=900.0, growth=1.2)
    assert slow.pause(2) == pytest.approx(1.2)
    assert slow.pause(10_000) == 900.0
