"""GCR-19, GCR-20, GCR-21: what is done about a fault by the cloud's policies, when, and how often."""

from dataclasses import replace
from typing import Final

import pytest

from dovetail.adapters.aws.catalogues import LEGACY_POLICIES, REBOOTING_POLICIES, REPAIR_POLICIES
from dovetail.disruption.nodes.fleet import Member
from dovetail.lifecycle.faults import NodeFault, fault_of, next_faults
from dovetail.lifecycle.repair import find_repairs
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, RepairPolicy
from dovetail.model.objects.pod_index import NO_PODS
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.scheduling.taints import Taint
from dovetail.model.snapshot import Snapshot
from dovetail.placement.facts.cluster_nodes import cluster_nodes
from tests.lifecycle.test_gated import MINUTE, NOW, a_claim_with_node, a_gated_snapshot

GPU: Final = "AcceleratedHardwareReady"


def faulty(minutes: float, reason: str = "NvidiaXID48Error", kind: str = GPU) -> Condition:
    return Condition(type=kind, status="False", reason=reason, changed=NOW - minutes * MINUTE)


def found(*conditions: Condition, policies: tuple[RepairPolicy, ...] = REBOOTING_POLICIES, **of_claim: object) -> str:
    claim, node = a_claim_with_node(1, *conditions)
    return fate(fault_of(node, replace(claim, **of_claim), policies, NOW))  # type: ignore[arg-type]


def fate(fault: NodeFault | None) -> str:
    return "wait" if fault is None else "reboot" if fault.reboots else "replace"


@pytest.mark.parametrize(
    ("reason", "minutes", "expected"),
    [
        ("NvidiaXID48Error", 9, "wait"),
        ("NvidiaXID48Error", 11, "reboot"),
        ("NvidiaXID158Error", 11, "reboot"),
        ("NvidiaXID48Error", 300, "reboot"),
        ("NvidiaXID64Error", 11, "replace"),
        ("NvidiaXID13Error", 11, "wait"),
        ("NvidiaXID13Error", 31, "replace"),
        ("", 29, "wait"),
        ("", 31, "replace"),
    ],
)
def test_the_code_of_a_gpus_error_says_what_is_done(reason: str, minutes: float, expected: str) -> None:
    """AWS-140: those of 1.15.2, anywhere in the reason; any other reason after half an hour."""
    assert found(faulty(minutes, reason)) == expected


def test_with_the_gate_closed_it_is_replaced_at_the_same_time_and_the_legacy_policies_ask_no_reason() -> None:
    assert found(faulty(11), policies=REPAIR_POLICIES) == "replace"
    assert found(faulty(11, "NvidiaXID13Error"), policies=LEGACY_POLICIES) == "replace"


def test_of_two_faults_that_are_due_the_replacement_wins_with_the_shorter_bound() -> None:
    claim, node = a_claim_with_node(1, faulty(11), faulty(31, "x", "KernelReady"))
    fault = fault_of(node, claim, REBOOTING_POLICIES, NOW)

    assert fault is not None
    assert (fault.reboots, fault.condition.type, fault.grace) == (False, "KernelReady", 300.0)
    assert found(faulty(11), faulty(29, "x", "KernelReady")) == "reboot"
    assert fault.bound(replace(claim, termination_grace=60.0)) == 60.0


def test_a_reason_that_no_policy_names_falls_to_the_only_one_without_an_expression() -> None:
    policies = (
        RepairPolicy(condition="Ready", status="False", toleration=60.0, reason="^Known$"),
        RepairPolicy(condition="Disk", status="True", toleration=600.0, reason=""),
    )

    def minutes(one: float, reason: str) -> str:
        return found(faulty(one, reason, "Ready"), policies=policies)

    assert (minutes(2, "Known"), minutes(2, "Other"), minutes(11, "Other")) == ("replace", "wait", "replace")
    assert found(faulty(99, "", "Network"), policies=policies) == "wait"


def test_a_condition_is_no_older_than_its_node_nor_than_the_end_of_its_reboot() -> None:
    claim, node = a_claim_with_node(1, replace(faulty(0), changed=0.0))
    young = replace(node, created=NOW - 5 * MINUTE)
    ended = Condition(type=names.REBOOTING, status="False", changed=NOW - 4 * MINUTE)

    assert fate(fault_of(young, claim, REBOOTING_POLICIES, NOW)) == "wait"
    assert [*next_faults(young, claim, REBOOTING_POLICIES)] == [NOW + 5 * MINUTE]
    rebooted = replace(claim, conditions=(*claim.conditions, ended))
    assert [*next_faults(node, rebooted, REBOOTING_POLICIES)] == [NOW + 6 * MINUTE]


@pytest.mark.parametrize(("hours", "expected"), [((1,), "reboot"), ((1, 23.9), "replace"), ((1, 24.1), "reboot")])
def test_the_third_reboot_within_a_day_is_a_replacement(hours: tuple[float, ...], expected: str) -> None:
    now = 100_000.0
    claim, node = a_claim_with_node(1, replace(faulty(0), changed=now - 3600))
    moments = tuple(now - hour * 3600 for hour in hours)
    written = replace(claim, annotations=with_memory({}, reboots=moments))

    assert fate(fault_of(node, written, REBOOTING_POLICIES, now)) == expected


def test_half_an_hour_of_waiting_makes_up_for_one_priority() -> None:
    policies = (
        RepairPolicy(condition="Low", status="False", toleration=0.0, priority=10),
        RepairPolicy(condition="High", status="False", toleration=0.0, priority=90),
    )

    def score(kind: str, minutes: float) -> float:
        claim, node = a_claim_with_node(1, faulty(minutes, "", kind))
        fault = fault_of(node, claim, policies, NOW)
        assert fault is not None
        return fault.score

    assert score("High", 0) > score("Low", 29)
    assert score("Low", 31) > score("High", 0)


def test_one_that_was_begun_goes_on_whatever_is_wanted_by_now_and_each_look_is_an_order_of_its_own() -> None:
    claim, node = a_claim_with_node(1, faulty(40), annotations={names.REBOOT_GRACE: "600s"})
    snapshot = a_gated_snapshot(claim, node)

    now, later = (find_repairs(each, ()) for each in (snapshot, replace(snapshot, now=NOW + 15)))

    assert (len(now.reboots), now.orders, now.next_due) == (1, (), NOW + 15)
    assert now.reboots[0].turn != later.reboots[0].turn


def test_a_node_that_is_being_rebooted_is_awaited_by_pods_and_left_alone_by_disruption() -> None:
    """Its taints pass, and what it lacks until its devices are there again is what its claim promises."""
    claim, node = a_claim_with_node(1)
    of_claim = {"allocatable": {"nvidia.com/gpu": 8}, "annotations": {names.REBOOT_GRACE: "600s"}}
    taints = [
        Taint(key=names.REBOOTING_TAINT, effect="NoSchedule"),
        Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"),
        Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
        Taint(key="team", effect="NoSchedule"),
    ]
    labels = {**node.labels, names.INITIALIZED: "true", names.REGISTERED: "true"}
    away: Node = replace(node, labels=labels, taints=tuple(taints), allocatable={"nvidia.com/gpu": 0})

    def seen(one: NodeClaim) -> tuple[list[str], int, bool]:
        snapshot: Snapshot = a_gated_snapshot(one, away)
        (item,) = cluster_nodes(snapshot)
        member = Member(name=away.name, node=away, claim=one, managed=True, labels=away.labels, pods=NO_PODS)
        return [taint.key for taint in item.taints], item.allocatable["nvidia.com/gpu"], member.is_initialized

    assert seen(replace(claim, **of_claim)) == (["team"], 8, False)  # type: ignore[arg-type]
    assert seen(replace(claim, allocatable={"nvidia.com/gpu": 8}))[1:] == (0, True)
