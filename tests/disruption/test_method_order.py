"""DIS-2, DIS-42, DIS-84, DIS-110, DIS-126, DIT-99, DIT-102: what a whole decision comes to, and what it says."""

from collections.abc import Iterable
from typing import Literal

import pytest

from dovetail.disruption.choose import decide
from dovetail.disruption.methods.emptiness import by_ratio
from dovetail.disruption.rounds import Round, never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.pods import Expression, Pod
from dovetail.model.snapshot import Snapshot
from worlds.disruption import NOW, ON_DEMAND_ONLY, Pair, a_pair, a_pod, a_pool, a_world, condition


def _decided(world: Snapshot) -> tuple[set[str], list[str]]:
    """The methods of the plan, and the nodes that leave."""
    plan = decide(world, DisruptionSettings(), never).choice
    assert isinstance(plan, DisruptionPlan), plan
    return {c.method for c in plan.commands}, sorted(t.node for c in plan.commands for t in c.targets)


def _drifted(name: str, pool: str) -> Pair:
    return a_pair(name, pool=pool, also=[condition(names.DRIFTED, changed=NOW - 60)])


def _busy(pairs: Iterable[Pair]) -> list[Pod]:
    return [a_pod(pair.node.name) for pair in pairs]


def test_static_pools_drift_before_others() -> None:
    """DIS-2: also where the name of the other pool, and its drift, come first."""
    pairs = [_drifted("n1", "a"), _drifted("n2", "static")]
    pools = [a_pool(), a_pool("static", replicas=1)]

    assert _decided(a_world(pairs, _busy(pairs), pools)) == ({"staticDrift"}, ["n2"])


def test_several_nodes_are_consolidated_together_before_one_is_alone() -> None:
    """DIS-2: each of them could leave alone too."""
    pairs = [a_pair(f"n{i}", "m8") for i in range(3)]

    assert _decided(a_world(pairs, _busy(pairs))) == ({"multi"}, ["n0", "n1", "n2"])


def test_a_simulation_looks_at_every_pod_that_would_have_to_move() -> None:
    """DIS-42: judging a node ends at its first protected pod, which the grace period of its claim waives."""
    pair = a_pair("n1", also=[condition(names.DRIFTED, changed=NOW - 60)], claim={"termination_grace": 60.0})
    pods = [
        a_pod("n1", name="a-held", do_not_disrupt="2h"),
        a_pod("n1", name="b-over", do_not_disrupt="5m"),
        a_pod("n1", name="c-on-each", owner="DaemonSet", do_not_disrupt="5m"),
    ]

    notices = decide(a_world([pair], pods), DisruptionSettings(), never).notices

    assert sorted({(n.name, n.reason) for n in notices if n.kind == "Pod"}) == [
        ("a-held", "DoNotDisruptUntil"),
        ("b-over", "DoNotDisruptGracePeriodElapsed"),
    ]


@pytest.mark.parametrize(("policy", "goes"), [("Strict", False), ("BestEffort", True)])
def test_a_minimum_that_no_replacement_meets_holds_drift_unless_the_policy_is_best_effort(
    policy: Literal["Strict", "BestEffort"], goes: bool
) -> None:
    """DIS-84."""
    nine = (*ON_DEMAND_ONLY, Expression(key=names.INSTANCE_TYPE, operator="Exists", min_values=9))
    pairs = [_drifted("n1", "a")]
    world = a_world(pairs, _busy(pairs), [a_pool(requirements=nine)])

    choice = decide(world, DisruptionSettings(min_values_policy=policy), never).choice

    assert isinstance(choice, DisruptionPlan) is goes


def test_nothing_is_merged_into_a_type_whose_price_is_not_known_where_it_runs() -> None:
    """DIS-110: a node of the type of the replacement stands in a zone where the type is not sold."""
    pairs = [a_pair("n1", "m4"), a_pair("n2", "m2", zone="z9")]
    pods = [
        a_pod(name, "500m", shape={"node_selector": ((names.CAPACITY_TYPE, "on-demand"),)}) for name in ("n1", "n2")
    ]

    assert _decided(a_world(pairs, pods))[0] == {"single"}


def test_a_search_among_several_nodes_is_one_move_of_each_pool() -> None:
    """DIS-126."""
    pairs = [a_pair(f"n{i}", "m8") for i in range(3)]

    moves = decide(a_world(pairs, _busy(pairs)), DisruptionSettings(), never).moves

    assert [(move.pool, move.approved) for move in moves] == [("a", True)]


def test_how_much_of_its_life_a_node_has_left_does_not_move_it_in_the_order() -> None:
    """DIT-99."""
    old, young = (
        a_pair(name, claim={"created": NOW - age, "expire_after": 86_400.0})
        for name, age in (("n2", 80_000.0), ("n1", 100.0))
    )
    pairs = [old, young]
    candidates = Round(a_world(pairs, _busy(pairs)), DisruptionSettings()).screening.graceful

    assert [candidate.name for candidate in by_ratio(candidates)] == ["n1", "n2"]


def test_a_node_that_was_launched_for_pods_which_are_still_on_their_way_is_no_candidate() -> None:
    """DIT-102: the pods run on a node that is leaving."""
    leaving = a_pair("old", claim={"deleting_since": NOW - 1.0})
    pod = a_pod("old")
    made_for = {names.PLAN: "p/0", names.PLANNED_PODS: pod.uid}
    fresh = a_pair("new", claim={"annotations": made_for, "created": NOW - 60.0})

    def candidates(*pods: Pod) -> list[str]:
        world = a_world([leaving, fresh], pods)
        return [each.name for each in Round(world, DisruptionSettings()).screening.graceful]

    assert (candidates(pod), candidates()) == ([], ["new"])
