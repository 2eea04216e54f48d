"""The order of node drafts is the one that upstream's unstable sort leaves (PLC-97, PLQ-11)."""

import random

from dovetail.placement.go_sort import unstable_sorted
from dovetail.placement.search.proposal_order import DraftOrder


def _sorted_every_time(choices: list[int | None]) -> list[int]:
    """What upstream does: append or raise, then sort the whole array before the next try."""
    order: list[int] = []
    pods: list[int] = []
    for choice in choices:
        if choice is None:
            pods.append(1)
            order.append(len(pods) - 1)
        else:
            pods[choice] += 1
        order = unstable_sorted(order, pods.__getitem__)
    return order


def test_levels_stay_in_the_order_of_a_full_sort_before_every_try() -> None:
    """One draft moves at a time, so that most sorts need not be run."""
    random_ = random.Random(7)
    for drafts in (5, 12, 13, 30, 49, 50, 80, 120):
        choices: list[int | None] = []
        order, count = DraftOrder(), 0
        for _ in range(6 * drafts):
            if count < drafts and (count == 0 or random_.random() < 0.3):
                order.append(count)
                choices.append(None)
                count += 1
            else:
                chosen = random_.randrange(count)
                order.raise_draft(chosen)
                choices.append(chosen)
        assert order.in_order() == _sorted_every_time(choices)


def test_candidates_come_in_order_whether_few_or_many() -> None:
    """Few of many are picked out and ranked; many are met by walking the level."""
    order = DraftOrder()
    for draft in range(200):
        order.append(draft)
    for draft in range(0, 200, 3):
        order.raise_draft(draft)

    everything = order.in_order()

    for mask in (1 << 5 | 1 << 150, (1 << 200) - 1, 0b1011):
        assert list(order.among(mask)) == [draft for draft in everything if mask >> draft & 1]
