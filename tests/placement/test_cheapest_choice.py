"""The cheapest choice that suits and holds, found for many nodes at once, is the one that a look at each would find."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.placement.cost.searching.cheapest import SLACK, Cheapest, as_bits
from tests.placement.test_cost import quick

_AMOUNT = st.sampled_from((0.0, 0.25, 0.5, 0.5 + SLACK / 2, 1.0, 2.0))


def _rows(draw: st.DrawFn, count: int, one: st.SearchStrategy[float]) -> list[list[float]]:
    return draw(st.lists(st.lists(one, min_size=2, max_size=2), min_size=count, max_size=count))


@st.composite
def _asked(draw: st.DrawFn) -> tuple[list[list[float]], list[list[bool]], list[list[float]]]:
    """The rooms of choices, which of them suit each node, and what it needs."""
    choices, nodes = draw(st.sampled_from((1, 3, 63, 64, 65, 130))), draw(st.integers(1, 4))
    suits = draw(st.lists(st.lists(st.booleans(), min_size=choices, max_size=choices), min_size=nodes, max_size=nodes))
    return _rows(draw, choices, _AMOUNT), suits, _rows(draw, nodes, _AMOUNT)


@quick
@given(_asked())
def test_the_first_choice_is_found_that_a_look_at_each_would_find(
    asked: tuple[list[list[float]], list[list[bool]], list[list[float]]],
) -> None:
    room, suits, wanted = (np.array(each) for each in asked)
    some, first = Cheapest(room).first(as_bits(suits), wanted)
    for node in range(len(wanted)):
        holds = suits[node] & (room >= wanted[node] - SLACK).all(axis=1)
        assert some[node] == holds.any()
        assert not some[node] or first[node] == holds.argmax()


def test_one_node_may_be_asked_about_alone() -> None:
    some, first = Cheapest(np.array([[1.0], [2.0]])).first(as_bits(np.array([True, True])), np.array([1.5]))
    assert (bool(some), int(first)) == (True, 1)
    assert not Cheapest(np.array([[1.0]])).first(as_bits(np.array([True])), np.array([1.5]))[0]
