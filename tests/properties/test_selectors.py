"""A selector that was sorted by label answers as it does expression by expression."""

from hypothesis import given
from hypothesis import strategies as st

from dovetail.model.pods import Expression, LabelSelector
from dovetail.model.scheduling.selectors import SelectorByLabel, matches

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    values = draw(st.lists(VALUES, min_size=1, max_size=3)) if operator.endswith("In") else []
    return Expression(key=draw(KEYS), operator=operator, values=tuple(values))


SELECTORS = st.none() | st.builds(LabelSelector, expressions=st.lists(expressions(), max_size=4).map(tuple))


@given(SELECTORS, st.dictionaries(KEYS, VALUES))
def test_both_ways_of_asking_a_selector_agree(selector: LabelSelector | None, labels: dict[str, str]) -> None:
    assert SelectorByLabel(selector).matches(labels) == matches(selector, labels)
