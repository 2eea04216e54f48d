"""Bins that take further pods: never beyond room or rules, and never for more than a node of their own."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.placement.cost.problem import HostRules, Integers, Problem
from dovetail.placement.cost.searching.filling import Bin, Filler, priced
from dovetail.placement.cost.searching.inserting import Shelf
from dovetail.placement.cost.searching.search import Search


def problem(sizes: list[tuple[int, int]], stock: list[int], apart: bool = False) -> Problem:
    """Types of one, two, four and eight cpu, price in proportion; where `apart`, the first item keeps off its like."""
    room = np.array([[1.0, 2.0], [2.0, 4.0], [4.0, 8.0], [8.0, 16.0]])
    count = len(sizes)
    own = [(0,) if apart and n == 0 else () for n in range(count)]
    hosts = HostRules(
        full_at=np.array([[1, 1]]),
        closed_at=np.array([0]),
        bound=tuple(own),
        counted=tuple(own),
        checks=np.array([[1, 2] if each else [3, 3] for each in own]),
    )
    return Problem(
        sizes=np.array(sizes, dtype=np.float64) / 4,
        stock=np.array(stock, dtype=np.int64),
        need=np.zeros(count, dtype=np.int64),
        colour=np.zeros(count, dtype=np.int64),
        room=room,
        price=room[:, 0].copy(),
        suits=np.ones((1, 4), dtype=bool),
        hosts=hosts if apart else None,
        conflicts=np.zeros(count),
        exclusive=None,
    )


def a_bin(filler: Filler, *counts: int) -> Bin:
    items = np.flatnonzero(np.array(counts)).astype(np.int64)
    made = priced(filler, items, np.array(counts, dtype=np.int64)[items])
    assert made is not None
    return made


def a_filler(given: Problem) -> Filler:
    return Filler(given, np.random.default_rng(1), 8)


def taken(bins: list[Bin], items: int) -> Integers:
    found = np.zeros(items, dtype=np.int64)
    for each in bins:
        found[each.items] += each.counts
    return found


def test_a_pod_goes_into_a_gap_for_nothing() -> None:
    filler = a_filler(problem([(4, 1), (1, 8), (0, 6)], [9, 9, 9]))
    shelf = Shelf(filler, [a_bin(filler, 0, 1, 0), a_bin(filler, 1, 0, 0)])
    assert shelf.insert(2) == 0
    assert [each.price for each in shelf.bins] == [1, 1]
    assert taken(shelf.bins, 3).tolist() == [1, 1, 1]


def test_a_node_grows_where_that_is_cheaper_than_another_one() -> None:
    filler = a_filler(problem([(4, 2), (6, 6)], [9, 9]))
    shelf = Shelf(filler, [a_bin(filler, 1, 0), a_bin(filler, 0, 2)])
    assert shelf.insert(0) == 0
    assert shelf.insert(1) is None  # the second bin would become the next larger type, for more than a node of its own
    assert [each.price for each in shelf.bins] == [1, 4]


def test_pods_that_keep_apart_do_not_meet() -> None:
    given = problem([(1, 1), (1, 1)], [9, 9], apart=True)
    filler = a_filler(given)
    shelf = Shelf(filler, [a_bin(filler, 1, 1)])
    assert shelf.insert(0) is None
    assert shelf.insert(1) == 0


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 24)), min_size=2, max_size=6),
    st.integers(1, 9),
    st.booleans(),
    st.integers(0, 9),
)
def test_a_search_loses_no_pod_overfills_no_bin_and_is_never_dearer(
    sizes: list[tuple[int, int]], each: int, apart: bool, seed: int
) -> None:
    made = problem(sizes, [each] * len(sizes), apart)
    search = Search(made, seed, 6)
    search.start(lambda: False)
    before = search.cost
    search.improve(lambda: False, 12)
    assert search.cost <= before + 1e-9
    assert taken(search.bins, len(sizes)).tolist() == made.stock.tolist()
    for one in search.bins:
        assert (one.counts @ made.sizes[one.items] <= made.room[one.choice] + 1e-6).all()
        assert not apart or taken([one], len(sizes))[0] <= 1


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.data(),
)
def test_one_check_of_host_rules_is_a_column_of_all(
    full: list[tuple[int, int]], closed: list[int], data: st.DataObject
) -> None:
    groups = min(len(full), len(closed))
    rules = HostRules(
        full_at=np.array(full[:groups]),
        closed_at=np.array(closed[:groups]),
        bound=(),
        counted=(),
        checks=np.zeros((0, 1), dtype=np.int64),
    )
    rows = st.lists(st.integers(0, 3), min_size=groups, max_size=groups)
    count = np.array(data.draw(st.lists(rows, min_size=1, max_size=5)), dtype=np.int64)
    binding = np.array(data.draw(st.lists(rows, min_size=len(count), max_size=len(count)))) > 1
    every = rules.refusing(count, binding)
    for check in range(3 * groups + 1):
        assert (rules.refusing_one(check, count, binding) == every[:, check]).all()
