"""The last line of `dovetail plan`: what consolidation would still save, how many pods move, what is held."""

from pathlib import Path
from typing import Any

import pytest

from dovetail.answers.plan.left import LeftAnswer, left_text
from dovetail.answers.plan.plan import plan_now
from dovetail.answers.plan.plan_text import plan_text
from dovetail.answers.wording import HOURS_IN_MONTH
from tests.cli.test_explain_node import OPEN, a_bound_pod, a_managed_node
from tests.cli.worlds import a_ready_pool, a_world, looked


async def the_plan(folder: Path, disruption: dict[str, Any]) -> tuple[LeftAnswer, str, float]:
    """What is left, the last line, and the dollars an hour of the next steps."""
    world = a_world(folder, a_ready_pool(disruption=disruption), *a_managed_node(), a_bound_pod("web-1", "n1"))
    answer = plan_now(await looked(world))
    assert answer.left is not None
    return answer.left, plan_text(answer).splitlines()[-1], sum(each.savings for each in answer.disruptions)


async def test_a_plan_ends_with_what_is_left_to_save(tmp_path: Path) -> None:
    left, line, next_step = await the_plan(tmp_path, OPEN)

    assert left.month == round(next_step * HOURS_IN_MONTH, 2) > 0  # there is one node, which becomes a cheaper one
    assert (left.nodes, left.pods, left.held, left.at_least) == (1, 1, 0.0, False)
    assert line == f"Consolidation: ${left.month:,.0f} a month left; 1 pod would move"


async def test_a_plan_says_what_holds_it(tmp_path: Path) -> None:
    left, line, next_step = await the_plan(tmp_path, {**OPEN, "budgets": [{"nodes": "0"}]})

    assert next_step == 0
    assert (left.held, left.held_pods, left.held_by) == (left.month, 1, ("budgets",))
    assert line == f"Consolidation: ${left.month:,.0f} a month left; 1 pod would move; all of it held by budgets"


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (LeftAnswer(month=0.0, nodes=0, pods=0), "nothing is left to save"),
        (LeftAnswer(month=0.0, nodes=0, pods=0, at_least=True), "nothing was found to save before time was up"),
        (LeftAnswer(month=0.4, nodes=1, pods=0), "less than $1 a month left; no pod would move"),
        (
            LeftAnswer(month=41_200.0, nodes=9, pods=31, at_least=True),
            "at least $41.2k a month left; 31 pods would move",
        ),
        (
            LeftAnswer(
                month=412.0, nodes=5, pods=31, held=120.0, held_pods=9, held_by=("budgets", "pauses", "windows")
            ),
            "$412 a month left; 31 pods would move; of it $120 held by budgets, pauses and windows",
        ),
    ],
)
def test_each_case_has_its_words(left: LeftAnswer, says: str) -> None:
    assert left_text(left) == f"Consolidation: {says}"
