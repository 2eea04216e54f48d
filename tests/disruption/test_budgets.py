"""Budgets: what they allow, and when (DIS-49 to DIS-57)."""

from datetime import UTC, datetime

import pytest

from dovetail.disruption.budgets.allowances import allowances
from dovetail.disruption.budgets.budgets import UNBOUNDED, allowed_nodes, judge_budgets, limit_for
from dovetail.disruption.budgets.schedules import parse_schedule
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.nodes import NodeClassRef
from dovetail.model.pools import Budget
from worlds.disruption import CLASS, NOW, a_pair, a_pool, a_world, condition


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def allowed(budgets: tuple[Budget, ...], nodes: int, now: float = NOW, reason: str = "Drifted") -> int:
    return limit_for(judge_budgets(budgets, now), reason, nodes).allowed


@pytest.mark.parametrize(
    ("text", "nodes", "expected"), [("20%", 19, 4), ("5%", 10, 1), ("50%", 0, 0), ("0%", 9, 0), ("3", 1, 3)]
)
def test_a_percentage_is_rounded_up(text: str, nodes: int, expected: int) -> None:
    """DIS-53."""
    assert allowed((Budget(nodes=text),), nodes) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2147483647", 2147483647),
        ("2147483648", -2147483648),
        ("4294967296", 0),
        ("5000000000", 705032704),
        ("-2147483649", 2147483647),
        ("2147483648%", 21474836480),
    ],
)
def test_of_a_number_that_is_beyond_32_bits_those_bits_count(text: str, expected: int) -> None:
    """DIS-53."""
    assert allowed_nodes(text, 1000) == expected


@pytest.mark.parametrize("text", ["@daily ", " @daily", "\t@hourly", "@every 1h ", " 0 0 * * * "])
def test_spaces_around_a_schedule_do_not_count(text: str) -> None:
    """DIS-56."""
    assert parse_schedule(text) == parse_schedule(text.strip())


@pytest.mark.parametrize("text", [", 12 * * *", "0 , * * *", "0 12 * , *", "0 12 , * *", "0 12 * * ,", "0 12 , * ,"])
def test_a_field_of_commas_admits_nothing_so_that_the_budget_is_always_active(text: str) -> None:
    """DIS-56, DIQ-20."""
    assert allowed((Budget(nodes="3", schedule=text, duration=60.0),), 9) == 3


@pytest.mark.parametrize("text", ["0 12 , * 4", "0 12 4 * ,"])
def test_where_both_days_are_restricted_one_that_admits_nothing_leaves_it_to_the_other(text: str) -> None:
    budget = Budget(nodes="3", schedule=text, duration=3600.0)

    assert allowed((budget,), 9, at("2024-01-04T12:30:00")) == 3  # a Thursday, the fourth
    assert allowed((budget,), 9, at("2024-01-05T12:30:00")) == UNBOUNDED


def test_the_smallest_active_budget_for_the_reason_decides() -> None:
    """DIS-52."""
    budgets = (Budget(nodes="7"), Budget(nodes="2", reasons=("Drifted",)), Budget(nodes="1", reasons=("Empty",)))
    verdict = limit_for(judge_budgets(budgets, NOW), "Drifted", 10)
    assert (verdict.allowed, verdict.binding) == (2, budgets[1])


def test_without_a_budget_for_the_reason_there_is_no_bound() -> None:
    """DIS-52."""
    assert allowed((Budget(nodes="0", reasons=("Empty",)),), 10) == UNBOUNDED


def test_a_budget_for_repair_limits_nothing_else() -> None:
    """DIS-52: repair is no method of disruption here."""
    budgets = (Budget(nodes="50%"), Budget(nodes="0", reasons=("Unhealthy",)))
    assert [allowed(budgets, 10, reason=reason) for reason in ("Drifted", "Empty", "Underutilized")] == [5, 5, 5]


def test_an_empty_list_of_reasons_applies_to_none() -> None:
    """DIS-52, DIQ-13."""
    assert allowed((Budget(nodes="0", reasons=()),), 10) == UNBOUNDED


@pytest.mark.parametrize(
    "bad", [Budget(nodes="x"), Budget(nodes="1", schedule="0 0 * * 7", duration=60.0), Budget(nodes="1", duration=60.0)]
)
def test_whatever_is_wrong_with_a_budget_closes_the_pool_for_every_reason(bad: Budget) -> None:
    """DIS-54."""
    budgets = (Budget(nodes="7"), bad)
    assert [allowed(budgets, 10, reason=r) for r in ("Empty", "Drifted", "Underutilized")] == [0, 0, 0]


@pytest.mark.parametrize("nodes", ["x", "9" * 5000, "9" * 5000 + "%"], ids=["word", "digits", "percent"])
def test_the_value_of_a_budget_counts_only_while_the_budget_is_active(nodes: str) -> None:
    """DIS-54: a malformed one closes the pool during its window and is not looked at outside."""
    budgets = (Budget(nodes="7"), Budget(nodes=nodes, schedule="0 3 * * *", duration=3600.0))

    assert allowed(budgets, 10, at("2026-08-20T12:00:00")) == 7
    assert allowed(budgets, 10, at("2026-08-20T03:30:00")) == 0


NINE_TO_FIVE = Budget(nodes="0", schedule="0 9 * * mon-fri", duration=8 * 3600.0)


@pytest.mark.parametrize(
    ("moment", "active"),
    [
        ("2026-08-20T08:59:59", False),
        ("2026-08-20T09:00:00", True),
        ("2026-08-20T16:59:59.999", True),
        ("2026-08-20T17:00:00", False),
        ("2026-08-22T12:00:00", False),
    ],
)
def test_a_window_holds_its_first_instant_and_not_its_last(moment: str, active: bool) -> None:
    """DIS-55."""
    assert judge_budgets((NINE_TO_FIVE,), at(moment))[0].active is active


def test_an_open_window_says_when_it_closes_and_a_closed_one_when_it_opens() -> None:
    """Nothing waits for a poll."""
    inside, outside = at("2026-08-20T12:00:00"), at("2026-08-20T20:00:00")
    verdicts = [judge_budgets((NINE_TO_FIVE,), moment)[0].until for moment in (inside, outside)]
    assert verdicts == [at("2026-08-20T17:00:00"), at("2026-08-21T09:00:00")]


def test_windows_that_overlap_are_one_window() -> None:
    """DIS-55."""
    budget = Budget(nodes="0", schedule="0 9,10 * * *", duration=2 * 3600.0)
    assert judge_budgets((budget,), at("2026-08-20T09:30:00"))[0].until == at("2026-08-20T12:00:00")


def test_either_day_is_enough_when_both_are_restricted() -> None:
    """DIS-56."""
    budget = Budget(nodes="0", schedule="0 0 15 * mon", duration=60.0)
    days = ["2026-08-15T00:00:30", "2026-08-17T00:00:30", "2026-08-18T00:00:30"]
    assert [judge_budgets((budget,), at(day))[0].active for day in days] == [True, True, False]


@pytest.mark.parametrize(("hour", "left"), [("*-5", 5), ("?--1", 5), ("*-5-6/13", 5), ("*-5/2", 9), ("1-2-3", 0)])
def test_what_follows_a_star_is_not_looked_at(hour: str, left: int) -> None:
    """DIS-56: only its step is. Elsewhere a second hyphen is an error, and an error closes the pool (DIS-54)."""
    budgets = (Budget(nodes="9"), Budget(nodes="5", schedule=f"0 {hour} * * *", duration=60.0))

    assert allowed(budgets, 10, at("2026-08-20T13:00:30")) == left


def test_a_date_that_never_comes_is_always_active() -> None:
    """DIQ-20."""
    assert judge_budgets((Budget(nodes="0", schedule="0 0 30 2 *", duration=60.0),), NOW)[0].active


def test_nodes_that_are_leaving_or_not_ready_are_subtracted_once_each() -> None:
    """DIS-51, DIT-11, DIT-12."""
    not_ready = {"conditions": (condition("Ready", status="False"),)}
    pairs = [a_pair(f"n{i}") for i in range(8)]
    pairs.append(a_pair("both", node=not_ready, claim={"deleting_since": NOW}))
    pairs.append(a_pair("unready", node=not_ready))
    found = allowances(a_world(pairs, pools=[a_pool(budgets=(Budget(nodes="50%"),))]), DisruptionSettings())
    assert [found["a", r].left for r in ("Empty", "Drifted", "Underutilized")] == [3, 3, 3]


def test_launching_terminated_and_foreign_nodes_do_not_count_for_a_budget() -> None:
    """DIS-50, DIT-7 to DIT-9."""
    launching = a_pair("new")
    del_label = {k: v for k, v in launching.node.labels.items() if k != names.INITIALIZED}
    pairs = [a_pair(f"n{i}") for i in range(4)]
    pairs.append(a_pair("new", node={"labels": del_label}))
    pairs.append(a_pair("gone", also=[names.INSTANCE_TERMINATING]))
    pairs.append(a_pair("foreign", claim={"node_class": a_pool().template.node_class}))
    world = a_world(pairs, supported_node_classes=frozenset({("other", "Kind")}))
    assert allowances(world, DisruptionSettings()) == {}
    world = a_world(pairs, pools=[a_pool(budgets=(Budget(nodes="100%"),))])
    assert allowances(world, DisruptionSettings())["a", "Empty"].allowed == 5


def test_a_node_of_another_provider_under_a_pools_label_does_not_count() -> None:
    """DIS-50, DIT-7."""
    other = NodeClassRef(group="other.cloud", kind="OtherClass", name="default")
    pairs = [a_pair("n1"), a_pair("foreign", claim={"node_class": other})]
    world = a_world(pairs, supported_node_classes=frozenset({(CLASS.group, CLASS.kind)}))
    assert allowances(world, DisruptionSettings())["a", "Empty"].nodes == 1


def test_a_node_that_a_plan_has_taken_counts_as_leaving() -> None:
    """No mark of ours exceeds the allowance: taken is as good as marked."""
    pairs = [a_pair("n1"), a_pair("n2"), a_pair("n3", claim={"annotations": {names.OWNER: "c/disrupt/x"}})]
    world = a_world(pairs, pools=[a_pool(budgets=(Budget(nodes="2"),))], disrupting=frozenset({"claim-n1"}))
    assert allowances(world, DisruptionSettings())["a", "Drifted"].left == 0
