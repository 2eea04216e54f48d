"""DUR-1: one request, one token, until the cloud says that it made nothing."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dovetail.lifecycle.launch_requests import (
    GroupShare,
    LaunchRequest,
    UnreadableRequest,
    changed_annotations,
    frozen_request,
    group_of,
    is_called,
    launch_token,
    missing_labels,
    request_text,
    token_of,
)
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from worlds.disruption import a_claim


def test_a_frozen_request_is_read_back_as_it_was_written() -> None:
    request = LaunchRequest(generation=3, request='{"template":"lt-1"}')

    assert frozen_request(a_claim(annotations={names.LAUNCH_REQUEST: request_text(request)})) == request


def test_a_claim_without_a_request_is_at_the_first_generation() -> None:
    assert frozen_request(a_claim()) == LaunchRequest(generation=1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"generation": "x", "request": ""}',
        '{"request": "r"}',
        '{"generation": 1e999, "request": ""}',
        '{"generation": "' + "9" * 5000 + '", "request": ""}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:20],
)
def test_a_request_that_cannot_be_read_is_not_guessed(text: str) -> None:
    """Guessing a generation could launch a second instance."""
    with pytest.raises(UnreadableRequest, match=names.LAUNCH_REQUEST):
        frozen_request(a_claim(annotations={names.LAUNCH_REQUEST: text}))


def test_the_token_is_the_same_for_one_generation_and_another_for_the_next() -> None:
    first = launch_token("uid", 1)

    assert first == launch_token("uid", 1)
    assert len({first, launch_token("uid", 2), launch_token("other", 1)}) == 3
    assert len(first) == 64


def test_labels_of_the_claim_win_and_annotations_of_the_cloud_win() -> None:
    """LIF-13."""
    claim = a_claim(labels={"a": "claim"}, annotations={"b": "claim", "c": "same"})

    assert missing_labels(claim, {"a": "cloud", "z": "cloud"}) == {"z": "cloud"}
    assert changed_annotations(claim, {"b": "cloud", "c": "same"}) == {"b": "cloud"}


SHARE = GroupShare(group="g", number=1, size=3, first="pool-1", first_uid="uid-pool-1", generation=2)
RECORD = LaunchRequest(generation=1, request="r", share=SHARE, led=("before",))


def with_record(record: LaunchRequest, **change: Any) -> NodeClaim:
    return replace(a_claim(annotations={names.LAUNCH_REQUEST: request_text(record)}), **change)


def test_a_share_is_read_back_as_it_was_written() -> None:
    claim = with_record(RECORD)

    assert frozen_request(claim) == RECORD
    assert group_of(claim) == "g"
    assert token_of(claim, RECORD) == token_of(a_claim(), replace(RECORD, generation=9)) != token_of(claim, SINGLE)


SINGLE = LaunchRequest(generation=1, request="r")


def test_a_version_that_knows_no_groups_launches_nothing_for_a_share() -> None:
    """It reads the field `request`, and finds the record unreadable without it."""
    assert "request" not in json.loads(request_text(RECORD))
    assert json.loads(request_text(SINGLE)) == {"generation": 1, "request": "r"}


@pytest.mark.parametrize(
    ("first", "called"),
    [
        (LaunchRequest(generation=2), None),
        (LaunchRequest(generation=2, request="r", share=replace(SHARE, number=0)), True),
        (LaunchRequest(generation=2, request="r"), False),
        (LaunchRequest(generation=2, request="r", share=replace(SHARE, group="another", number=0)), False),
        (LaunchRequest(generation=3), False),
        (LaunchRequest(generation=3, led=("g",)), True),
    ],
    ids=["open", "called", "alone", "another group", "given up", "launched and ended"],
)
def test_the_record_of_the_first_decides_whether_its_group_is_called(first: LaunchRequest, called: bool | None) -> None:
    assert is_called(SHARE, with_record(first)) is called
    if called is None:
        assert is_called(SHARE, with_record(first, deleting_since=1.0)) is False
        assert is_called(replace(SHARE, generation=1), a_claim()) is None


def test_only_the_first_of_a_group_that_has_launched_keeps_that() -> None:
    own = replace(RECORD, share=replace(SHARE, number=0))

    assert own.after(launched=True) == LaunchRequest(generation=2, led=("before", "g"))
    assert own.after() == RECORD.after(launched=True) == LaunchRequest(generation=2, led=("before",))
