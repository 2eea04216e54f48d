"""At no instant does anything that the product does take more of a pool to a roll-out's target than its step permits.

Scale-ups, interruptions, consolidation, cancels, kills, two Schedulers, watches that lag, lost databases, Temporal away
for two hours, approvals given, wrong and late, a target, steps and an intent that change, a roll-out that is deleted.
"""

from collections import Counter

import pytest

from dovetail.model.own.rollouts import RolloutState
from tests.disruption.fraction_play import played

RARE = {RolloutState.PAUSED, RolloutState.JUDGING}  # nobody answers in time; a node is not ready, which is not played


def all_hold(seeds: range) -> Counter[str]:
    """Each of them, and in how many a roll-out came to each state. A failure names its seed and tells its last acts."""
    states: Counter[str] = Counter()
    for seed in seeds:
        try:
            states.update(played(f"play {seed}").states)
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}: {failure}") from failure
    return states


@pytest.mark.slow
def test_no_act_takes_more_than_the_step_in_twenty_plays() -> None:
    states = all_hold(range(45, 65))

    assert states[RolloutState.SOAKING] >= 15 and states[RolloutState.COMPLETE] and states[RolloutState.AWAITING]


@pytest.mark.soak
@pytest.mark.parametrize("block", range(20))
def test_no_act_takes_more_than_the_step_in_two_thousand_plays(block: int) -> None:
    states = all_hold(range(100 * block, 100 * (block + 1)))

    assert all(states[state] for state in RolloutState if state not in RARE), states
