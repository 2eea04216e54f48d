"""When a NodePool's breaker opens, for how long, and what of it stands in the annotation (decision 226)."""

from dataclasses import replace

import pytest

from dovetail.model import names
from dovetail.model.own.breaker_rules import BREAKER, strictest
from dovetail.model.pools import NodePool
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.brake import Brake
from dovetail.model.values.memory import mark
from dovetail.rules.brake.breakers import (
    MOST,
    Breaker,
    Happened,
    breaker_of,
    breakers_of,
    open_breakers,
    probe_of,
    with_breaker,
    without_breaker,
    without_probe,
)
from tests.placement.builders import a_general_pool
from worlds.disruption import NOW

MINUTE, HOUR = 60.0, 3600.0
THREE = Brake(enough=3, window=30 * MINUTE, rests=Backoff(first=600.0, longest=6 * HOUR))


def after(minutes: list[float], rule: Brake = THREE) -> Breaker:
    """The breaker after failures at these moments, each of a disruption of its own."""
    breaker = Breaker(reason="Drifted")
    for number, minute in enumerate(minutes):
        breaker = breaker.failed(f"{number:08x}", rule, NOW + minute * MINUTE)
    return breaker


def stored(pool: NodePool, breaker: Breaker) -> Breaker | None:
    return breaker_of(with_breaker(pool, breaker), breaker.reason)


@pytest.mark.parametrize(
    ("minutes", "opened"),
    [
        ([0], False),
        ([0, 10], False),
        ([0, 10, 20], True),
        ([0, 20, 40], False),
        ([0, 20, 40, 49], True),
        ([0, 0, 0], True),
    ],
)
def test_it_opens_after_so_many_failures_within_a_time(minutes: list[float], opened: bool) -> None:
    breaker = after(minutes)

    assert (breaker.opened is not None) is opened
    assert breaker.until(THREE) == (NOW + minutes[-1] * MINUTE + 600 if opened else None)


def test_without_a_policy_it_opens_at_three_failures_that_come_one_after_another() -> None:
    assert after([0, 11], BREAKER).opened is None
    assert after([0, 11, 22], BREAKER).opened is not None
    assert after([0, 11, 59], BREAKER).opened is not None
    assert after([0, 11, 60], BREAKER).opened is None


def test_without_a_policy_one_is_tried_after_half_an_hour_and_each_time_twice_as_late_up_to_eight_hours() -> None:
    waits, breaker = [], after([0, 11, 22], BREAKER)
    for number in range(6):
        until = breaker.until(BREAKER) or 0.0
        waits.append((until - breaker.last) / MINUTE)
        tried = replace(breaker, probe=Happened(until, mark("abcdef00")))
        breaker = tried.failed(f"1000000{number}", BREAKER, until + 600)

    assert waits == [30, 60, 120, 240, 480, 480]


def test_a_report_that_comes_again_counts_once() -> None:
    once = after([0, 10])

    assert once.failed("00000001", THREE, NOW + HOUR) is once


def test_only_a_try_that_fails_doubles_the_rest() -> None:
    """What began before it opened and fails later is put off, and rests no longer."""
    beside = after([0, 10, 20, 25])
    assert (beside.tries, beside.until(THREE)) == (0, NOW + 35 * MINUTE)

    rests, breaker = [], after([0, 10, 20])
    for number in range(9):
        until = breaker.until(THREE) or 0.0
        assert not breaker.is_due(THREE, until - 1) and breaker.is_due(THREE, until)
        breaker = replace(breaker, probe=Happened(until, mark("abcdef00")))
        assert not breaker.is_due(THREE, until + HOUR)
        breaker = breaker.failed(f"1000000{number}", THREE, until + 600)
        rests.append((breaker.until(THREE) or 0.0) - until - 600)

    assert rests == [1200, 2400, 4800, 9600, 19200, *[6 * HOUR] * 4]
    assert breaker.probe is None


def test_the_strictest_of_several_policies_counts() -> None:
    other = Brake(enough=9, window=2 * HOUR, rests=Backoff(first=MINUTE, longest=7 * HOUR))

    assert strictest([]) == BREAKER
    assert strictest([THREE, other]) == Brake(enough=3, window=2 * HOUR, rests=Backoff(first=600.0, longest=7 * HOUR))


def test_what_is_remembered_comes_back_as_it_was_written_and_stays_short() -> None:
    pool = replace(a_general_pool(), annotations={names.NODE_POOL_HASH: "1", "team": "a"})
    tried = replace(after([0, 1, 2]), tries=7, probe=Happened(NOW + HOUR, mark("beef")))
    for breaker in (
        after([0]),
        after([0, 1, 2]),
        tried,
        replace(tried, tries=1000),
        replace(tried, ended=NOW - HOUR),
        tried.answered,
    ):
        assert stored(pool, breaker) == breaker
    empty = replace(after([0]), reason="Empty")
    both = with_breaker(with_breaker(pool, after([0, 1, 2])), empty)
    assert {each.reason for each in breakers_of(both).values()} == {"Drifted", "Empty"}
    assert [each.reason for each in open_breakers(both)] == ["Drifted"]
    assert without_breaker(without_breaker(both, "Drifted"), "Empty") == pool
    long = after(list(range(100)))
    assert len(long.failures) == MOST and long.opened is not None
    assert len(with_breaker(pool, long).annotations[names.BREAKER]) < 2000


def test_another_template_begins_anew() -> None:
    pool = with_breaker(replace(a_general_pool(), annotations={names.NODE_POOL_HASH: "1"}), after([0, 1, 2]))
    changed = replace(pool, annotations={**pool.annotations, names.NODE_POOL_HASH: "2"})

    assert breakers_of(changed) == {}
    assert stored(changed, after([5])) == after([5])


def test_only_its_own_try_is_taken_back() -> None:
    tried = with_breaker(a_general_pool(), replace(after([0, 1, 2]), probe=probe_of("c/disrupt/beef", NOW)))

    assert without_probe(tried, "Drifted", "c/disrupt/bad") is tried
    found = breaker_of(without_probe(tried, "Drifted", "c/disrupt/beef"), "Drifted")
    assert found == after([0, 1, 2])


@pytest.mark.parametrize(
    "text",
    ["", "Drifted", "Drifted@=1", "Drifted@=1:x", "Drifted@=1e9:00000000", "Drift@=1:00000000", ",,", "Drifted@=/5x1"],
)
def test_an_annotation_that_somebody_has_spoilt_counts_as_none(text: str) -> None:
    pool = replace(a_general_pool(), annotations={names.BREAKER: text})

    assert breakers_of(pool) == {}
    assert stored(pool, after([0])) == after([0])
