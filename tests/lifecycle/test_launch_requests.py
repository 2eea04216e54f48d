"""DUR-1: one request, one token, until the cloud says that it made nothing."""

import pytest

from dovetail.lifecycle.launch_requests import (
    LaunchRequest,
    UnreadableRequest,
    changed_annotations,
    frozen_request,
    launch_token,
    missing_labels,
    request_text,
)
from dovetail.model import names
from tests.lifecycle.objects import a_claim


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
