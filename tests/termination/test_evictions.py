"""TRM-13 to TRM-18: which pods hold a node and which of them go now."""

import pytest

from dovetail.model.pods import Pod, Toleration
from dovetail.termination.evictions import forced_grace, must_force, plan_evictions, tier
from tests.lifecycle.objects import DAEMON, EVERYTHING, STATIC, a_web_pod

NOW = 1000.0
CRITICAL = 2_000_000_000


def names_of(pods: tuple[Pod, ...]) -> list[str]:
    return [pod.name for pod in pods]


def test_the_tiers_leave_one_after_the_other() -> None:
    """TRM-15, BEH-13."""
    pods = {
        1: a_web_pod("plain"),
        2: a_web_pod("daemon", owners=(DAEMON,)),
        3: a_web_pod("critical", priority=CRITICAL),
        4: a_web_pod("critical-daemon", priority=CRITICAL + 1000, owners=(DAEMON,)),
    }
    assert {number: tier(pod) for number, pod in pods.items()} == {1: 1, 2: 2, 3: 3, 4: 4}

    for first in range(1, 5):
        left = tuple(pod for number, pod in pods.items() if number >= first)
        assert names_of(plan_evictions(left, None, NOW).evict) == [pods[first].name]


def test_a_pod_of_a_high_priority_of_the_users_own_is_not_critical() -> None:
    """TRM-15: the API server allows at most a thousand million to classes that are not the system's."""
    assert [tier(a_web_pod("p", priority=priority)) for priority in (10**9, CRITICAL - 1, CRITICAL)] == [1, 1, 3]


def test_a_terminating_pod_still_holds_its_tier() -> None:
    """TRM-15: a later tier starts when the earlier one is gone, not when it was asked to go."""
    pods = (a_web_pod("ending", deleting_since=NOW + 20), a_web_pod("daemon", owners=(DAEMON,)))

    found = plan_evictions(pods, None, NOW)

    assert (found.evict, names_of(found.waiting)) == ((), ["daemon", "ending"])


def test_a_pod_that_is_stuck_holds_nothing() -> None:
    """TRM-13, BEH-18: more than a minute past its deletion."""
    assert names_of(plan_evictions((a_web_pod("a", deleting_since=NOW - 60),), None, NOW).waiting) == ["a"]
    assert plan_evictions((a_web_pod("a", deleting_since=NOW - 60.1),), None, NOW).waiting == ()


@pytest.mark.parametrize(("deadline", "forced"), [(NOW - 10, None), (None, NOW - 10), (NOW + 500, NOW - 10)])
def test_a_pod_that_was_made_when_all_had_to_have_left_holds_nothing(
    deadline: float | None, forced: float | None
) -> None:
    """TRM-13. One that a scheduler may have bound before it saw the taint still counts."""
    late, bound = a_web_pod("late", created=NOW - 6), a_web_pod("bound", created=NOW - 8)

    found = plan_evictions((late, bound), deadline, NOW, forced)

    assert names_of(found.waiting) == ["bound"]
    assert names_of(plan_evictions((late, bound), None, NOW).waiting) == ["bound", "late"]


@pytest.mark.parametrize(
    "pod",
    [
        a_web_pod(tolerations=(EVERYTHING,)),
        a_web_pod(tolerations=(Toleration(key="karpenter.sh/disrupted", operator="Exists"),)),
        a_web_pod(tolerations=(Toleration(operator="Equal"),)),  # DIS-40: without a key
        a_web_pod(tolerations=(Toleration(key="karpenter.sh/disrupted", operator="Equal", effect="NoSchedule"),)),
        a_web_pod(owners=(STATIC,)),
        a_web_pod(phase="Succeeded"),
        a_web_pod(phase="Failed"),
    ],
)
def test_pods_that_stay_or_have_ended_hold_nothing(pod: Pod) -> None:
    """TRM-13, BEH-8, BEH-11, BEH-14."""
    assert plan_evictions((pod,), None, NOW).waiting == ()


@pytest.mark.parametrize(
    "pod",
    [
        a_web_pod(tolerations=(Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),)),
        a_web_pod(tolerations=(Toleration(key="karpenter.sh/disrupted", operator="Exists", effect="NoExecute"),)),
        a_web_pod(owners=()),
    ],
)
def test_other_pods_are_evicted(pod: Pod) -> None:
    """Pods without an owner, and pods that tolerate another taint or effect, are evicted (TRM-13, BEH-9, BEH-10)."""
    assert plan_evictions((pod,), None, NOW).evict == (pod,)


def test_a_protected_pod_holds_the_node_and_is_not_evicted() -> None:
    """TRM-13, TRM-24."""
    pod = a_web_pod(do_not_disrupt="true")

    found = plan_evictions((pod,), None, NOW)

    assert (found.evict, found.protected, found.waiting) == ((), (pod,), (pod,))


@pytest.mark.parametrize(("text", "evicted"), [("2m", False), ("1m", True), ("1d", True), ("0", True), ("-1m", True)])
def test_a_timed_protection_ends_and_a_bad_one_never_begins(text: str, evicted: bool) -> None:
    """TRM-24, BEH-118: the pod started 100 s ago."""
    found = plan_evictions((a_web_pod(started=NOW - 100, do_not_disrupt=text),), None, NOW)

    assert bool(found.evict) is evicted


def test_a_pod_is_forced_when_its_own_grace_no_longer_fits() -> None:
    """TRM-14, BEH-22: strictly, at deadline minus grace."""
    pod = a_web_pod(grace_seconds=60)

    assert [must_force(pod, 1300.0, now) for now in (1240.0, 1240.1)] == [False, True]


def test_a_pod_whose_grace_exceeds_the_nodes_is_forced_at_once() -> None:
    """TRM-14, BEH-20, BEH-21: whatever its tier and its annotation."""
    pods = (
        a_web_pod("plain"),
        a_web_pod("critical", priority=CRITICAL, grace_seconds=600, do_not_disrupt="true"),
    )

    found = plan_evictions(pods, NOW + 300, NOW)

    assert (names_of(found.force), names_of(found.evict)) == (["critical"], ["plain"])


def test_a_pod_without_grace_is_never_forced_and_one_with_none_only_after_the_deadline() -> None:
    """TRM-14."""
    assert not must_force(a_web_pod(grace_seconds=None), NOW, NOW + 10**6)
    assert [must_force(a_web_pod(grace_seconds=0), NOW, now) for now in (NOW, NOW + 0.1)] == [False, True]


def test_a_terminating_pod_is_forced_if_it_would_end_after_the_deadline() -> None:
    """TRM-14, BEH-23."""
    pod = a_web_pod(deleting_since=1400.0)

    assert [must_force(pod, deadline, NOW) for deadline in (1399.0, 1400.0)] == [True, False]


@pytest.mark.parametrize(("deadline", "grace"), [(NOW + 30.9, 30), (NOW + 0.5, 1), (NOW - 3600, 1)])
def test_the_grace_of_force_is_what_is_left_and_never_zero(deadline: float, grace: int) -> None:
    """TRM-27, BEH-38."""
    assert forced_grace(deadline, NOW) == grace


def test_a_pod_that_cannot_be_judged_holds_its_node_until_the_deadline_and_stops_no_other_eviction() -> None:
    """It may be one that must not leave; after the deadline it leaves by force."""
    odd = a_web_pod("odd", do_not_disrupt=7)

    waits = plan_evictions((odd, a_web_pod("plain")), None, NOW)
    assert (names_of(waits.evict), names_of(waits.waiting), waits.force) == (["plain"], ["odd", "plain"], ())
    assert [fault.name for fault in waits.unjudged] == [odd.key]

    assert plan_evictions((odd,), NOW + 1, NOW).force == ()
    assert names_of(plan_evictions((odd,), NOW - 1, NOW).force) == ["odd"]
