"""How long a node on which pods are expected is spared (STA-10, BEH-101)."""

import pytest

from dovetail.messages.plans import NOMINATION_SECONDS, DisruptionPlan, ProvisioningPlan, Seen, nomination_seconds
from dovetail.messages.states import FRESH_QUIET_SECONDS, SchedulerState, fresh_state

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


def test_what_pods_of_a_leaving_node_need_does_not_end_with_the_pods_that_wait() -> None:
    """DIS-20: they have not been evicted yet, so none of them waits."""
    until = NOW + 20.0
    waiting = SchedulerState(cluster="c").expect(("n", "m"), until, 5)

    assert (waiting.expected, waiting.expected_seen) == (("m", "n"), 5)
    assert waiting.nominate(("n",), until).expected == ("m",)
    assert waiting.nominate(("n",), until).expect(("n",), until, 6).expected == ("m",)
    assert waiting.forget(NOW + 21.0).expected == ()


@pytest.mark.parametrize(("longest", "seconds"), [(10.0, 20.0), (60.0, 120.0), (1.0, 10.0), (5.0, 10.0)])
def test_a_nomination_lasts_twice_the_longest_batch_window_and_not_less_than_ten_seconds(
    longest: float, seconds: float
) -> None:
    """STA-10."""
    assert nomination_seconds(longest) == seconds


def test_a_plan_of_an_older_worker_nominates_for_as_long_as_it_did() -> None:
    """A history holds no such field."""
    seen = Seen(taken_at=NOW)

    assert ProvisioningPlan(seen=seen).nominate_for == DisruptionPlan(seen=seen, commands=()).nominate_for == 20.0


def test_a_new_scheduler_disrupts_nothing_for_as_long_as_a_lost_nomination_would_have_lasted() -> None:
    """DUR-19."""
    assert FRESH_QUIET_SECONDS >= NOMINATION_SECONDS
    assert fresh_state("c", NOW, nominated_for=120.0).quiet_until == NOW + 120.0
    assert fresh_state("c", NOW, nominated_for=10.0).quiet_until == NOW + FRESH_QUIET_SECONDS
