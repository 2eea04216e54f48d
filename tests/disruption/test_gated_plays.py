"""Whatever Prometheus says and however often that changes: no node is marked and no step begins but by a fresh answer
that is well of each gate, after a whole soak in which none has failed, within the longest time, and in the order.

Beside all that `test_fraction_plays.py` plays, and with what holds there."""

from collections import Counter

import pytest

from dovetail.model.own.gates import GateResult
from dovetail.model.own.rollouts import RolloutState
from tests.disruption.gated_play import gated


def all_hold(seeds: range) -> Counter[str]:
    """Each of them: in how many a roll-out came to each state, and gates said what. A failure names its seed."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        try:
            play = gated(f"gated {seed}")
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}: {failure}") from failure
        seen.update(play.states | play.results)
    return seen


@pytest.mark.slow
def test_gates_an_order_and_a_longest_time_hold_in_twenty_plays() -> None:
    seen = all_hold(range(20))

    assert all(seen[result] for result in GateResult), seen
    assert seen[RolloutState.SOAKING] >= 12 and seen[RolloutState.JUDGING] and seen[RolloutState.ROLLING_BACK], seen


@pytest.mark.parametrize("seed", [200, 312])
def test_a_gate_that_failed_while_somebody_had_paused_it_does_not_let_the_old_soak_count(seed: int) -> None:
    """Two plays that found it."""
    all_hold(range(seed, seed + 1))


@pytest.mark.soak
@pytest.mark.parametrize("block", range(20))
def test_they_hold_in_two_thousand_plays(block: int) -> None:
    seen = all_hold(range(100 * block, 100 * (block + 1)))

    assert all(seen[result] for result in GateResult), seen
    assert all(seen[state] for state in (RolloutState.SOAKING, RolloutState.JUDGING, RolloutState.ROLLING_BACK)), seen
