"""Beside some nodes that stand, a few pods get few nodes; else they get the cheapest ones (decision record 280)."""

import pytest

from dovetail.model import names
from dovetail.model.pods import Expression, Owner
from dovetail.placement.place_pods import Index, place
from dovetail.placement.settings import CostSettings, PlacementSettings
from tests.placement.builders import a_bound_pod, a_general_pool, a_joined_pair, a_snapshot, a_type, a_waiting_pod

COST = PlacementSettings(cost=CostSettings(everywhere=True, steps=60, types=1))
ON_DEMAND = Expression(key=names.CAPACITY_TYPE, operator="In", values=(names.CAPACITY_ON_DEMAND,))


JOB = Owner(api_version="batch/v1", kind="Job", name="j", uid="j", controller=True)


def _made(standing: int, four: float = 0.40, waiting: int = 2, owners: tuple[Owner, ...] = ()) -> int:
    """New nodes for pods of which one fits on a node of two cpus and two on one of four, beside so many full ones."""
    nodes = [a_joined_pair(f"n{number}", cpu="40") for number in range(standing)]
    running = [a_bound_pod(f"b-{node.name}", node.name, cpu="40") for node, _ in nodes]
    pods = [*running, *(a_waiting_pod(f"p{number}", cpu="1.9", owners=owners) for number in range(waiting))]
    types = (a_type("two", "2", 0.17), a_type("four", "4", four))
    placement = place(Index(a_snapshot(pods, nodes, (a_general_pool(requirements=(ON_DEMAND,)),), types), COST))
    assert not placement.refused
    return len(placement.new)


def test_where_no_node_stands_two_cheaper_ones_are_taken() -> None:
    assert _made(standing=0) == 2


def test_beside_nodes_that_stand_one_is_taken_that_costs_a_little_more() -> None:
    assert _made(standing=6) == 1


def test_pods_that_end_by_themselves_get_nodes_that_are_empty_by_then() -> None:
    assert _made(standing=6, owners=(JOB,)) == 2


def test_beside_very_many_the_cheaper_ones_are_taken_again() -> None:
    """Pods that come later find a gap among so many."""
    assert _made(standing=400) == 2


def test_not_at_any_price() -> None:
    """At twice the price of the two."""
    assert _made(standing=6, four=0.70) == 2


@pytest.mark.parametrize(("standing", "waiting"), [(1, 40), (40, 2)])
def test_what_counts_is_how_many_stand_beside_those_that_come(standing: int, waiting: int) -> None:
    assert _made(standing, four=0.38, waiting=waiting) == (waiting if standing < waiting else waiting // 2)
