"""GCR-10 to GCR-15: which unhealthy nodes are repaired, when, and what stays although it is unhealthy."""

from dataclasses import replace

import pytest

from dovetail.lifecycle.repair import Blocked, find_repairs
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClassRef, RepairPolicy
from dovetail.model.values.time import format_time
from tests.lifecycle.test_gated import BROKEN, MINUTE, NOW, SILENT, a_claim_with_node, a_gated_snapshot, silent, some

FOREIGN = NodeClassRef(group="other.cloud", kind="OtherClass", name="default")


def test_a_node_is_repaired_at_the_end_of_its_toleration_and_not_before() -> None:
    """GCR-13: the boundary included."""
    claim, node = a_claim_with_node(1, silent(30))
    early = replace(a_gated_snapshot(claim, node), now=NOW - 1)

    assert len(find_repairs(a_gated_snapshot(claim, node), (SILENT,)).orders) == 1
    assert (find_repairs(early, (SILENT,)).orders, find_repairs(early, (SILENT,)).next_due) == ((), NOW)


@pytest.mark.parametrize("order", [(SILENT, BROKEN), (BROKEN, SILENT)])
def test_the_condition_whose_toleration_ends_first_is_the_reason(order: tuple[RepairPolicy, ...]) -> None:
    """GCR-12, GCR-16: whatever the order of the policies and of the conditions' names."""
    later = Condition(type="GpuReady", status="False", changed=NOW - 11 * MINUTE)
    (found,) = find_repairs(a_gated_snapshot(*a_claim_with_node(1, silent(60), later)), order).orders
    assert found.condition == "Ready"

    sooner = Condition(type="GpuReady", status="False", changed=NOW - 60 * MINUTE)
    (found,) = find_repairs(a_gated_snapshot(*a_claim_with_node(1, silent(31), sooner)), order).orders
    assert found.condition == "GpuReady"


def test_of_several_tolerations_the_next_is_waited_for() -> None:
    """GCR-13."""
    pairs = [a_claim_with_node(number, silent(minutes)) for number, minutes in ((1, 10), (2, 25), (3, 20))]
    healthy = [a_claim_with_node(number) for number in range(4, 20)]

    found = find_repairs(a_gated_snapshot(*(one for pair in (*pairs, *healthy) for one in pair)), (SILENT,))

    assert (found.orders, found.next_due) == ((), NOW + 5 * MINUTE)


def test_a_node_of_another_provider_is_not_repaired() -> None:
    """GCR-10, PLM-1: its claim is not counted beside one of ours either."""
    foreign, node = a_claim_with_node(1, silent(60), node_class=FOREIGN)
    ours, _ = a_claim_with_node(1, silent(60))

    assert find_repairs(a_gated_snapshot(foreign, node), (SILENT,)).orders == ()
    (order,) = find_repairs(a_gated_snapshot(replace(foreign, name="theirs"), ours, node), (SILENT,)).orders
    assert order.claim.name == ours.name


@pytest.mark.parametrize(("written", "ordered"), [(None, 1), ("not a time", 1), (NOW + 600, 1), (NOW, 0), (NOW - 1, 0)])
def test_a_claim_that_leaves_is_hurried_once(written: float | str | None, ordered: int) -> None:
    """GCR-15: unless its deadline has passed already."""
    text = written if isinstance(written, str) else None if written is None else format_time(written)
    annotations = {} if text is None else {names.TERMINATION_DEADLINE: text}
    leaving = a_claim_with_node(1, silent(60), deleting_since=NOW - 100, annotations=annotations)
    living = a_claim_with_node(1, silent(60), annotations=annotations)

    assert len(find_repairs(a_gated_snapshot(*leaving), (SILENT,)).orders) == ordered
    assert len(find_repairs(a_gated_snapshot(*living), (SILENT,)).orders) == 1


def test_each_pool_is_counted_by_itself() -> None:
    """GCR-14: many healthy nodes of another pool do not make up for a pool that is ill."""
    ill = some(4, 2)
    pairs = [a_claim_with_node(number, labels={names.NODE_POOL: "other"}) for number in range(100, 140)]

    found = find_repairs(a_gated_snapshot(*ill, *(one for pair in pairs for one in pair)), (SILENT,))

    assert found.orders == ()
    assert found.blocked == (Blocked(node="node-0", where="nodepool"), Blocked(node="node-1", where="nodepool"))


def test_the_share_is_a_fifth_to_the_node() -> None:
    """GCR-14: 20 of 100 are repaired, 21 are not, and 21 of 101 are, because the fifth is rounded up."""
    counts = [
        len(find_repairs(a_gated_snapshot(*some(count, ill)), (SILENT,)).orders)
        for count, ill in ((100, 20), (100, 21), (101, 21))
    ]

    assert counts == [20, 0, 21]


def test_what_is_unhealthy_for_a_moment_counts_towards_the_share() -> None:
    """GCR-14: unhealthy now, whatever the toleration says."""
    pairs = [a_claim_with_node(1, silent(60)), a_claim_with_node(2, silent(1)), a_claim_with_node(3)]

    found = find_repairs(a_gated_snapshot(*(one for pair in pairs for one in pair)), (SILENT,))

    assert (found.orders, len(found.blocked)) == ((), 1)


@pytest.mark.parametrize("on_claim", [True, False])
@pytest.mark.parametrize(("value", "repaired"), [("true", False), ("false", True), ("", True)])
def test_a_node_that_a_person_keeps_is_not_repaired(value: str, repaired: bool, on_claim: bool) -> None:
    """GCR-18: on the Node or the NodeClaim; said only once its toleration is over."""
    claim, node = a_claim_with_node(1, silent(60))
    kept = {names.DO_NOT_REPAIR: value}
    claim = replace(claim, annotations={**claim.annotations, **kept}) if on_claim else claim
    node = node if on_claim else replace(node, annotations={**node.annotations, **kept})

    found = find_repairs(a_gated_snapshot(claim, node), (SILENT,))

    assert (len(found.orders), found.blocked) == ((1, ()) if repaired else (0, (Blocked(node=node.name),)))
    _, young = a_claim_with_node(1, silent(1))
    assert find_repairs(a_gated_snapshot(claim, replace(young, annotations=node.annotations)), (SILENT,)).blocked == ()
