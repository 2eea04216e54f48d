"""What is decided otherwise than by Karpenter, on the clusters on which its own answer was recorded.

The recorded answers are those of the defects (`test_recorded_results_agree[placement_nondeterministic]` compares them
under Karpenter's profile); here the same clusters are judged as Dovetail judges them.
"""

from functools import cache
from typing import Any

import pytest

from acceptance.placement_worlds import snapshot_of
from acceptance.vectors.__main__ import read_cases
from dovetail.model import names
from dovetail.model.places.placements import Placement
from dovetail.model.pods import Expression
from dovetail.model.scheduling.requirements import Requirement, requirement
from dovetail.placement.answer.finish import concrete_value
from dovetail.placement.place_pods import Index, place
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import a_general_pool, a_shape, a_snapshot, a_waiting_pod, groups, near, placed
from tests.recorded import RESULTS


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """The clusters by what their names say first."""
    return {case["id"]: case["input"] for case in read_cases(RESULTS / "placement_nondeterministic.jsonl.gz")}


def answer(case: str) -> Placement:
    """Dovetail's answer for a recorded cluster."""
    return place(Index(snapshot_of(recorded()[case]), PlacementSettings()))


def values(placement: Placement, pod: str, key: str) -> list[str]:
    """What the new node of a pod may have for a label."""
    (node,) = (node for node in placement.new if pod in {each.name for each in node.pods})
    return sorted(node.requirements[key].values)


def test_a_spread_is_not_shared_with_one_that_differs_in_the_value_of_a_selector() -> None:
    """PLC-169, PLQ-2: a pod that alone is always placed on-demand is placed so beside another such pod too."""
    assert values(answer("nd-001"), "pB", names.CAPACITY_TYPE) == ["on-demand"]


def test_two_spreads_that_differ_in_min_domains_stay_apart() -> None:
    """PLC-169, PLQ-3."""
    assert answer("nd-012").refused == ()


def test_a_value_that_a_pool_excludes_is_no_domain() -> None:
    """PLC-166, PLQ-4: upstream waits for a domain that can never be."""
    assert answer("nd-004").refused == ()


def test_the_first_of_a_self_affine_group_gets_one_zone() -> None:
    """PLC-179, PLQ-6: upstream may leave two open."""
    assert values(answer("nd-014"), "p", names.ZONE) == ["z1"]


def test_a_daemon_with_several_terms_counts_in_every_pool() -> None:
    """PLC-182b, PLQ-7: upstream forgets a term once a pool has not matched it."""
    assert [node.requests["pods"] for node in answer("nd-003").new] == [2, 2]


def test_two_spreads_on_one_key_agree_on_a_domain() -> None:
    """PLC-174, PLQ-8."""
    assert values(answer("nd-005"), "p", names.ZONE) == ["z2"]


def test_a_group_that_is_first_seen_after_a_relaxation_counts_what_was_placed_before() -> None:
    """PLC-181b, PLQ-26: three pods in z1, so the next may not go there."""
    assert values(answer("nd-006"), "p", names.ZONE) == ["z2"]


def test_of_equal_domains_the_first_by_name_is_taken() -> None:
    """PLC-177, PLQ-10: upstream picks at random."""
    assert values(answer("nd-013"), "p", names.ZONE) == ["z1"]


@pytest.mark.parametrize(
    ("item", "value"),
    [
        (requirement("team", "In", ("b", "a")), "a"),
        (requirement("team", "Exists"), "0"),
        (requirement("team", "NotIn", ("0", "1")), "2"),
        (Requirement(key="team", complement=True, values=frozenset(), gte=7), "7"),
        (requirement("team", "DoesNotExist"), ""),
    ],
)
def test_a_label_gets_the_first_value_or_the_smallest_number(item: Requirement, value: str) -> None:
    """PLC-48, PLC-197, PLQ-10: upstream draws a number."""
    assert concrete_value(item) == value


def test_each_proposed_node_says_for_itself_whether_its_minimum_was_lowered() -> None:
    """PLC-125: upstream says of all proposed nodes of a pool what is true of the last."""
    pool = a_general_pool(requirements=(Expression(key=names.INSTANCE_TYPE, operator="Exists", min_values=3),))
    relaxed = a_waiting_pod("relaxed", cpu="14", shape=a_shape({"app": "x"}))
    other = a_waiting_pod("other", cpu="1", shape=a_shape(anti_affinity=(near(names.HOSTNAME, app="x"),)))
    settings = PlacementSettings(min_values_policy="BestEffort")

    found = placed(a_snapshot([relaxed, other], pools=[pool]), settings)

    marks = {node.pods[0].name: node.annotations[names.MIN_VALUES_RELAXED] for node in found.new}
    assert (groups(found), marks) == ([["other"], ["relaxed"]], {"relaxed": "true", "other": "false"})
