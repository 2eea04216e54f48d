"""GCR-19: which unhealthy nodes are rebooted before they are replaced, when, and how often."""

from dataclasses import replace
from typing import Final

import pytest

from dovetail.adapters.aws.catalogues import REBOOTING_POLICIES, REPAIR_POLICIES
from dovetail.disruption.nodes.fleet import Member
from dovetail.lifecycle.repair import Repairs, find_repairs
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.objects.pod_index import NO_PODS
from dovetail.model.scheduling.taints import Taint
from dovetail.model.snapshot import Snapshot
from dovetail.placement.facts.cluster_nodes import cluster_nodes
from tests.lifecycle.test_gated import MINUTE, NOW, a_pair, a_snapshot

GPU: Final = "AcceleratedHardwareReady"
INITIALIZED: Final = Condition(type=names.INITIALIZED_CONDITION, status="True")


def faulty(minutes: float, reason: str = "NvidiaXID48Error", kind: str = GPU) -> Condition:
    return Condition(type=kind, status="False", reason=reason, changed=NOW - minutes * MINUTE)


def a_faulty(condition: Condition, *others: Condition, **of_claim: object) -> tuple[NodeClaim, Node]:
    claim, node = a_pair(1, condition)
    return replace(claim, **{"conditions": (INITIALIZED, *others), **of_claim}), node  # type: ignore[arg-type]


def ended(minutes: float) -> Condition:
    return Condition(type=names.REBOOTING, status="False", reason="RebootSucceeded", changed=NOW - minutes * MINUTE)


def found(pair: tuple[NodeClaim, Node], *, reboots: bool = True) -> Repairs:
    return find_repairs(a_snapshot(*pair), REBOOTING_POLICIES, reboots=reboots)


def fate(repairs: Repairs) -> str:
    return "reboot" if repairs.reboots else "replace" if repairs.orders else "wait"


@pytest.mark.parametrize(
    ("reason", "minutes", "expected"),
    [
        ("NvidiaXID48Error", 9, "wait"),
        ("NvidiaXID48Error", 11, "reboot"),
        ("NvidiaXID140Error", 11, "reboot"),
        ("NvidiaXID48Error", 31, "replace"),  # nobody has rebooted it for half an hour
        ("NvidiaXID79Error", 11, "replace"),
        ("NvidiaXID480Error", 11, "replace"),
        ("", 11, "replace"),
    ],
)
def test_a_fault_that_a_reboot_clears_has_its_instance_rebooted(reason: str, minutes: float, expected: str) -> None:
    assert fate(found(a_faulty(faulty(minutes, reason)))) == expected


def test_with_the_gate_closed_it_is_replaced_as_ever() -> None:
    """The cloud then says of nothing that a reboot would clear it."""
    pair = a_faulty(faulty(11))

    assert (fate(found(pair, reboots=False)), fate(found(pair))) == ("replace", "reboot")
    assert fate(find_repairs(a_snapshot(*pair), REPAIR_POLICIES, reboots=True)) == "replace"


def test_of_two_faults_the_one_that_is_due_first_counts() -> None:
    claim, node = a_faulty(faulty(11))
    both = replace(node, conditions=(*node.conditions, faulty(31, "x", "KernelReady")))

    assert fate(found((claim, both))) == "reboot"
    assert fate(found((claim, replace(both, conditions=(faulty(9), both.conditions[1]))))) == "replace"


@pytest.mark.parametrize(
    ("last", "since", "expected"),
    [
        (ended(5), 11, "wait"),  # the fault outlived the reboot: it is replaced at its half hour
        (ended(5), 31, "replace"),
        (ended(40), 11, "replace"),  # it came again soon after one
        (ended(80), 11, "reboot"),
    ],
)
def test_a_fault_is_rebooted_once_and_not_again_within_an_hour(last: Condition, since: float, expected: str) -> None:
    assert fate(found(a_faulty(faulty(since), last))) == expected


def test_a_node_that_was_never_initialised_is_replaced() -> None:
    pair = a_faulty(faulty(11), conditions=())

    assert (fate(found(pair)), fate(found(a_faulty(faulty(31), conditions=())))) == ("wait", "replace")


def test_do_not_repair_and_a_fleet_of_which_too_much_is_unhealthy_hold_reboots_too() -> None:
    claim, node = a_faulty(faulty(11))
    kept = (claim, replace(node, annotations={names.DO_NOT_REPAIR: "true"}))
    pairs = [a_pair(number, faulty(11)) for number in range(1, 4)]
    many = [one for a_claim, a_node in pairs for one in (replace(a_claim, conditions=(INITIALIZED,)), a_node)]

    assert (fate(found(kept)), len(found(kept).blocked)) == ("wait", 1)
    assert len(find_repairs(a_snapshot(*many), REBOOTING_POLICIES, reboots=True).blocked) == 3


def test_one_that_was_begun_goes_on_whatever_is_wanted_by_now_and_each_look_is_an_order_of_its_own() -> None:
    claim, node = a_faulty(faulty(40), annotations={names.REBOOT_GRACE: "600s"})
    snapshot = a_snapshot(claim, node)

    now, later = (find_repairs(each, (), reboots=False) for each in (snapshot, replace(snapshot, now=NOW + 15)))

    assert (len(now.reboots), now.orders, now.next_due) == (1, (), NOW + 15)
    assert now.reboots[0].turn != later.reboots[0].turn


def test_a_node_that_is_being_rebooted_is_awaited_by_pods_and_left_alone_by_disruption() -> None:
    """Its taints pass, and what it lacks until its devices are there again is what its claim promises."""
    claim, node = a_pair(1)
    of_claim = {"allocatable": {"nvidia.com/gpu": 8}, "annotations": {names.REBOOT_GRACE: "600s"}}
    taints = [
        Taint(key=names.REBOOTING_TAINT, effect="NoSchedule"),
        Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"),
        Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
        Taint(key="team", effect="NoSchedule"),
    ]
    labels = {**node.labels, names.INITIALIZED: "true", names.REGISTERED: "true"}
    away = replace(node, labels=labels, taints=tuple(taints), allocatable={"nvidia.com/gpu": 0})

    def seen(one: NodeClaim) -> tuple[list[str], int, bool]:
        snapshot: Snapshot = a_snapshot(one, away)
        (item,) = cluster_nodes(snapshot)
        member = Member(name=away.name, node=away, claim=one, managed=True, labels=away.labels, pods=NO_PODS)
        return [taint.key for taint in item.taints], item.allocatable["nvidia.com/gpu"], member.is_initialized

    assert seen(replace(claim, **of_claim)) == (["team"], 8, False)  # type: ignore[arg-type]
    assert seen(replace(claim, allocatable={"nvidia.com/gpu": 8}))[1:] == (0, True)
