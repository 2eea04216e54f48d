"""Nodes by patterns, where few kinds of pods repeat: every pod on one, no rule broken, and less to pay."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.placement.cost.problem import Integers, Problem
from dovetail.placement.cost.searching.covering import Cover
from dovetail.placement.cost.searching.filling import Bin
from dovetail.placement.cost.searching.patterns import Patterns, repeats
from dovetail.placement.cost.searching.search import Search
from tests.placement.test_inserting import problem, taken


def _never() -> bool:
    return False


def _searched(made: Problem) -> Search:
    search = Search(made, 1)
    search.start(_never)
    return search


def test_a_mix_of_patterns_costs_what_the_program_comes_to() -> None:
    """Two of the one and one of the other fit for 2; alone each pod costs 1 and 1.5."""
    cover = Cover(np.array([10, 5]), np.eye(2), np.array([1.0, 1.5]))
    assert cover.cost == 17.5
    assert cover.add(np.array([2, 1]), 2.0)
    assert cover.cost == pytest.approx(10.0)
    assert cover.worth @ np.array([10, 5]) == pytest.approx(10.0)
    assert not cover.add(np.array([2, 1]), 2.1)


def test_pods_that_leave_no_gap_together_are_put_together() -> None:
    """Of 1.25 and 0.75 cpu one each fills a node of two; three of the larger ones leave a gap in one of four."""
    made = problem([(5, 1), (3, 1)], [40, 40])
    search = _searched(made)
    search.bins = [each for item in (0, 1) for each in search.filler.fill(_only(item, 40), search.value, 1.0, _never)]
    assert search.cost > 80
    search.by_patterns(_never)
    assert search.cost == pytest.approx(80.0)


def _only(item: int, pods: int) -> Integers:
    stock = np.zeros(2, dtype=np.int64)
    stock[item] = pods
    return stock


def test_where_hardly_any_pod_has_its_like_nothing_is_begun() -> None:
    assert not repeats(problem([(5, 1), (3, 1)], [1, 2]))
    assert repeats(problem([(5, 1), (3, 1)], [20, 20]))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 24)), min_size=1, max_size=5),
    st.lists(st.integers(4, 40), min_size=5, max_size=5),
    st.booleans(),
    st.lists(st.integers(0, 2), min_size=5, max_size=5),
)
def test_no_pod_is_lost_no_rule_broken_and_nothing_dearer(
    sizes: list[tuple[int, int]], stock: list[int], apart: bool, colours: list[int]
) -> None:
    made = problem(sizes, stock[: len(sizes)], apart)
    made = replace(made, colour=np.array(colours[: len(sizes)], dtype=np.int64))
    search = _searched(made)
    before = search.cost
    search.by_patterns(_never)
    assert search.cost <= before + 1e-9
    assert taken(search.bins, len(sizes)).tolist() == made.stock.tolist()
    patterns = Patterns(search.filler, search.bins)
    patterns.improve(_never)
    bins, left = patterns.whole()
    assert (taken(bins, len(sizes)) + left).tolist() == made.stock.tolist()
    assert all(_obeys(search, each) for each in [*search.bins, *bins])


def _obeys(search: Search, each: Bin) -> bool:
    made = search.problem
    colours = made.colour[each.items]
    used = each.counts @ made.sizes[each.items]
    return (
        bool((used <= made.room[each.choice] + 1e-6).all())
        and len(np.unique(colours[colours > 0])) <= 1
        and search.filler.live_together(each.items, each.counts)
    )
