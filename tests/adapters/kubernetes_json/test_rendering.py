"""What is written reads back as what was meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.adapters.kubernetes_json.parsing.nodes import lasting
from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.model.nodes import Condition
from dovetail.model.pods import Owner
from dovetail.model.values.durations import parse_seconds
from dovetail.ports.objects import MetadataChange


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "Never"),
        (0, "0s"),
        (1, "1s"),
        (300, "5m"),
        (5400, "1h30m"),
        (720 * 3600, "720h"),
        (0.4, "1s"),
        (3661, "1h1m1s"),
    ],
)
def test_durations_are_written_as_the_pattern_of_the_api_has_them(seconds: float | None, text: str) -> None:
    assert fields.duration(seconds) == text
    assert seconds == 0.4 or lasting(text) == seconds


@given(st.integers(0, 10**8))
def test_every_whole_number_of_seconds_survives(seconds: int) -> None:
    assert parse_seconds(fields.duration(float(seconds))) == seconds


def test_a_resource_that_is_no_longer_there_is_set_to_null() -> None:
    assert fields.amounts({"cpu": 1_500_000_000}, {"cpu": 1, "memory": 2}) == {"cpu": "1500m", "memory": None}


def test_only_what_a_change_says_is_written() -> None:
    assert fields.metadata(MetadataChange(), []) == {}
    assert fields.metadata(MetadataChange(labels={"a": None}, finalizers=()), []) == {
        "labels": {"a": None},
        "finalizers": [],
    }


def test_owners_that_stand_keep_all_their_fields() -> None:
    standing = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u1", "controller": True}
    added = Owner(api_version="karpenter.sh/v1", kind="NodeClaim", name="c", uid="u2")

    written = fields.metadata(MetadataChange(add_owner=added), [standing])

    assert written["ownerReferences"] == [
        standing,
        {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c", "uid": "u2", "blockOwnerDeletion": True},
    ]


def test_an_owner_that_stands_is_not_added_again() -> None:
    standing = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u1"}
    again = Owner(api_version="v1", kind="Node", name="n", uid="u1")

    assert "ownerReferences" not in fields.metadata(MetadataChange(add_owner=again), [standing])


def test_a_condition_is_written_with_whole_seconds() -> None:
    condition = Condition(type="Ready", status="True", reason="Ready", changed=1_700_000_000.9, generation=3)

    assert fields.condition(condition) == {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
        "observedGeneration": 3,
    }
