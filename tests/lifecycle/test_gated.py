"""GCR-10 to GCR-16, NPL-40 to NPL-44: node repair and static pools, behind their gates."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.lifecycle.repair import Blocked, find_repairs
from dovetail.lifecycle.static_pools import Shortfall, shortfalls, surplus
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, RepairPolicy
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from tests.lifecycle.objects import DAEMON, a_joined_claim, a_joined_node, a_new_pool, a_snapshot, a_web_pod, is_now
from worlds.disruption import a_claim

NOW = 10_000.0
MINUTE = 60.0
SILENT = RepairPolicy(condition="Ready", status="Unknown", toleration=30 * MINUTE)
BROKEN = RepairPolicy(condition="GpuReady", status="False", toleration=10 * MINUTE)


def a_gated_snapshot(*objects: NodePool | NodeClaim | Node | Pod) -> Snapshot:
    return a_snapshot(*objects, now=NOW)


def a_claim_with_node(number: int, *conditions: Condition, **fields: Any) -> tuple[NodeClaim, Node]:
    provider_id = f"aws:///zone/i-{number}"
    healthy = Condition(type="Ready", status="True")
    claim = a_joined_claim(f"claim-{number}", provider_id=provider_id, node_name=f"node-{number}", **fields)
    labels = {names.NODE_POOL: claim.labels[names.NODE_POOL]} if names.NODE_POOL in claim.labels else {}
    node = a_joined_node(f"node-{number}", provider_id=provider_id, labels=labels, conditions=conditions or (healthy,))
    return claim, node


def silent(minutes: float) -> Condition:
    return Condition(type="Ready", status="Unknown", changed=NOW - minutes * MINUTE)


def some(count: int, unhealthy: int, **fields: Any) -> list[NodeClaim | Node]:
    pairs = [a_claim_with_node(n, *((silent(60),) if n < unhealthy else ()), **fields) for n in range(count)]
    return [one for pair in pairs for one in pair]


def test_a_node_that_is_unhealthy_for_too_long_is_replaced_at_once() -> None:
    """GCR-15, GCR-16, BEH-40: its deadline is now."""
    found = find_repairs(a_gated_snapshot(*a_claim_with_node(1, silent(60))), (SILENT,))

    assert [(order.claim.name, order.reason, order.at_once) for order in found.orders] == [
        ("claim-1", "unhealthy", True)
    ]


@pytest.mark.parametrize(
    "condition",
    [
        Condition(type="Other", status="Unknown", changed=0.0),
        Condition(type="Ready", status="False", changed=0.0),
    ],
)
def test_another_type_or_status_is_not_unhealthy(condition: Condition) -> None:
    """Only the condition type and status that a repair policy names make a node unhealthy (GCR-12, BEH-41)."""
    assert find_repairs(a_gated_snapshot(*a_claim_with_node(1, condition)), (SILENT,)).orders == ()


def test_of_two_policies_the_earlier_counts_and_is_waited_for() -> None:
    """GCR-12, GCR-13, BEH-43."""
    broken = Condition(type="GpuReady", status="False", changed=NOW - 7 * MINUTE)

    found = find_repairs(a_gated_snapshot(*a_claim_with_node(1, silent(20), broken)), (SILENT, BROKEN))

    assert (found.orders, found.next_due) == ((), NOW + 3 * MINUTE)


@pytest.mark.parametrize(("count", "unhealthy", "replaced"), [(3, 1, 1), (10, 2, 2), (10, 3, 0), (3, 2, 0)])
def test_more_than_a_fifth_of_a_pool_stops_its_repair(count: int, unhealthy: int, replaced: int) -> None:
    """GCR-14, BEH-45, BEH-46: rounded up."""
    found = find_repairs(a_gated_snapshot(*some(count, unhealthy)), (SILENT,))

    assert (len(found.orders), len(found.blocked)) == (replaced, 0 if replaced else unhealthy)


def test_a_claim_without_a_pool_is_counted_among_all_nodes() -> None:
    """GCR-14, BEH-45."""
    found = find_repairs(a_gated_snapshot(*some(10, 3, labels={})), (SILENT,))

    assert found.orders == ()
    assert found.blocked[0] == Blocked(node="node-0", where="cluster")
    assert found.next_due == NOW + 300.0


def test_a_node_without_one_claim_is_not_repaired() -> None:
    """GCR-10."""
    claim, node = a_claim_with_node(1, silent(60))

    assert find_repairs(a_gated_snapshot(node), (SILENT,)).orders == ()
    assert find_repairs(a_gated_snapshot(claim, replace(claim, name="twin"), node), (SILENT,)).orders == ()


def static(replicas: int, **fields: Any) -> NodePool:
    return a_new_pool(replicas=replicas, conditions=(is_now(names.READY),), **fields)


def nodes(count: int, **fields: Any) -> list[NodeClaim]:
    return [a_joined_claim(f"c{n}", node_name=f"n{n}", provider_id=f"i-{n}", **fields) for n in range(count)]


@pytest.mark.parametrize(("have", "numbers"), [(0, (0, 1, 2)), (2, (0,)), (3, ()), (4, ())])
def test_a_static_pool_gets_what_it_lacks(have: int, numbers: tuple[int, ...]) -> None:
    """NPL-41, NPL-42, BEH-96."""
    expected = (Shortfall(pool="pool", numbers=numbers),) if numbers else ()

    assert shortfalls(a_gated_snapshot(static(3), *nodes(have))) == expected


def test_the_limit_of_nodes_counts_what_is_leaving() -> None:
    """NPL-42, BEH-96, BEH-126."""
    leaving = a_claim("leaving", deleting_since=NOW)

    found = shortfalls(a_gated_snapshot(static(10, limits={"nodes": 5}), *nodes(2), leaving))

    assert found == (Shortfall(pool="pool", numbers=(0, 1)),)


@pytest.mark.parametrize(("limit", "numbers"), [(4, ()), (5, (0,))])
def test_the_place_of_a_replacement_that_is_awaited_is_not_filled(limit: int, numbers: tuple[int, ...]) -> None:
    """BEH-126: a pool that grows while one of its nodes drifts."""
    marked = a_joined_claim("marked", annotations={names.OWNER: "c/disrupt/1"})

    found = shortfalls(a_gated_snapshot(static(4, limits={"nodes": limit}), *nodes(2), marked))

    assert [shortfall.numbers for shortfall in found] == ([numbers] if numbers else [])


def test_a_marked_node_is_replaced_by_its_disruption_and_not_by_the_count() -> None:
    """NPL-41; upstream subtracts only what runs (NPL-42) and makes one too many."""
    marked = a_joined_claim("marked", annotations={names.OWNER: "c/disrupt/1"})

    assert shortfalls(a_gated_snapshot(static(3), *nodes(1), marked)) == (Shortfall(pool="pool", numbers=(0,)),)
    assert surplus(a_gated_snapshot(static(2), *nodes(2), marked), {}) == ()  # DIS-79: it leaves anyway


@pytest.mark.parametrize(
    "pool",
    [
        a_new_pool(replicas=3),
        static(3, deleting_since=NOW),
        replace(static(3), replicas=None),
        static(0),
    ],
)
def test_pools_that_are_not_ready_leaving_dynamic_or_empty_get_nothing(pool: NodePool) -> None:
    """NPL-40, BEH-96."""
    assert shortfalls(a_gated_snapshot(pool)) == ()


def test_a_surplus_goes_unlaunched_first_then_empty_then_by_cost_and_protected_last() -> None:
    """NPL-44, BEH-97."""
    unlaunched = a_claim("z-unlaunched")
    empty, dear, cheap, protected = nodes(4)
    pods = [
        a_web_pod("agent", node_name="n0", owners=(DAEMON,)),
        a_web_pod("dear", node_name="n1"),
        a_web_pod("cheap", node_name="n2"),
        a_web_pod("held", node_name="n3", do_not_disrupt="true"),
    ]
    costs = {"n1": 9.0, "n2": 1.0, "n3": 0.0}
    world: list[NodeClaim | Pod] = [unlaunched, empty, dear, cheap, protected, *pods]

    def gone(replicas: int) -> list[str]:
        return [order.claim.name for order in surplus(a_gated_snapshot(static(replicas), *world), costs)]

    assert gone(0) == ["z-unlaunched", "c0", "c2", "c1", "c3"]
    assert gone(3) == ["z-unlaunched", "c0"]
    assert gone(5) == []
