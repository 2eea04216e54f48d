"""What decisions about disruption count, by upstream's names and labels (DIS-192)."""

from dataclasses import replace

import pytest

from dovetail.disruption.choose import decide
from dovetail.disruption.commands import Move
from dovetail.disruption.revalidate import Invalid, SecondLook
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.pools import Budget
from dovetail.model.reasons.disruption_reasons import Invalidity
from dovetail.telemetry.metrics.karpenters import catalogue as meters
from dovetail.telemetry.metrics.karpenters import disruption as counting_disruption
from tests.metrics.test_lifecycle import Counted, Meter
from worlds.disruption import NOW, a_pair, a_pod, a_pool, a_world, condition


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    made = Meter()
    monkeypatch.setattr(
        meters, "INSTRUMENTS", replace(meters.INSTRUMENTS, meter=made.provider.get_meter("test"), made={})
    )
    return made


def counted(meter: Meter, name: str) -> list[Counted]:
    return sorted((c for c in meter.kept if c[0] == f"karpenter_{name}"), key=str)


def test_a_decision_counts_candidates_by_reason_and_how_long_it_took(meter: Meter) -> None:
    """DIS-4."""
    drifted = [condition(names.DRIFTED, changed=NOW - 60)]
    pairs = [a_pair("n1", also=drifted), a_pair("n2", also=drifted, node={"conditions": ()})]
    world = a_world(pairs, [a_pod("n1"), a_pod("n2")], pools=[a_pool(budgets=(Budget(nodes="1"),))])

    counting_disruption.decided(decide(world, DisruptionSettings(), never), 0.25)

    eligible = counted(meter, "voluntary_disruption_eligible_nodes")
    assert ("karpenter_voluntary_disruption_eligible_nodes", 2, {"reason": "drifted"}) in eligible
    [(_, seconds, _)] = counted(meter, "voluntary_disruption_decision_evaluation_duration_seconds")
    assert seconds == 0.25


def test_drifted_nodes_of_static_and_other_pools_are_one_figure(meter: Meter) -> None:
    """DIT-40, DIQ-3: the later method does not overwrite what the earlier one has counted."""
    drifted = [condition(names.DRIFTED, changed=NOW - 60)]
    pairs = [a_pair("n1", also=drifted), a_pair("n2", also=drifted, pool="s"), a_pair("n3", also=drifted, pool="s")]
    closed = a_pool("s", replicas=2, budgets=(Budget(nodes="0"),))
    world = a_world(pairs, [a_pod(f"n{i}") for i in (1, 2, 3)], pools=[a_pool(), closed])

    counting_disruption.decided(decide(world, DisruptionSettings(), never), 0.25)

    eligible = counted(meter, "voluntary_disruption_eligible_nodes")
    assert [number for _, number, labels in eligible if labels == {"reason": "drifted"}] == [3]


def test_a_command_counts_once_and_once_for_each_of_its_pools(meter: Meter) -> None:
    """DIS-143, DIS-151, DIS-190."""
    pools = [a_pool("a"), a_pool("b")]
    plan = decide(a_world([a_pair("n1"), a_pair("n2", pool="b")], pools=pools), DisruptionSettings(), never).choice
    assert isinstance(plan, DisruptionPlan)
    [command] = plan.commands

    counting_disruption.started(command, command.targets)
    counting_disruption.disrupted(replace(command.targets[0], pods=("u1", "u2")), command.reason, None)

    kind = {"decision": "delete", "reason": "empty", "consolidation_type": "empty"}
    assert [c[1:] for c in counted(meter, "voluntary_disruption_decisions_total")] == [(1, kind)]
    by_pool = [c[2]["nodepool"] for c in counted(meter, "voluntary_disruption_decisions_by_nodepool_total")]
    assert by_pool == ["a", "b"]
    labels = {
        "reason": "empty",
        "nodepool": "a",
        "capacity_type": "on-demand",
        "consolidation_policy": "when_empty_or_underutilized",
        "termination_mode": "graceful",
    }
    assert [c[1:] for c in counted(meter, "nodeclaims_disrupted_total")] == [(1, labels)]
    assert [c[1:] for c in counted(meter, "pods_disruption_initiated_total")] == [(2, labels)]


@pytest.mark.parametrize(
    ("reason", "number"), [(Invalidity.CHURN, 3), (Invalidity.BUDGET, 3), (Invalidity.SCHEDULING, 0)]
)
def test_nodes_that_do_not_survive_the_wait_are_counted_unless_the_simulation_came_out_otherwise(
    meter: Meter, reason: Invalidity, number: int
) -> None:
    """DIS-134 to DIS-136."""
    invalid = Invalid(reason=reason, message="", candidates=3)

    counting_disruption.looked_again(SecondLook(validity=invalid, notices=()), "multi")

    found = counted(meter, "voluntary_disruption_failed_validations_total")
    assert sum(c[1] for c in found) == number


def test_timeouts_stand_at_zero_before_there_is_one(meter: Meter) -> None:
    counting_disruption.begin()
    found = counted(meter, "voluntary_disruption_consolidation_timeouts_total")
    assert [c[1:] for c in found] == [(0, {"consolidation_type": "multi"}), (0, {"consolidation_type": "single"})]


def test_a_consolidation_is_counted_by_what_its_pools_make_of_it(meter: Meter) -> None:
    """DIS-126: a command of any policy counts; only Balanced weighs it, and the score says what the pool itself
    thinks."""
    pods = [a_pod("n1"), a_pod("n2", do_not_disrupt="true"), a_pod("n3"), a_pod("n4", do_not_disrupt="true")]
    pairs = [a_pair("n1"), a_pair("n2"), a_pair("n3", pool="b"), a_pair("n4", pool="b")]
    balanced = a_world(pairs[:2], pods[:2], pools=[a_pool(policy="Balanced")])
    other = a_world(pairs[2:], pods[2:], pools=[a_pool("b")])

    for world in (balanced, other):
        counting_disruption.decided(decide(world, DisruptionSettings(), never), 0.1)

    moves = [c[1:] for c in counted(meter, "consolidation_moves_total")]
    approved = {"nodepool": "a", "policy": "Balanced", "decision": "approved"}
    assert moves == [(1, approved), (1, {**approved, "nodepool": "b", "policy": "WhenEmptyOrUnderutilized"})]
    [(_, score, labels)] = counted(meter, "consolidation_score")
    assert score == pytest.approx(1.0)
    assert labels == approved


def test_a_pool_that_approves_is_counted_so_where_another_pool_does_not(meter: Meter) -> None:
    """DIS-126: the moves by what becomes of the command, the scores by what each pool thinks."""
    moves = [
        Move(pool="a", policy="Balanced", approved=False, score=2.0, pool_approves=True),
        Move(pool="b", policy="Balanced", approved=False, score=0.1, pool_approves=False),
    ]
    decision = decide(a_world([], []), DisruptionSettings(), never)

    counting_disruption.decided(replace(decision, moves=tuple(moves)), 0.1)

    rejected = [
        (labels["nodepool"], labels["decision"]) for _, _, labels in counted(meter, "consolidation_moves_total")
    ]
    scores = [(labels["nodepool"], labels["decision"]) for _, _, labels in counted(meter, "consolidation_score")]
    assert rejected == [("a", "rejected"), ("b", "rejected")]
    assert sorted(scores) == [("a", "approved"), ("b", "rejected")]


def test_a_command_that_is_not_worth_its_disturbance_is_counted_as_rejected(meter: Meter) -> None:
    """DIS-124, DIS-126: to delete the node would be worth it, but its pods need another one that saves half as much."""
    moved = [a_pod("n1", "0.3") for _ in range(12)]
    held = [a_pod("n2", "8", do_not_disrupt="true")]
    world = a_world([a_pair("n1"), a_pair("n2")], [*moved, *held], pools=[a_pool(policy="Balanced")])

    decision = decide(world, DisruptionSettings(), never)
    counting_disruption.decided(decision, 0.1)

    assert [c[2]["decision"] for c in counted(meter, "consolidation_moves_total")] == ["rejected"]
    [(_, score, labels)] = counted(meter, "consolidation_score")
    assert score < 0.5
    assert labels["decision"] == "rejected"


def test_a_replace_is_counted_under_its_reason_and_type(meter: Meter) -> None:
    """DIS-143, DIT-25, DIT-26."""
    small = a_world([a_pair(f"n{i}", "m8") for i in range(3)], [a_pod(f"n{i}", "5") for i in range(3)])
    drifted = a_world([a_pair("n1", also=[condition(names.DRIFTED, changed=NOW - 60)])], [a_pod("n1")])
    for world in (small, drifted):
        plan = decide(world, DisruptionSettings(), never).choice
        assert isinstance(plan, DisruptionPlan)
        counting_disruption.started(plan.commands[0], plan.commands[0].targets)

    assert [c[1:] for c in counted(meter, "voluntary_disruption_decisions_total")] == [
        (1, {"decision": "replace", "reason": "drifted", "consolidation_type": ""}),
        (1, {"decision": "replace", "reason": "underutilized", "consolidation_type": "multi"}),
    ]


def test_failed_replacements_are_counted_under_their_consolidation_type(meter: Meter) -> None:
    """DIS-157, DIQ-2: upstream's label says the decision once more."""
    counting_disruption.failed("multi", 2)

    labels = {"decision": "replace", "reason": "underutilized", "consolidation_type": "multi"}
    assert [c[1:] for c in counted(meter, "voluntary_disruption_queue_failures_total")] == [(2, labels)]


def test_both_drifts_are_one_number(meter: Meter) -> None:
    """DIQ-3: upstream's second gauge overwrites the first."""
    drifted = [condition(names.DRIFTED, changed=NOW - 60)]
    pairs = [a_pair("n1", also=drifted), a_pair("n2", pool="b", also=drifted)]
    closed = (Budget(nodes="0"),)
    pools = [a_pool(budgets=closed), a_pool("b", replicas=1, budgets=closed)]

    counting_disruption.decided(decide(a_world(pairs, pools=pools), DisruptionSettings(), never), 0.1)

    eligible = counted(meter, "voluntary_disruption_eligible_nodes")
    assert [c[1] for c in eligible if c[2] == {"reason": "drifted"}] == [2]
