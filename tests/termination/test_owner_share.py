"""How many pods of one owner may be on their way at once."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.model.pods import Owner, Pod
from dovetail.termination.owner_share import Eviction, count_pods, owner_with_turns, turns, waits_for_turn
from tests.lifecycle.objects import DAEMON, REPLICAS, STATIC, a_web_pod

NOW = 10_000.0
KEY = ("apps", REPLICAS.uid)
JOB = Owner(api_version="batch/v1", kind="Job", name="job", uid="job", controller=True)
SET = Owner(api_version="apps/v1", kind="StatefulSet", name="db", uid="db", controller=True)
FRIEND = Owner(api_version="example.org/v1", kind="Friend", name="friend", uid="friend")


def standing(count: int, prefix: str = "old", **fields: Any) -> list[Pod]:
    return [a_web_pod(f"{prefix}-{number}", **{"ready": True, "created": 0.0, **fields}) for number in range(count)]


def evictions(*moments: float) -> dict[str, Eviction]:
    """Of pods that had stood for long."""
    return {f"uid-{number}": Eviction(at, created=0.0) for number, at in enumerate(moments)}


def taken(pods: list[Pod], *evicted: float, share: float = 0.25) -> tuple[int, int]:
    """How many are on their way, and how many may be."""
    known = turns(count_pods(pods, {KEY}, NOW)[KEY], evictions(*evicted), share, NOW)
    return known.taken, known.allowed


@pytest.mark.parametrize(
    ("owners", "by_turns"),
    [
        ((REPLICAS,), True),
        ((SET,), True),
        ((FRIEND, REPLICAS), True),
        ((JOB,), False),
        ((DAEMON,), False),
        ((STATIC,), False),
        ((FRIEND,), False),
        ((), False),
    ],
)
def test_pods_of_a_controller_leave_by_turns_but_not_those_of_jobs_and_daemons(
    owners: tuple[Owner, ...], by_turns: bool
) -> None:
    assert (owner_with_turns(a_web_pod(owners=owners)) is not None) == by_turns


@pytest.mark.parametrize(
    ("count", "share", "allowed"), [(60, 0.25, 15), (7, 0.25, 1), (3, 0.25, 1), (100, 0.29, 29), (5, 1.0, 5)]
)
def test_a_share_may_leave_and_at_least_one(count: int, share: float, allowed: int) -> None:
    assert taken(standing(count), share=share) == (0, allowed)


def test_an_eviction_counts_until_a_pod_that_was_created_since_is_ready() -> None:
    evicted = [NOW - 5, NOW - 4, NOW - 4]
    arriving = standing(3, "new", created=NOW - 4, ready=False)
    assert taken(standing(9) + arriving, *evicted) == (3, 3)

    one_is_ready = standing(2, "new", created=NOW - 4, ready=False) + standing(1, "ready", created=NOW - 4)
    assert taken(standing(9) + one_is_ready, *evicted) == (2, 3)
    assert taken(standing(9) + standing(3, "ready", created=NOW - 4), *evicted) == (0, 3)


def test_a_pod_that_nobody_has_made_yet_is_missing() -> None:
    assert taken(standing(9), NOW - 1, NOW - 1) == (2, 2)


def test_a_pod_that_moves_twice_is_missing_once() -> None:
    """It came to a node that leaves as well; its first eviction held all drains for a minute."""
    first, second = a_web_pod("first", created=0.0), a_web_pod("second", ready=True, created=NOW - 8)
    moved_twice = {first.uid: Eviction(NOW - 9, first.created), second.uid: Eviction(NOW - 2, second.created)}
    others, third = standing(11), a_web_pod("third", ready=True, created=NOW - 1)

    def on_their_way(*more: Pod) -> int:
        return turns(count_pods([*others, *more], {KEY}, NOW)[KEY], moved_twice, 0.25, NOW).taken

    assert on_their_way() == 1
    assert on_their_way(second) == 1  # counted before it was evicted
    assert on_their_way(replace(third, ready=False)) == 1
    assert on_their_way(third) == 0


def test_pods_that_stood_before_the_first_eviction_replace_nothing() -> None:
    assert taken(standing(12, created=NOW - 30), NOW - 5)[0] == 1


def test_a_pod_that_is_created_in_the_second_of_its_eviction_replaces_it() -> None:
    """The API server writes whole seconds."""
    assert taken(standing(11) + standing(1, "new", created=NOW - 3), NOW - 2.4)[0] == 0


def test_young_pods_that_are_not_ready_count_whoever_evicted_the_old_ones() -> None:
    """Another worker's evictions, and those from before a restart."""
    assert taken(standing(9) + standing(3, "new", created=NOW - 20, ready=None)) == (3, 3)


def test_after_a_minute_neither_an_eviction_nor_an_unready_pod_counts() -> None:
    assert taken(standing(9) + standing(3, "new", created=NOW - 62, ready=False), NOW - 61) == (0, 2)


def test_pods_that_have_ended_or_leave_and_those_of_others_do_not_stand() -> None:
    others = standing(4, "other", owners=(SET,)) + standing(2, "bare", owners=())
    gone = standing(2, "ended", phase="Succeeded") + standing(2, "leaving", deleting_since=NOW)
    unknown = ("apps", "unknown")
    found = count_pods(standing(8, owners=(FRIEND, REPLICAS)) + others + gone, {KEY, unknown}, NOW)
    assert (found[KEY].standing, found[unknown].standing) == (8, 0)


def test_pods_that_never_run_make_the_share_no_larger() -> None:
    """A Deployment whose new pods cannot start would lose its ten good ones all at once."""
    pending = standing(990, "pending", node_name="", phase="Pending", ready=False, created=NOW - 3600)
    assert taken(standing(10) + pending, share=0.1) == (0, 1)
    starting = standing(990, "starting", phase="Pending", ready=None, created=NOW - 5)
    assert taken(standing(10) + starting, share=0.1) == (990, 100)


def test_pods_of_another_namespace_that_name_the_owner_count_for_nothing() -> None:
    """Nobody checks the owner that a pod names. Such pods made the share larger, or held the drain."""
    shape = replace(a_web_pod().shape, namespace="mallory")
    ready = [replace(pod, shape=shape) for pod in standing(990, "theirs")]
    young = [replace(pod, shape=shape) for pod in standing(5, "young", created=NOW - 5, ready=False)]
    assert taken(standing(10) + ready + young, share=0.1) == (0, 1)


def test_what_holds_a_pod_is_said_in_numbers() -> None:
    known = turns(count_pods(standing(12), {KEY}, NOW)[KEY], evictions(NOW, NOW, NOW), 0.25, NOW)
    assert (known.is_free, known.words(REPLICAS)) == (False, "3 of 12 pods of ReplicaSet web are on their way")


@pytest.mark.parametrize(
    ("pod", "deadline", "asked", "waits"),
    [
        (a_web_pod(ready=True), None, NOW - 59, True),
        (a_web_pod(ready=True), None, NOW - 60, False),  # what never gets ready holds no drain for ever
        (a_web_pod(ready=False), None, NOW, False),  # serves nobody
        (a_web_pod(ready=False, created=NOW - 20), None, NOW, True),  # is about to
        (a_web_pod(ready=True, grace_seconds=30), NOW + 91, NOW, True),
        (a_web_pod(ready=True, grace_seconds=30), NOW + 89, NOW, False),  # would be forced meanwhile
        (a_web_pod(ready=True, grace_seconds=None), NOW + 1, NOW, True),  # is never forced
    ],
)
def test_how_long_a_pod_waits_for_its_turn(pod: Pod, deadline: float | None, asked: float, waits: bool) -> None:
    assert waits_for_turn(pod, deadline, asked, NOW) == waits
