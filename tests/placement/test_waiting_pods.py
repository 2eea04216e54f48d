"""Which pods take part in a pass (PLC-19 to PLC-32)."""

from dataclasses import replace
from typing import Any

import pytest

from acceptance.karpenter import KARPENTER_PLACEMENT
from dovetail.model import names
from dovetail.model.objects.workloads import PodDisruptionBudget
from dovetail.model.pods import Expression, LabelSelector, Owner, Pod, PodShape
from dovetail.placement.index.waiting_pods import expression_fault, pending_pods
from dovetail.placement.pdbs import PdbIndex
from dovetail.placement.settings import PlacementSettings
from dovetail.placement.triggers import leaving_uids
from tests.placement.builders import (
    a_bound_pod,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    an_index,
    one_of,
    selecting,
    term,
)
from worlds.disruption import NOW

SETTINGS = PlacementSettings()


def _why(shape: PodShape) -> list[str]:
    return [ignored.why for ignored in pending_pods(a_snapshot([a_waiting_pod("p", shape=shape)]), SETTINGS).ignored]


def test_a_pod_that_the_scheduler_has_not_given_up_on_is_invisible() -> None:
    """PLC-20: gated pods too."""
    found = pending_pods(a_snapshot([replace(a_waiting_pod("p"), unschedulable=False)]), SETTINGS)

    assert (found.pending, found.ignored) == ((), ())


def test_a_pod_that_selects_a_hostname_is_ignored_even_for_existing_nodes() -> None:
    """A pod that selects a hostname is ignored, even for existing nodes (PLC-24)."""
    assert _why(a_shape(node_selector=((names.HOSTNAME, "n1"),))) == [f"label {names.HOSTNAME} is restricted"]


def test_a_pod_that_selects_against_all_pools_is_ignored_in_silence() -> None:
    """A pod that selects against all NodePools is ignored without an Event (PLC-22)."""
    shape = a_shape(required_terms=(term(Expression(key=names.NODE_POOL, operator="DoesNotExist")),))

    found = pending_pods(a_snapshot([a_waiting_pod("p", shape=shape)]), SETTINGS)

    assert [ignored.silent for ignored in found.ignored] == [True]


def test_one_bad_term_of_several_makes_the_pod_ignored() -> None:
    """PLC-23: every required term is looked at, not only the first."""
    shape = a_shape(required_terms=(term(one_of(names.ZONE, "z1")), term(one_of("karpenter.sh/unknown", "x"))))

    assert _why(shape) == ["label karpenter.sh/unknown is restricted"]


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        (Expression(key="team", operator="In"), "key team with operator In must have a value"),
        (Expression(key="team", operator="Is", values=("a",)), "key team has an unsupported operator Is"),
        (
            Expression(key="n", operator="Gt", values=("1.5",)),
            "key n with operator Gt must have a single non-negative integer",
        ),
        (one_of(names.CAPACITY_TYPE, "gifted"), f"no known value for {names.CAPACITY_TYPE}"),
        (one_of("-bad-", "a"), "label -bad- is no qualified name"),
        (one_of("team", "a b"), "invalid value for label team"),
        (one_of("beta.kubernetes.io/arch", "amd64"), ""),
    ],
)
def test_each_fault_of_an_expression_has_its_words(expression: Expression, fault: str) -> None:
    """Each fault of an expression has a text of its own (PLC-23)."""
    assert expression_fault(expression, names.WELL_KNOWN_LABELS) == fault


def test_a_pod_that_has_ended_gets_no_node() -> None:
    """PLQ-21: upstream would create one."""
    snapshot = a_snapshot([replace(a_waiting_pod("p"), phase="Failed")])

    ours = pending_pods(snapshot, SETTINGS)
    upstream = pending_pods(snapshot, PlacementSettings(profile=KARPENTER_PLACEMENT))

    assert (len(ours.pending), len(upstream.pending)) == (0, 1)


def _blocks(*budgets: PodDisruptionBudget) -> PdbIndex:
    return PdbIndex(budgets, NOW)


def _budget(name: str = "b", **fields: Any) -> PodDisruptionBudget:
    return PodDisruptionBudget(name=name, namespace="default", selector=selecting(app="x"), **fields)


def test_a_budget_that_never_allows_an_eviction_holds_its_pods() -> None:
    """A budget that never allows an eviction holds its pods (PLC-32)."""
    pod = a_bound_pod("p", "n1", shape=a_shape({"app": "x"}))

    assert [
        _blocks(_budget(max_unavailable="0")).blocks_for_good(pod),
        _blocks(_budget(min_available="100%")).blocks_for_good(pod),
        _blocks(_budget(max_unavailable="1")).blocks_for_good(pod),
    ] == [True, True, False]


def test_two_budgets_on_one_pod_block_it_and_an_unhealthy_pod_may_be_let_go() -> None:
    """Two budgets on one pod block it, and an unhealthy pod may be evicted (PLC-32)."""
    pod = a_bound_pod("p", "n1", shape=a_shape({"app": "x"}))
    unready = replace(pod, ready=False)
    lenient = _budget(max_unavailable="0", always_allow_unhealthy=True)

    assert [
        _blocks(_budget("a"), _budget("b")).blocks_for_good(pod),
        _blocks(lenient).blocks_for_good(unready),
        _blocks(lenient).blocks_for_good(pod),
    ] == [True, False, True]


@pytest.mark.parametrize(
    ("bound", "held"),
    [
        ({"max_unavailable": "0"}, True),
        ({"max_unavailable": "0%"}, True),
        ({"max_unavailable": "1%"}, False),
        ({"min_available": "100%"}, True),
        ({"min_available": "99%"}, False),
        ({"min_available": "100"}, False),
        ({"disruptions_allowed": 0}, False),
    ],
)
def test_a_budget_holds_for_good_by_what_it_says_and_not_by_what_it_allows_now(
    bound: dict[str, Any], held: bool
) -> None:
    """DIS-46, PLC-32: and a pod that it holds gets no room elsewhere (DIS-47)."""
    pod = a_bound_pod("p", "n1", shape=a_shape({"app": "x"}))
    index = _blocks(_budget(**bound))

    assert (index.blocks_for_good(pod), index.needs_room(pod)) == (held, not held)


def test_only_the_pods_that_would_be_evicted_are_held_by_a_budget() -> None:
    """DIS-43, DIT-20: not one that has ended, is mirrored or terminates; not one of another namespace."""
    pod = a_bound_pod("p", "n1", shape=a_shape({"app": "x"}))
    mirror = Owner(api_version="v1", kind="Node", name="n1", uid="n1", controller=True)
    others = (
        replace(pod, phase="Succeeded"),
        replace(pod, owners=(mirror,)),
        replace(pod, deleting_since=NOW - 1),
        replace(pod, shape=replace(pod.shape, namespace="other")),
        replace(pod, shape=a_shape({"app": "y"})),
    )

    for index in (_blocks(_budget(max_unavailable="0")), _blocks(_budget("a"), _budget("b"))):
        assert (index.blocks_for_good(pod), len(index.blocking(pod))) == (True, len(index.of(pod)))
        assert [(index.blocks_for_good(one), index.blocking(one)) for one in others] == [(False, ())] * 5


def test_an_allowance_lets_a_pod_go_and_two_budgets_never_do() -> None:
    """DIS-43, BEH-119: an unready pod goes only where it has one budget, and that one always allows it."""
    pod = a_bound_pod("p", "n1", shape=a_shape({"app": "x"}))
    unready = replace(pod, ready=False)
    allowing, lenient = _budget("a", disruptions_allowed=1), _budget("b", always_allow_unhealthy=True)

    def names_of(one: Pod, *budgets: PodDisruptionBudget) -> list[str]:
        return [budget.name for budget in _blocks(*budgets).blocking(one)]

    assert [names_of(pod, allowing), names_of(pod, lenient), names_of(unready, lenient)] == [[], ["b"], []]
    assert names_of(unready, _budget("c")) == ["c"]
    assert names_of(unready, lenient, allowing) == names_of(pod, allowing, lenient) == ["a", "b"]


def test_the_pods_of_a_leaving_node_need_room_but_for_those_that_must_not_move() -> None:
    """The pods of a leaving node need room but for those that must not move (PLC-30, PLC-31)."""
    node, claim = a_joined_pair("n1")
    daemon, stateful, mirror = (
        (Owner(api_version=version, kind=kind, name="o", uid="o", controller=True),)
        for version, kind in (("apps/v1", "DaemonSet"), ("apps/v1", "StatefulSet"), ("v1", "Node"))
    )
    pods = [
        a_bound_pod("moves", "n1"),
        replace(a_bound_pod("stateful", "n1"), owners=stateful, deleting_since=NOW - 1),
        replace(a_bound_pod("stays", "n1"), do_not_disrupt="true"),
        replace(a_bound_pod("terminating", "n1"), deleting_since=NOW - 1),
        replace(a_bound_pod("ended", "n1"), phase="Failed"),
        replace(a_bound_pod("daemon", "n1"), owners=daemon),
        replace(a_bound_pod("mirror", "n1"), owners=mirror),
    ]
    snapshot = a_snapshot(pods, [(node, replace(claim, deleting_since=NOW))])

    assert [pod.name for pod in an_index(snapshot).waiting().leaving] == ["moves", "stateful"]


def test_a_selector_of_nothing_selects_everything_and_none_selects_nothing() -> None:
    """An absent selector and an empty one are opposites."""
    pod = a_bound_pod("p", "n1")
    everything = PodDisruptionBudget(name="b", namespace="default", selector=LabelSelector(), max_unavailable="0")
    nothing = PodDisruptionBudget(name="b", namespace="default", selector=None, max_unavailable="0")

    assert [_blocks(everything).blocks_for_good(pod), _blocks(nothing).blocks_for_good(pod)] == [True, False]


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ({names.ENDED_BECAUSE: "SpotInterrupted"}, ["free", "held", "protected"]),
        ({names.INTERRUPTED: "2026-01-01T00:00:00Z"}, ["free", "held", "protected"]),
        ({names.ENDED_BECAUSE: "Expired: expireAfter has passed"}, ["free"]),
        ({}, ["free"]),
    ],
)
def test_an_instance_that_the_cloud_takes_asks_no_budget(marks: dict[str, str], expected: list[str]) -> None:
    """It is gone in two minutes whatever forbids its pods to leave (PLC-30): their room is asked for at once, and by
    what wakes the planner as well."""
    node, claim = a_joined_pair("n1")
    pods = [
        a_bound_pod("free", "n1"),
        a_bound_pod("held", "n1", shape=a_shape(labels={"app": "held"})),
        replace(a_bound_pod("protected", "n1"), do_not_disrupt="true"),
    ]
    never = PodDisruptionBudget(
        name="never", namespace="default", selector=selecting(app="held"), max_unavailable="0", disruptions_allowed=0
    )
    leaving = replace(claim, node_name="n1", deleting_since=NOW, annotations=marks)
    snapshot = replace(a_snapshot(pods, [(node, leaving)]), pdbs={"default/never": never})

    assert sorted(pod.name for pod in an_index(snapshot).waiting().leaving) == expected
    assert sorted(snapshot.pods[uid].name for uid in leaving_uids(snapshot)) == expected
