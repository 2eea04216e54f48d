"""Which types together have the values that minima ask for."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from dovetail.model.pods import Expression
from dovetail.model.scheduling.requirements import RequirementSet, from_expressions
from dovetail.placement.min_values import covering, minima_of, shortest_prefix


def a_type(**values: str) -> RequirementSet:
    return from_expressions(Expression(key=key, operator="In", values=(value,)) for key, value in values.items())


def at_least(**minima: int) -> RequirementSet:
    return from_expressions(Expression(key=key, operator="Exists", min_values=least) for key, least in minima.items())


def numbers(*found: int) -> frozenset[int]:
    return frozenset(found)


def test_one_type_that_brings_several_missing_values_goes_before_cheaper_ones() -> None:
    """AWS-81: three one after another would be needed: the first two bring no new zone."""
    types = [a_type(family="a", zone="1"), a_type(family="b", zone="1"), a_type(family="b", zone="2")]

    assert covering(types, at_least(family=2, zone=2), 2) == numbers(0, 2)
    assert covering(types, at_least(family=2), 3) == numbers(0, 1)
    assert covering(types, at_least(zone=3), 3) == numbers(0, 2)  # as many as there are
    assert covering(types, at_least(family=2, zone=2), 1) == numbers(0)


TYPES = st.lists(st.builds(a_type, a=st.sampled_from("1234"), b=st.sampled_from("1234")), max_size=12)


@given(TYPES, st.integers(1, 4), st.integers(1, 4))
def test_whatever_all_types_meet_is_met_by_those_that_are_taken(
    types: Sequence[RequirementSet], first: int, second: int
) -> None:
    """AWS-81: and each of them brings something."""
    wanted = at_least(a=first, b=second)
    taken = covering(types, wanted, len(types))

    assert shortest_prefix([types[n] for n in sorted(taken)], wanted)[1] == shortest_prefix(types, wanted)[1]
    assert len(taken) <= sum(minima_of(wanted).values())
