"""A week in fast motion under both policies: the policy cost is cheaper and disturbs no more."""

from dataclasses import replace

import pytest

from acceptance.bench.day.__main__ import played, table, totals
from acceptance.bench.day.play import Course

WEEK = Course(cost=False, hours=168, nodes=8, steps=100, every=20)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_week_under_the_policy_cost_is_cheaper_and_disturbs_no_more(seed: int) -> None:
    recorded = {name: played(replace(WEEK, cost=name == "cost", seed=seed)) for name in ("default", "cost")}
    print("\n".join(table(recorded)))
    plain, cost = (totals(recorded[name]) for name in ("default", "cost"))

    assert cost["dollars"] < plain["dollars"]
    assert cost["moved"] <= plain["moved"]
    assert cost["unready_seconds"] <= plain["unready_seconds"]
    assert cost["undone"] == 0
    assert sum(cost["steps"].values()) > 50
