"""A week in fast motion under both policies: the policy cost is cheaper over several weeks and disturbs no more in any,
and what `savings` says is held against the cloud's bill of the same week without any move."""

from dataclasses import replace

import pytest

from research.days.__main__ import played, table, totals
from research.days.books import Week, compared
from research.days.play import Course

WEEK = Course(cost=False, hours=168, nodes=8, steps=100, every=20)


PLAYS_APART = 0.02  # of the dollars: two plays of one week differ by that, where ties alone fall otherwise


@pytest.mark.soak
def test_weeks_under_the_policy_cost_are_cheaper_together_and_none_is_disturbed_more() -> None:
    dollars = []
    for seed in (1, 2, 3):
        recorded = {name: played(replace(WEEK, cost=name == "cost", seed=seed)) for name in ("default", "cost")}
        print("\n".join([f"seed {seed}", *table(recorded)]))
        plain, cost = (totals(recorded[name]) for name in ("default", "cost"))

        dollars.append(cost["dollars"] / plain["dollars"])
        assert cost["moved"] <= plain["moved"]
        assert cost["unready_seconds"] <= plain["unready_seconds"]
        assert cost["undone"] == 0
        assert sum(cost["steps"].values()) > 50

    assert max(dollars) < 1 + PLAYS_APART
    assert sum(dollars) / len(dollars) < 1 - PLAYS_APART


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("policy", ["default", "cost"])
def test_a_week_s_savings_are_those_of_the_cloud_s_bills(policy: str, seed: int) -> None:
    """The bill is the cloud's to the cent. The time without moves as the record has it lies between a fifth below and a
    tenth above what it cost (decision 259), which is itself known to some percent alone."""
    week = replace(WEEK, cost=policy == "cost", steps=30, seed=seed)
    found = compared(Week(course=week, interrupted=0.002), ties=2)
    print(f"\n{found.text}")

    assert found.answer.total.bill == pytest.approx(found.bill)
    assert found.answer.total.undone > 0 and found.interrupted > 0
    assert len({found.without, *found.others}) > 1
    assert -0.2 < found.beside_bill < 0.1
