"""What pods are worth and where they would be if they could be poured: no answer goes below it, and a search begins
there."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.placement.cost.problem import Flags, Integers, Problem
from dovetail.placement.cost.searching import pouring
from dovetail.placement.cost.searching.filling import Filler
from dovetail.placement.cost.searching.pouring import poured
from dovetail.placement.cost.searching.search import Search


def problem(
    sizes: Sequence[tuple[float, float]],
    stock: Sequence[int],
    rooms: Sequence[tuple[float, float]],
    prices: Sequence[float],
    suits: Sequence[Sequence[bool]] = (),
) -> Problem:
    """`suits`: per item and type."""
    count = len(sizes)
    return Problem(
        sizes=np.array(sizes, dtype=np.float64),
        stock=np.array(stock, dtype=np.int64),
        need=np.arange(count) if suits else np.zeros(count, dtype=np.int64),
        colour=np.zeros(count, dtype=np.int64),
        room=np.array(rooms, dtype=np.float64),
        price=np.array(prices, dtype=np.float64),
        suits=np.array(suits or [[True] * len(rooms)], dtype=bool),
        hosts=None,
        conflicts=np.zeros(count),
        exclusive=None,
    )


def test_pods_that_fill_one_another_up_are_worth_what_the_node_for_both_costs() -> None:
    """Ten of much cpu and ten of much memory: a node of eight and eight holds both of a pair, which others do not."""
    given_ = problem([(6, 2), (2, 6)], [10, 10], [(8, 8), (8, 2.1), (2.1, 8)], [1.0, 0.9, 0.9])
    found = poured(given_)
    assert abs(float(found.worth @ given_.stock) - 10) < 0.2
    assert found.nodes[0] > 9
    assert found.nodes[1:].sum() < 1


def test_pods_that_only_expensive_types_suit_are_worth_more() -> None:
    suits = [[True, True], [False, True]]
    given_ = problem([(1, 1), (1, 1)], [16, 8], [(8, 8), (8, 8)], [1.0, 4.0], suits)
    found = poured(given_)
    assert abs(found.worth[0] - 0.125) < 0.01
    assert abs(found.worth[1] - 0.5) < 0.01
    assert abs(found.nodes[0] - 2) < 0.1


@pytest.mark.parametrize(("pairs", "is_poured"), [(10, True), (2, False)])
def test_a_search_begins_where_poured_pods_would_be_unless_these_are_few_nodes(pairs: int, is_poured: bool) -> None:
    """What pods can be poured into says little of three whole nodes: weeks of eight nodes were 3 % dearer by it."""
    given_ = problem([(6, 2), (2, 6)], [pairs, pairs], [(8, 8), (8, 2.1), (2.1, 8)], [1.0, 0.9, 0.9])
    assert (Search(given_, 1).value == poured(given_).worth).all() is np.bool_(is_poured)


def test_a_pod_is_not_poured_onto_a_type_that_does_not_hold_it() -> None:
    given_ = problem([(6, 6)], [4], [(4, 4), (8, 8)], [0.1, 1.0])
    found = poured(given_)
    assert abs(found.worth[0] - 0.75) < 0.01
    assert found.nodes[0] == 0


def test_of_very_many_choices_those_are_looked_at_that_are_cheap_for_some_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many NodePools have many choices, and to compare each with each would take the time of the whole search."""
    chance = np.random.default_rng(7)
    rooms = [(float(c), float(c * g)) for c in (2, 4, 8, 16, 32) for g in (2, 4, 8) for _ in range(60)]
    prices = [c * 0.03 + m * 0.004 + float(chance.uniform(0, 0.05)) for c, m in rooms]
    order = np.argsort(prices)
    rooms, prices = [rooms[n] for n in order], [prices[n] for n in order]
    sizes = [*((float(c), float(m)) for c, m in chance.uniform((0.1, 0.2), (3, 20), (40, 2))), (31.0, 250.0)]
    suits = [[bool(flag) for flag in chance.random(len(rooms)) < 0.5] for _ in sizes[:-1]]
    suits.append([room == (32.0, 256.0) for room in rooms])
    given_ = problem(sizes, [3] * len(sizes), rooms, prices, suits)
    of_all = float(poured(given_).worth @ given_.stock)
    compared = list[int]()
    fits = pouring._fits

    def counted(one: Problem, choices: Integers) -> Flags:
        compared.append(len(choices))
        return fits(one, choices)

    monkeypatch.setattr(pouring, "_CHOICES", 60)
    monkeypatch.setattr(pouring, "_fits", counted)
    found = poured(given_)

    assert compared[-1] <= 61, "and the one that alone holds the largest pod"
    assert np.isfinite(found.worth).all()
    assert of_all * 0.999 <= float(found.worth @ given_.stock) <= of_all * 1.1


def test_bins_that_come_to_more_than_they_may_are_given_up() -> None:
    given_ = problem([(2, 2)], [4], [(2, 2), (4, 4)], [1.0, 2.0])
    filler = Filler(given_, np.random.default_rng(1), 8)
    found = poured(given_)
    filler.set_merit(found.worth, found.nodes)
    assert filler.fill_for(given_.stock, found.worth, 3.9) is None
    bins = filler.fill_for(given_.stock, found.worth, 4.1)
    assert bins is not None
    assert sum(int(each.counts.sum()) for each in bins) == 4


amounts = st.tuples(st.integers(1, 8), st.integers(1, 8))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(amounts, st.integers(1, 9)), min_size=1, max_size=6), st.integers(1, 9))
def test_no_answer_costs_less_than_its_pods_are_worth(pods: list[tuple[tuple[int, int], int]], seed: int) -> None:
    rooms = [(8.0, 8.0), (8.0, 16.0), (16.0, 16.0), (32.0, 24.0)]
    given_ = problem([size for size, _ in pods], [count for _, count in pods], rooms, [1.0, 1.4, 1.9, 3.1])
    search = Search(given_, seed, candidates=4)
    worth = float(search.value @ given_.stock)
    search.start(lambda: False)
    search.improve(lambda: False, 6)
    assert worth <= search.cost + 1e-6
    found = np.sum([np.bincount(each.items, each.counts, len(pods)) for each in search.bins], axis=0)
    assert found.tolist() == given_.stock.tolist()
