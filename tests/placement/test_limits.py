"""PLC-61, PLC-62, PLC-159: how far a NodePool may still grow."""

from dataclasses import replace

import pytest

from dovetail.model import names
from dovetail.model.values.resources import parse_resources
from tests.placement.builders import a_general_pool, a_joined_pair, a_shape, a_snapshot, a_waiting_pod, near, placed
from worlds.disruption import NOW

APART = a_shape({"app": "x"}, anti_affinity=(near(names.HOSTNAME, app="x"),))
BUSY = a_waiting_pod("p", cpu="6")  # more than any node of these worlds has left


@pytest.mark.parametrize(("limit", "new"), [("6", 0), ("11", 0), ("12", 1)])
def test_nodes_that_are_there_count_with_their_capacity(limit: str, new: int) -> None:
    """PLC-61, PLC-62: a node of 4 cpu is there, and the pod needs a type of 8; the boundary included."""
    pool = a_general_pool(limits=parse_resources({"cpu": limit}))

    assert len(placed(a_snapshot([BUSY], [a_joined_pair("n1")], [pool])).new) == new


@pytest.mark.parametrize(("limit", "new"), [(1, 0), (2, 1)])
def test_nodes_that_are_there_count_as_nodes(limit: int, new: int) -> None:
    """PLC-62: each as one, however large it is."""
    assert len(placed(a_snapshot([BUSY], [a_joined_pair("n1")], [a_general_pool(limits={"nodes": limit})])).new) == new


def test_a_leaving_node_and_the_nodes_of_others_do_not_count() -> None:
    """PLC-62: so that its replacement fits within the limits."""
    node, claim = a_joined_pair("n1")
    leaving = (node, replace(claim, deleting_since=NOW))
    strange = a_joined_pair("n2", labels={names.NODE_POOL: "other"})

    for pair in (leaving, strange):
        assert len(placed(a_snapshot([BUSY], [pair], [a_general_pool(limits={"nodes": 1})])).new) == 1


def test_types_that_are_larger_than_what_is_left_drop_out() -> None:
    """PLC-159: and no type is left of a pool that is beyond its limit in any resource."""

    def types(**limits: str) -> list[str]:
        pool = a_general_pool(limits=parse_resources(limits))
        return [item.name for node in placed(a_snapshot([a_waiting_pod("p")], pools=[pool])).new for item in node.types]

    assert types(cpu="100") == ["small", "medium", "large", "huge"]
    assert types(cpu="8") == ["small", "medium", "large"]
    assert types(cpu="100", memory="8Gi") == ["small"]
    assert types(cpu="1") == []


def test_a_resource_beyond_its_limit_stops_the_pool_although_no_type_has_it() -> None:
    """PLC-159: a node that was taken over has brought more of it than the pool may have."""
    node, claim = a_joined_pair("n1", cpu="1")
    room = {**node.capacity, "example.com/gpu": 2}
    pair = (replace(node, capacity=room), replace(claim, capacity=room))
    pod = a_waiting_pod("p", cpu="2", shape=APART)

    limits = [a_general_pool(limits={"example.com/gpu": most}) for most in (1, 2)]
    assert [len(placed(a_snapshot([pod], [pair], [pool])).new) for pool in limits] == [0, 1]


def test_the_limit_of_one_pool_does_not_stop_another() -> None:
    """PLC-159."""
    full, free = a_general_pool("full", weight=10, limits={"nodes": 0}), a_general_pool("free")

    assert [node.pool for node in placed(a_snapshot([BUSY], pools=[full, free])).new] == ["free"]
