"""A digest says what it is of, and is the same in every version."""

import pytest

from dovetail.model.own.gates import GateResult
from dovetail.model.values.digests import named_digest


@pytest.mark.parametrize(
    "same",
    [
        {"step": "canary", "since": 10, "uids": ["a", "b"], "gates": "Passing"},
        {"uids": ("a", "b"), "since": 10.0, "step": "canary", "gates": "Passing"},
        {"step": "canary", "since": 10.0, "uids": ["a", "b"], "gates": GateResult.PASSING, "lane": None},
    ],
)
def test_what_is_the_same_has_one_digest_in_every_version(same: dict[str, object]) -> None:
    """This one is on objects: it never changes."""
    assert named_digest(same, 6) == "8dbbf8755c7c"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": "1", "b": "2"}, {"a": "2", "b": "1"}),
        ({"a": ["b", "c"]}, {"a": ["bc"]}),
        ({"a": "1"}, {"a": 1}),
        ({"a": None}, {"a": ""}),
        ({"a": 0.5}, {"a": 0}),
        ({"steps": [{"name": "a", "to": "1"}]}, {"steps": [{"name": "a", "to": "1", "soak": 1}]}),
    ],
)
def test_what_differs_has_another(one: dict[str, object], other: dict[str, object]) -> None:
    assert named_digest(one, 6) != named_digest(other, 6)
