"""Random lives of NodePools: whatever happens in them, changes stay within their steps, and nothing stands still in
silence. Everything in them goes through the looks, marks, creations and launches of the product (`lives`);
what must hold is worked out from what is true of the nodes, and shares no rule with the product.

At every mark no more nodes are at the target, or on their way to it, than soaks, approvals and orders for that very
target allow. No node is made twice for one change. No good image is refused; no more nodes get an image on which pods
have crashed for ten minutes, and one that was refused is on no node in the end. Nothing begins anew, and no refused
target is tried again, unless people change something. Within an hour there is one more node at the target, a declared
wait, or Stalled with a name. An hour after a change is taken back nothing of it is left. What is complete is written no
more, each moment has an end of writes, and no object grows beyond 20 kB.
"""

import asyncio

import pytest

from tests.disruption.lives.stories import played


def lives(seeds: range, least: int = 8, most: int = 12) -> set[str]:
    """Each of them, and all states in which they were; a failure names its seed and tells what happened."""
    states: set[str] = set()
    for seed in seeds:
        try:
            life = asyncio.run(played(f"life {seed}", least, most))
        except AssertionError as failure:
            raise AssertionError(f"life {seed}: {failure}") from failure
        states |= {str(status.state) for _, status in life.written}
    return states


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5))
def test_fifty_lives_hold_what_they_must(block: int) -> None:
    assert {"Replacing", "Soaking", "Complete"} <= lives(range(10 * block, 10 * (block + 1)))


@pytest.mark.soak
@pytest.mark.parametrize("block", range(49))
def test_five_thousand_lives_hold_what_they_must(block: int) -> None:
    states = lives(range(50 + 100 * block, 50 + 100 * (block + 1)))

    assert {"Replacing", "Soaking", "Judging", "Complete", "RollingBack", "Failed", "Awaiting"} <= states


@pytest.mark.soak
@pytest.mark.parametrize("block", range(5))
def test_fifty_lives_of_pools_of_thirty_to_three_hundred_nodes_hold_it_too(block: int) -> None:
    lives(range(10_000 + 10 * block, 10_000 + 10 * (block + 1)), least=30, most=300)
