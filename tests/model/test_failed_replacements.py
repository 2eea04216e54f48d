"""When replacements that were not ready in time hold the others of their NodePool, and until when (decision 226)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dovetail.model import names
from dovetail.model.failed_replacements import FIRST_REST, LONGEST_REST, failed_text, replacement_brake
from dovetail.model.pools import NodePool
from tests.placement.builders import NOW, a_pool

MINUTE, HOUR = 60.0, 3600.0


def after(moments: Sequence[float], template: str = "1", reason: str = "Drifted") -> NodePool:
    """The pool after failures at these moments."""
    pool = replace(a_pool(), annotations={names.NODE_POOL_HASH: template})
    for moment in moments:
        text = failed_text(pool, reason, NOW + moment)
        pool = replace(pool, annotations={**pool.annotations, names.FAILED_REPLACEMENTS: text})
    return pool


@pytest.mark.parametrize(
    ("moments", "rest"),
    [
        ([], None),
        ([0.0, 10 * MINUTE], None),
        ([0.0, 40 * MINUTE, 80 * MINUTE], None),
        ([0.0, 10 * MINUTE, 20 * MINUTE], FIRST_REST),
        ([0.0, 1.0, 2.0], FIRST_REST),
        ([0.0, 1.0, 2.0, 3.0, 4.0], FIRST_REST),  # side by side: one try
        ([0.0, 40 * MINUTE, 80 * MINUTE, 90 * MINUTE], FIRST_REST),
        ([0.0, 10 * MINUTE, 20 * MINUTE, 50 * MINUTE], 2 * FIRST_REST),
        ([0.0, 10 * MINUTE, 20 * MINUTE, 50 * MINUTE, 2 * HOUR], 4 * FIRST_REST),
        ([0.0, 1.0, 2.0, *[day * 24 * HOUR for day in range(1, 9)]], LONGEST_REST),
    ],
)
def test_three_failures_in_an_hour_hold_the_pool_and_each_further_try_twice_as_long(
    moments: list[float], rest: float | None
) -> None:
    brake = replacement_brake(after(moments), "Drifted")

    if rest is None:
        assert brake is None
    else:
        assert brake is not None
        assert (brake.failures, brake.until) == (len(moments), NOW + moments[-1] + rest)


def test_another_reason_and_another_template_are_not_held() -> None:
    pool = after([0.0, 1.0, 2.0])
    changed = replace(pool, annotations={**pool.annotations, names.NODE_POOL_HASH: "2"})

    assert replacement_brake(pool, "Drifted") is not None
    assert replacement_brake(pool, "Underutilized") is None
    assert replacement_brake(changed, "Drifted") is None
    assert failed_text(changed, "Drifted", NOW) == f"Drifted@2={NOW:.0f}"


@pytest.mark.parametrize("text", ["", "Drifted", "Drifted@1=x", "Drifted@1=1e9", "Drifted@1=" + "9" * 500, ",,,"])
def test_an_annotation_that_somebody_has_spoilt_counts_as_none(text: str) -> None:
    pool = replace(a_pool(), annotations={names.NODE_POOL_HASH: "1", names.FAILED_REPLACEMENTS: text})

    assert replacement_brake(pool, "Drifted") is None
    assert failed_text(pool, "Drifted", NOW) == f"Drifted@1={NOW:.0f}"


def test_the_annotation_stays_short() -> None:
    assert len(after([float(number) for number in range(200)]).annotations[names.FAILED_REPLACEMENTS]) < 300
