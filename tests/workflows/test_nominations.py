"""How long a node on which pods are expected is spared (STA-10, BEH-101)."""

from dovetail.messages.states import FRESH_QUIET_SECONDS, SchedulerState
from dovetail.workflows.scheduler import NOMINATION_SECONDS

NOW = 1000.0


def test_a_nomination_lasts_twenty_seconds_and_a_new_one_prolongs_it() -> None:
    """BEH-101: true at +10 s, false at +21 s."""
    state = SchedulerState(cluster="c").nominate(("n",), NOW + NOMINATION_SECONDS)

    assert [bool(state.forget(NOW + after).nominations) for after in (10.0, 19.9, 21.0)] == [True, True, False]
    again = state.nominate(("n",), NOW + 5.0 + NOMINATION_SECONDS)
    assert bool(again.forget(NOW + 21.0).nominations)


def test_an_earlier_end_takes_nothing_from_a_nomination() -> None:
    state = SchedulerState(cluster="c").nominate(("n",), NOW + 20.0).nominate(("n",), NOW + 5.0)

    assert state.nominations == (("n", NOW + 20.0),)


def test_a_new_scheduler_disrupts_nothing_for_as_long_as_a_lost_nomination_would_have_lasted() -> None:
    """DUR-19."""
    assert FRESH_QUIET_SECONDS >= NOMINATION_SECONDS
