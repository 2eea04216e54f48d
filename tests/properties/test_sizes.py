"""Whatever the planners return fits what Temporal carries, and so does all that is made of it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptance.bench.inputs.unlike_nodes import catalogue, inputs_of, line_of, parts_of, unlike_fleet
from dovetail.disruption.choose import choose
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan, ProvisioningPlan
from dovetail.messages.sizes import PAYLOAD_BYTES, PLAN_BYTES, TASK_BYTES, encoded_bytes
from dovetail.model.pools import Budget, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.placement.provisioning_plan import TOO_LARGE, plan_provisioning
from dovetail.placement.settings import PlacementSettings
from worlds.disruption import Pair, a_pair, a_pod, a_pool, a_world

pytestmark = pytest.mark.slow

SIZES = st.lists(st.integers(100, 60_000), min_size=1, max_size=60)


WAVES = {"sizes": SIZES, "pods": st.sampled_from([1, 3, 40]), "types": st.sampled_from([60, 700])}
UNLIKE = {"sizes": SIZES, "padding": st.sampled_from([0, 20_000, 190_000, 300_000])}


@given(**WAVES)
@settings(max_examples=8, deadline=None)
def test_a_wave_of_unlike_nodes_fits(sizes: list[int], pods: int, types: int) -> None:
    _wave_fits(sizes, pods, types)


@pytest.mark.soak
@given(**WAVES)
@settings(max_examples=100, deadline=None)
def test_many_waves_of_unlike_nodes_fit(sizes: list[int], pods: int, types: int) -> None:
    _wave_fits(sizes, pods, types)


def _wave_fits(sizes: list[int], pods: int, types: int) -> None:
    plan = choose(unlike_fleet(sizes, pods, types), DisruptionSettings(), never)

    assert isinstance(plan, DisruptionPlan)
    inputs = inputs_of(plan)
    assert encoded_bytes(plan) < PLAN_BYTES + 4096  # what stands around the commands and lists
    assert max(inputs) < PAYLOAD_BYTES
    assert max(parts_of(inputs)) < TASK_BYTES


@given(**UNLIKE)
@settings(max_examples=8, deadline=None)
def test_a_plan_for_unlike_pods_fits_and_what_is_too_large_for_it_is_said(sizes: list[int], padding: int) -> None:
    _plan_fits(sizes, padding)


@pytest.mark.soak
@given(**UNLIKE)
@settings(max_examples=100, deadline=None)
def test_many_plans_for_unlike_pods_fit_and_what_is_too_large_is_said(sizes: list[int], padding: int) -> None:
    _plan_fits(sizes, padding)


def _plan_fits(sizes: list[int], padding: int) -> None:
    good, large = a_pool("good"), a_pool("large", annotations={}, weight=50)
    pods = [a_pod("", f"{cpu}m") for cpu in sizes]
    world = a_world([], pods, pools=[good, _padded(large, padding)], types=catalogue())
    plan, _ = plan_provisioning(world, PlacementSettings(), never)

    assert isinstance(plan, ProvisioningPlan)
    assert encoded_bytes(plan) < PAYLOAD_BYTES
    assert plan.proposed or any(refusal.reason == TOO_LARGE for refusal in plan.refusals)


def _padded(pool: NodePool, padding: int) -> NodePool:
    """Its template has an annotation of that length, as large as the API server admits."""
    return replace(pool, template=replace(pool.template, annotations={"note": "x" * padding}))


@given(pods=st.integers(1, 300), nodes=st.integers(1, 40))
@settings(max_examples=15, deadline=None)
def test_a_plan_for_empty_nodes_with_many_pods_that_cost_nothing_fits(pods: int, nodes: int) -> None:
    """A plan names each pod that it knew of."""
    free: dict[str, Any] = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-2147483647"}}
    pairs = [a_pair(f"n{n}") for n in range(nodes)]
    mine = [a_pod(f"n{n}", "1m", **free) for n in range(nodes) for _ in range(pods)]
    plan = choose(a_world(pairs, mine), DisruptionSettings(plan_bytes=20_000), never)

    if isinstance(plan, DisruptionPlan):
        assert encoded_bytes(plan) < 20_000 + 4096


def test_a_hundred_unlike_nodes_leave_in_waves_that_fit() -> None:
    """One plan of them was 23.5 MB in one workflow task; the server ends a workflow at 4."""
    figures = line_of()["bytes"]

    assert sum(figures["waves"]) == 100
    assert figures["plan"] < PLAN_BYTES + 4096
    assert figures["workflow task"] < TASK_BYTES


def test_a_node_that_no_plan_can_carry_is_left_alone_with_a_reason_and_the_others_drift() -> None:
    """DIS-71."""
    world = unlike_fleet([1000, 2000, 3000])
    huge = _padded(a_pool(consolidate_after=None, budgets=(Budget(nodes="100%"),)), 300_000)
    small = DisruptionSettings(plan_bytes=40_000)
    alone = choose(a_world(_pairs(world), world.pods.values(), pools=[huge], types=catalogue()), small, never)

    assert not isinstance(alone, DisruptionPlan)
    assert [refusal.reason for refusal in alone.refusals if refusal.reason == "TooLarge"] == ["TooLarge"]
    assert {n.reason for n in alone.notices if "more than a plan can carry" in n.message} == {"DisruptionBlocked"}
    assert isinstance(choose(world, small, never), DisruptionPlan)


def _pairs(world: Snapshot) -> list[Pair]:
    return [Pair(node=world.nodes[c.node_name], claim=c) for c in world.claims.values()]
