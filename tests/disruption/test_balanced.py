"""The policy Balanced (DIS-120 to DIS-131), on worked numbers."""

import math
from typing import Any

import pytest

from dovetail.disruption.balanced import Scales, Totals
from dovetail.disruption.commands import Command
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.nodes.screening import screen
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from worlds.disruption import a_pair, a_pod, a_pool, a_world


def scales(cost: float, disruption: float) -> Scales:
    """Scales whose pool `a` has these totals."""
    made = Scales(Fleet(a_world(), DisruptionSettings()), ())
    made.__dict__["totals"] = {"a": Totals(cost=cost, disruption=disruption)}
    return made


@pytest.mark.parametrize(
    ("savings", "disruption", "score", "approved"),
    [
        (7.26, 4.0, 2.8125, True),
        (4.84, 5.0, 1.5, True),
        (2.42, 9.0, 0.4167, False),
        (0.0, 3.0, 0.0, False),
        (-1.0, 3.0, 0.0, False),
    ],
)
def test_a_command_is_worth_half_its_disturbance(
    savings: float, disruption: float, score: float, approved: bool
) -> None:
    """DIT-118: the share that it saves by the share that it disturbs."""
    found = scales(58.08, 90.0)._weigh("a", savings, disruption)
    assert (round(found.score, 4), found.is_approved) == (score, approved)


def test_the_threshold_is_inclusive() -> None:
    """DIT-119, DIS-124."""
    assert scales(10.0, 30.0)._weigh("a", 1.0, 6.0).is_approved


def test_no_disturbance_is_infinitely_good_and_no_totals_are_no_good() -> None:
    """DIT-122, DIT-125."""
    assert math.isinf(scales(10.0, 30.0)._weigh("a", 1.0, 0.0).score)
    assert [scales(0.0, 30.0)._weigh("a", 1.0, 1.0).score, scales(1.0, 1.0)._weigh("b", 1.0, 1.0).score] == [0.0, 0.0]


def test_the_text_is_upstreams() -> None:
    """The score is shown in the words of Karpenter (DIS-127)."""
    text = "score 2.81 >= threshold 0.50 (k: 2, savings 12.5%, disruption 4.4%)"
    assert scales(58.08, 90.0)._weigh("a", 7.26, 4.0).text == text
    endless = "score +Inf >= threshold 0.50 (k: 2, savings 12.5%, disruption 0.0%)"
    assert scales(58.08, 90.0)._weigh("a", 7.26, 0.0).text == endless


def a_command(world: Any, names: list[str]) -> tuple[Scales, Command]:
    fleet = Fleet(world, DisruptionSettings())
    candidates = screen(fleet).graceful
    chosen = tuple(c for c in candidates if c.name in names)
    return Scales(fleet, candidates), Command(reason=DisruptionReason.UNDERUTILIZED, candidates=chosen)


def test_deleting_a_uniform_pool_scores_exactly_one() -> None:
    """DIS-131."""
    world = a_world([a_pair("n1"), a_pair("n2")], [a_pod("n1"), a_pod("n2")], pools=[a_pool(policy="Balanced")])
    made, command = a_command(world, ["n1", "n2"])
    assert [s.score for s in made.scores(command)] == [pytest.approx(1.0)]


def test_totals_count_nodes_that_are_no_candidates() -> None:
    """The pool's totals count the node of a protected pod too (DIS-121)."""
    pods = [a_pod("n1"), a_pod("n2", do_not_disrupt="true")]
    made, _ = a_command(a_world([a_pair("n1"), a_pair("n2")], pods, pools=[a_pool(policy="Balanced")]), [])
    assert made.totals["a"] == Totals(cost=0.8, disruption=4.0)


def test_pools_of_other_policies_do_not_vote() -> None:
    """Only the pools with the policy Balanced score a command (DIS-120)."""
    world = a_world([a_pair("n1"), a_pair("n2", pool="b")], pools=[a_pool(policy="Balanced"), a_pool("b")])
    made, command = a_command(world, ["n1", "n2"])
    assert [s.pool for s in made.scores(command)] == ["a"]


@pytest.mark.parametrize(("disruption", "score", "approved"), [(5.0, 1.95, True), (32.0, 0.3047, False)])
def test_a_larger_pool_asks_more_of_a_node_with_many_pods(disruption: float, score: float, approved: bool) -> None:
    """DIT-120."""
    found = scales(58.08, 117.0)._weigh("a", 4.84, disruption)
    assert (round(found.score, 4), found.is_approved) == (score, approved)


@pytest.mark.parametrize("scale", [0.01, 10.0, 1000.0])
def test_a_score_does_not_change_with_the_scale_of_prices(scale: float) -> None:
    """DIT-121."""
    plain, scaled = scales(58.08, 90.0), scales(58.08 * scale, 90.0)
    assert scaled._weigh("a", 7.26 * scale, 4.0).score == pytest.approx(plain._weigh("a", 7.26, 4.0).score)
