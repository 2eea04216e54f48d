"""Bins that exchange pods: both together cost less afterwards, and no rule is broken."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.placement.cost.searching.exchanging import Exchange
from tests.placement.test_inserting import a_bin, a_filler, problem, taken


def test_two_bins_exchange_pods_and_one_becomes_smaller() -> None:
    """Of 1.75 and 1.25 cpu both need two; of two and one they do not. No pod alone could have moved."""
    filler = a_filler(problem([(5, 1), (3, 1), (2, 1)], [9, 9, 9]))
    exchange = Exchange(filler, [a_bin(filler, 1, 0, 1), a_bin(filler, 0, 1, 1)])
    exchange.improve()
    assert sorted((each.price, taken([each], 3).tolist()) for each in exchange.bins) == [(1, [0, 0, 2]), (2, [1, 1, 0])]


@pytest.mark.parametrize("apart", [True, False])
def test_pods_that_keep_apart_are_not_brought_together(apart: bool) -> None:
    filler = a_filler(problem([(2, 1)], [9], apart))
    exchange = Exchange(filler, [a_bin(filler, 1), a_bin(filler, 1)])
    exchange.improve()
    assert [each.price for each in exchange.bins] == ([1, 1] if apart else [1])


@pytest.mark.parametrize("colours", [(1, 2), (1, 1), (0, 2)])
def test_pods_that_ask_for_different_labels_are_not_brought_together(colours: tuple[int, int]) -> None:
    filler = a_filler(replace(problem([(2, 1), (2, 1)], [9, 9]), colour=np.array(colours, dtype=np.int64)))
    exchange = Exchange(filler, [a_bin(filler, 1, 0), a_bin(filler, 0, 1)])
    exchange.improve()
    assert len(exchange.bins) == (2 if colours == (1, 2) else 1)


def test_a_pod_goes_to_no_bin_whose_types_do_not_suit_it() -> None:
    """The one is for the smallest type alone, the other for all but that."""
    suits = np.array([[True, False, False, False], [False, True, True, True]])
    made = replace(problem([(2, 1), (2, 1)], [9, 9]), suits=suits, need=np.array([0, 1], dtype=np.int64))
    filler = a_filler(made)
    exchange = Exchange(filler, [a_bin(filler, 1, 0), a_bin(filler, 0, 1)])
    exchange.improve()
    assert sorted(each.price for each in exchange.bins) == [1, 2]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 24)), min_size=1, max_size=5),
    st.lists(st.lists(st.integers(0, 2), min_size=5, max_size=5).filter(any), min_size=2, max_size=6),
    st.booleans(),
)
def test_no_pod_is_lost_no_bin_overfilled_and_nothing_dearer(
    sizes: list[tuple[int, int]], contents: list[list[int]], apart: bool
) -> None:
    made = problem(sizes, [9] * len(sizes), apart)
    filler = a_filler(made)
    counts = [[min(n, 1) if apart and not at else n for at, n in enumerate(each[: len(sizes)])] for each in contents]
    bins = [a_bin(filler, *each) for each in counts if any(each) and _holds(made.sizes, each)]
    if len(bins) < 2:
        return
    exchange = Exchange(filler, bins)
    exchange.improve()
    assert sum(each.price for each in exchange.bins) <= sum(each.price for each in bins) + 1e-9
    assert taken(exchange.bins, len(sizes)).tolist() == taken(bins, len(sizes)).tolist()
    for one in exchange.bins:
        assert (one.counts @ made.sizes[one.items] <= made.room[one.choice] + 1e-6).all()
        assert not apart or taken([one], len(sizes))[0] <= 1


def _holds(sizes: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", counts: list[int]) -> bool:
    """Whether the largest type does."""
    return bool((np.array(counts) @ sizes <= [8.0, 16.0]).all())
