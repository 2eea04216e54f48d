"""Which pods a ReplicaSet that shrinks gives up first: the gate PodDeletionCostManagement (DIQ-36)."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.disruption.deletion_costs import LOWEST, MOST_NODES, deletion_costs
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.pods import Owner, Pod
from dovetail.model.pools import Budget, NodePool
from worlds.disruption import NOW, Pair, a_pair, a_pod, a_pool, a_world, condition

SETTINGS = DisruptionSettings(manages_deletion_costs=True)


def owned(kind: str = "ReplicaSet") -> tuple[Owner, ...]:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return (Owner(api_version=version, kind=kind, name="o", uid="o", controller=True),)


def on(node: str, **changes: Any) -> Pod:
    return replace(a_pod(node, "1"), **{"owners": owned(), **changes})


def costs(pairs: list[Pair], pods: list[Pod], *pools: NodePool) -> dict[str, str | None]:
    """What is due, by node."""
    world = a_world(pairs, pods, pools=list(pools or (a_pool(),)))
    return {each.pod.node_name: each.value for each in deletion_costs(world, SETTINGS)}


def drifted(name: str) -> Pair:
    return a_pair(name, also=[condition(names.DRIFTED)])


def test_drifted_nodes_come_first_and_then_those_that_are_worth_most_for_what_they_disturb() -> None:
    pairs = [a_pair("cheap", "m4"), a_pair("dear", "m16"), drifted("drifted")]

    found = costs(pairs, [on("cheap"), on("dear"), on("drifted")])

    assert found == {"drifted": "-3", "dear": "-2", "cheap": "-1"}


def test_a_node_that_leaves_comes_before_all() -> None:
    leaving = a_pair("leaving")
    leaving = replace(leaving, claim=replace(leaving.claim, deleting_since=NOW - 1))

    assert costs([leaving, a_pair("stays")], [on("leaving"), on("stays")]) == {"leaving": LOWEST, "stays": "-1"}


def test_only_as_many_nodes_as_budgets_let_go_are_ranked() -> None:
    pairs = [a_pair("n1", "m16"), a_pair("n2", "m8"), a_pair("n3", "m4")]
    pool = a_pool(budgets=(Budget(nodes="1"),))

    assert costs(pairs, [on(pair.node.name) for pair in pairs], pool) == {"n1": "-1"}


@pytest.mark.parametrize(
    "beside",
    [
        {"owners": owned("StatefulSet")},
        {"owners": ()},
        {"owners": (replace(owned()[0], controller=False),)},
        {"do_not_disrupt": "true"},
    ],
    ids=["a set with volumes", "nobody's", "held by no controller", "protected"],
)
def test_a_node_that_is_no_candidate_or_holds_a_pod_that_would_not_come_again_carries_no_cost(
    beside: dict[str, Any],
) -> None:
    """What its pods carry is taken away, whoever wrote it: with the gate deletion costs are ours."""
    pods = [on("n1"), on("n1", deletion_cost="5"), on("n1", **beside)]

    assert costs([a_pair("n1")], pods) == {"n1": None}
    assert costs([a_pair("n1")], [on("n1"), on("n1", owners=owned("Job"))]) == {"n1": "-1"}


def test_a_pool_that_is_never_consolidated_ranks_its_drifted_nodes_alone() -> None:
    pairs = [drifted("old"), a_pair("new")]

    assert costs(pairs, [on("old"), on("new")], a_pool(consolidate_after=None)) == {"old": "-1"}


def test_only_pods_of_replica_sets_are_written_and_none_that_is_right_already() -> None:
    pods = [on("n1", deletion_cost="-1"), on("n1", owners=owned("Job"))]

    assert costs([a_pair("n1")], pods) == {}


def test_one_turn_writes_the_pods_of_fifty_nodes() -> None:
    pairs = [a_pair(f"n{number:03}") for number in range(MOST_NODES + 5)]

    assert len(costs(pairs, [on(pair.node.name) for pair in pairs])) == MOST_NODES
