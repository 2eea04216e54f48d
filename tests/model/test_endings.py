"""Why a node goes, by what its claim says."""

from dataclasses import replace
from typing import get_args

import pytest

from dovetail.messages.interruptions import InterruptionReason
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.reasons.endings import (
    OF_REASONS,
    Ending,
    WhyGone,
    ended_of,
    ended_text,
    is_interrupted,
    warned_at,
)
from tests.lifecycle.objects import a_joined_claim, is_now


def said_by(claim: NodeClaim, *pools: str) -> WhyGone:
    return ended_of(claim, pools.__contains__)


@pytest.mark.parametrize("ending", Ending)
def test_what_is_written_on_a_claim_is_read_from_it(ending: Ending) -> None:
    claim = a_joined_claim(annotations={names.ENDED_BECAUSE: ended_text(ending, "Ready is False: for long")})

    assert said_by(claim) == WhyGone(because=ending, words="Ready is False: for long")


def test_long_words_are_cut() -> None:
    assert len(ended_text(Ending.REFUSED, "é" * 5000)) < 350


def test_what_nobody_of_ours_has_said_was_deleted_by_others() -> None:
    found = said_by(a_joined_claim(labels={names.NODE_POOL: "web"}), "web")

    assert (found.because, found.words) == ("Deleted", "by hand or by another program")


def test_a_claim_whose_pool_is_gone_goes_with_its_pool() -> None:
    found = said_by(a_joined_claim(labels={names.NODE_POOL: "web"}))

    assert (found.because, found.words) == ("NodePoolDeleted", "NodePool web was deleted")


def test_a_disruption_has_its_own_reason() -> None:
    marked = is_now(names.DISRUPTION_REASON, reason="Drifted")
    claim = a_joined_claim(conditions=(marked,), annotations={names.ENDED_BECAUSE: "Expired"})

    assert said_by(claim) == WhyGone(because="Drifted")


LATER = {names.INTERRUPTED: "1970-01-01T00:16:50Z"}  # ten seconds after the departure began
EARLIER = {names.INTERRUPTED: "1970-01-01T00:16:00Z"}
UNREADABLE = {names.INTERRUPTED: "soon"}
ENDED = {names.ENDED_BECAUSE: Ending.SPOT}


@pytest.mark.parametrize(
    ("annotations", "marked", "deleted", "expected"),
    [
        (LATER, True, False, (True, 1010.0)),
        (LATER, False, True, (True, 1010.0)),
        (UNREADABLE, False, True, (True, 1000.5)),
        (EARLIER, True, False, (False, None)),
        (EARLIER, False, True, (False, None)),
        (EARLIER | ENDED, False, True, (True, None)),
        (LATER, False, False, (False, None)),
    ],
)
def test_a_warning_of_an_earlier_departure_hurries_no_later_one(
    annotations: dict[str, str], marked: bool, deleted: bool, expected: tuple[bool, float | None]
) -> None:
    """It was false: the instance is still there."""
    mark = replace(is_now(names.DISRUPTION_REASON, reason="Drifted"), changed=1000.5)
    conditions, since = (mark,) if marked else (), 1000.5 if deleted else None
    claim = a_joined_claim(conditions=conditions, annotations=annotations, deleting_since=since)

    assert (is_interrupted(claim), warned_at(claim)) == expected


def test_every_warning_has_its_ending() -> None:
    assert OF_REASONS.keys() >= set(get_args(InterruptionReason)) - {"rebalance_recommendation", "no_op"}
