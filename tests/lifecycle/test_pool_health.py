"""NPL-30 to NPL-33: which launches speak for the health of a NodePool, by how many of the last four."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.lifecycle.pool_health import (
    HEALTHY,
    KEPT,
    Record,
    Result,
    judge_health,
    read_record,
    record_text,
    results_of,
)
from dovetail.lifecycle.pool_health import RESULTS as ANNOTATION
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.pods import Owner
from dovetail.model.pools import NodePool
from tests.lifecycle.objects import a_new_pool, is_now
from tests.lifecycle.test_pools import judged, status
from worlds.disruption import a_claim

NOW = 10_000.0
OWNER = Owner(api_version="karpenter.sh/v1", kind="NodePool", name="pool", uid="uid-pool")


def a_judged_pool(*results: bool, status: str = "Unknown", since: float = NOW - 5000) -> NodePool:
    """A pool whose launches ended so, with that verdict."""
    kept = tuple((f"earlier-{number}", good) for number, good in enumerate(results))
    record = Record(pool_generation=1, class_generation=1, since=since, results=kept)
    return a_new_pool(conditions=(is_now(HEALTHY, status),), annotations={ANNOTATION: record_text(record)})


def verdict(pool: NodePool, *claims: NodeClaim) -> Condition:
    return judge_health(pool, claims, 1, NOW).condition


def came_up(name: str, at: float = NOW - 10) -> NodeClaim:
    return a_claim(name, owners=(OWNER,), conditions=(is_now(names.REGISTERED_CONDITION, changed=at),))


def deleted(name: str, after: float, launched: bool, **fields: Any) -> NodeClaim:
    """A claim that was deleted so many seconds after its creation, without a node."""
    launch = is_now(names.LAUNCHED, "True" if launched else "Unknown", reason="NoImage", changed=NOW - after)
    waiting = is_now(names.REGISTERED_CONDITION, "Unknown", changed=NOW - after)
    given = {"owners": (OWNER,), "created": NOW - after, "deleting_since": NOW, "conditions": (launch, waiting)}
    return a_claim(name, **{**given, **fields})


@pytest.mark.parametrize(("launched", "seconds"), [(True, 900.0), (False, 300.0)])
def test_only_a_claim_that_was_given_its_whole_time_is_a_failure(launched: bool, seconds: float) -> None:
    """NPL-33, LIF-41, LIF-43: two that a person deleted a moment earlier say nothing, two that were given up do."""
    pool = a_judged_pool()

    early = [deleted(name, seconds - 1, launched) for name in "ab"]
    late = [deleted(name, seconds, launched) for name in "ab"]

    assert verdict(pool, *early).status == "Unknown"
    assert verdict(pool, *late).status == "False"


def test_a_claim_without_conditions_is_judged_by_its_creation() -> None:
    """NPL-33: missing conditions stand at Unknown since the creation (PLM-4)."""
    bare = [deleted(name, 300.0, False, conditions=()) for name in "ab"]

    found = verdict(a_judged_pool(), *bare)

    assert (found.status, found.reason, found.message) == ("False", "RegistrationFailed", "Failed to register node")
    early = [deleted(name, 299.0, False, conditions=()) for name in "ab"]
    assert verdict(a_judged_pool(), *early).status == "Unknown"


def test_a_claim_that_still_waits_is_no_failure() -> None:
    """NPL-33: an end is the deletion, however long the wait has been."""
    waiting = [deleted(name, 5000.0, launched, deleting_since=None) for name, launched in (("a", True), ("b", False))]

    assert verdict(a_judged_pool(), *waiting).status == "Unknown"


def test_results_from_before_the_record_began_are_not_counted_again() -> None:
    """NPL-32: they were counted, or forgotten with the older template."""
    pool = a_judged_pool(since=NOW - 100)

    assert verdict(pool, came_up("a", NOW - 101)).status == "Unknown"
    assert verdict(pool, came_up("a", NOW - 100)).status == "True"


def test_results_count_in_the_order_in_which_they_happened() -> None:
    """NPL-30: of six ends the last four count, whatever the claims are called."""
    late = [deleted(name, 900.0, True) for name in "ab"]
    early = [came_up(name, NOW - 50 + number) for number, name in enumerate("wxyz")]

    found = judge_health(a_judged_pool(), (*late, *early), 1, NOW)

    assert [good for _, good in found.record.results] == [True, True, False, False]
    assert found.condition.status == "False"


def test_a_success_amid_failures_and_a_failure_amid_successes_change_nothing() -> None:
    """NPL-33: only a success may set True, only a failure False; and what stands keeps its reason."""
    broken, fine = a_judged_pool(False, False, status="False"), a_judged_pool(True, True, True, status="True")

    assert verdict(broken, came_up("a")).status == "False"
    assert verdict(fine, deleted("a", 900.0, True)).status == "True"
    assert verdict(broken, deleted("a", 300.0, False)) == broken.conditions[0]


def test_a_standing_unknown_seeds_nothing() -> None:
    """NPL-31: one failure after it does not make two."""
    pool = a_new_pool(conditions=(is_now(HEALTHY, "Unknown"),))

    health = judge_health(pool, (), 1, NOW)

    assert (health.condition.status, health.record.results, health.record.since) == ("Unknown", (), NOW)


def test_a_condition_of_an_older_generation_seeds_nothing() -> None:
    """NPL-31, NPL-32: what Karpenter said of an older template is forgotten."""
    pool = a_new_pool(conditions=(is_now(HEALTHY, "False", generation=7),))

    assert judge_health(pool, (), 1, NOW).condition.status == "Unknown"


def test_without_its_record_or_its_condition_a_pool_begins_anew() -> None:
    """NPL-32: either alone is not enough to go on from."""
    kept = a_judged_pool(True, True)
    without_condition = a_new_pool(annotations=kept.annotations)

    for pool in (without_condition, a_new_pool()):
        health = judge_health(pool, (), 1, NOW)
        assert (health.condition.status, health.record.results) == ("Unknown", ())


def test_other_conditions_of_the_pool_are_not_its_health() -> None:
    """NPL-31: the root may be True although no node has come up."""
    pool = a_new_pool(conditions=(is_now("Ready"),))

    assert judge_health(pool, (), 1, NOW).record.results == ()


def test_a_result_that_is_read_late_does_not_turn_the_clock_back() -> None:
    """DUR-7: the moment from which an earlier release would go on only moves forward."""
    record = Record(pool_generation=1, class_generation=1, since=500.0)
    late, later = (record.with_result(Result(claim_uid="a", good=True, at=at)) for at in (400.0, 600.0))

    assert [json.loads(record_text(one))["since"] for one in (late, later)] == [500.0, 600.0]


def test_five_nodes_that_registered_in_one_second_are_written_down_once() -> None:
    """DUR-7: each look counted one again that the look before had pushed out, for ever."""
    five = [came_up(f"c{number}", NOW - 10) for number in range(5)]

    pool = judged(judged(judged(a_new_pool(), now=NOW - 100), *five[:3], five[4]), *five)

    assert judged(pool, *five).annotations == pool.annotations


def an_end(name: str, second: int, good: bool) -> NodeClaim:
    """In one of the last seconds: its node came up, or it was given up."""
    if good:
        return came_up(name, NOW - 10 + second)
    return deleted(name, 1500.0, True, deleting_since=NOW - 10 + second)


ends = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=9).map(
    lambda drawn: [an_end(f"c{number}", *each) for number, each in enumerate(drawn)]
)


@settings(max_examples=100, deadline=None)
@given(ends=ends, pool=st.sampled_from(["new", "by an earlier release"]), data=st.data())
def test_whatever_the_order_in_which_claims_are_seen_the_record_ends_the_same_and_is_not_written_again(
    ends: list[NodeClaim], pool: str, data: st.DataObject
) -> None:
    """DUR-7, NPL-30: several may end in one second, and they become visible some at a time."""
    began = judged(a_new_pool(), now=NOW - 100)
    if pool != "new":
        began = a_new_pool(
            conditions=began.conditions,
            annotations={ANNOTATION: f'{{"pool":1,"class":1,"since":{NOW - 100},"results":[["earlier-0",false]]}}'},
        )
    at_once = judged(began, *ends, now=NOW + 10)

    found, seen = began, list[NodeClaim]()
    for claim in data.draw(st.permutations(ends)):
        seen.append(claim)
        if data.draw(st.booleans()):
            found = judged(found, *seen, now=NOW + len(seen))
        counted = [uid for uid, _ in read(found).results]
        assert len(counted) == len(set(counted)) <= KEPT
    found = judged(found, *ends, now=NOW + 10)

    assert (read(found), status(found)[0]) == (read(at_once), status(at_once)[0])
    again = judge_health(found, ends, 1, NOW + 20)
    assert (record_text(again.record), again.condition) == (found.annotations[ANNOTATION], health_of(found))


@settings(max_examples=100, deadline=None)
@given(
    ends=ends,
    kept=st.lists(st.integers(0, 8), unique=True, max_size=KEPT),
    gone=st.integers(0, 2),
    second=st.integers(0, 3),
)
def test_the_record_of_an_earlier_release_is_read_and_settles_at_once(
    ends: list[NodeClaim], kept: list[int], gone: int, second: int
) -> None:
    """It kept no moments. What it counted keeps its result, and counts once; claims from before its `since` do not."""
    mine = {f"uid-c{number}": number % 2 == 0 for number in kept} | {f"gone-{number}": False for number in range(gone)}
    since = NOW - 10 + second
    record = {"pool": 1, "class": 1, "since": since, "results": list(mine.items())}
    pool = a_new_pool(conditions=(is_now(HEALTHY, "Unknown"),), annotations={ANNOTATION: json.dumps(record)})

    once = judged(pool, *ends, now=NOW + 10)
    twice = judged(once, *ends, now=NOW + 20)

    results = read(once).results
    assert len(dict(results)) == len(results) <= KEPT
    assert all(good == mine[uid] for uid, good in results if uid in dict(list(mine.items())[-KEPT:]))
    early = {claim.uid for claim in ends if result_of(pool, claim).at < since}
    assert not early & (dict(results).keys() - mine.keys())
    assert twice.annotations == once.annotations


@pytest.mark.parametrize("at", ["[1]", "[]", "[1,2,3]"])
def test_a_record_whose_moments_do_not_fit_is_read_as_if_it_had_none(at: str) -> None:
    text = f'{{"pool":1,"class":1,"since":{NOW},"results":[["a",true],["b",false]],"at":{at}}}'

    assert read(a_new_pool(annotations={ANNOTATION: text})).times == (NOW - 0.001, NOW)


def read(pool: NodePool) -> Record:
    record = read_record(pool)
    assert record is not None
    return record


def result_of(pool: NodePool, claim: NodeClaim) -> Result:
    [result] = results_of(pool, [claim])
    return result


def health_of(pool: NodePool) -> Condition:
    return next(condition for condition in pool.conditions if condition.type == HEALTHY)
