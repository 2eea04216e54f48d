"""How large a node is taken to be: before it is initialised (PLC-63), and what is left of a type (PLC-116)."""

import pytest

from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pools import InstanceType, Offering
from dovetail.model.snapshot import Snapshot
from dovetail.placement.facts.cluster_nodes import ClusterNode, cluster_nodes
from dovetail.placement.facts.type_table import allocatable
from tests.lifecycle.objects import a_joined_claim, a_joined_node

LAUNCHED = {"cpu": 4000, "memory": 16000, "gpu": 1}


def joined(node: Node, claim: NodeClaim) -> ClusterNode:
    [found] = cluster_nodes(Snapshot(now=1000.0, nodes={node.name: node}, claims={claim.name: claim}))
    return found


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"karpenter.sh/registered": "true"}, {"cpu": 3900, "memory": 16000, "gpu": 1}),
        ({"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}, {"cpu": 3900, "memory": 0}),
    ],
    ids=["joining", "initialised"],
)
def test_what_a_joining_node_does_not_report_yet_is_what_was_launched(
    labels: dict[str, str], expected: dict[str, int]
) -> None:
    """Lifecycle PLC-7: a zero that the kubelet reports, and a resource that it does not name yet."""
    claim = a_joined_claim(capacity=LAUNCHED, allocatable=LAUNCHED)
    node = a_joined_node(labels=labels, capacity={"cpu": 3900, "memory": 0}, allocatable={"cpu": 3900, "memory": 0})

    found = joined(node, claim)

    assert (found.allocatable, found.capacity) == (expected, expected)


def a_type(capacity: dict[str, int], overhead: dict[str, int]) -> InstanceType:
    return InstanceType(name="t", requirements=(), offerings=(), capacity=capacity, overhead=overhead)


def test_huge_pages_come_out_of_memory_and_never_below_zero() -> None:
    """CLD-13, BEH-114: only that last step stops at zero."""
    kept = {"cpu": 100, "memory": 10}

    some = allocatable(a_type({"cpu": 1000, "memory": 100, "hugepages-2Mi": 30}, kept))
    most = allocatable(a_type({"cpu": 50, "memory": 100, "hugepages-2Mi": 80, "hugepages-1Gi": 80}, kept))

    assert some == {"cpu": 900, "memory": 60, "hugepages-2Mi": 30}
    assert most == {"cpu": -50, "memory": 0, "hugepages-2Mi": 80, "hugepages-1Gi": 80}


def test_an_offering_may_have_a_capacity_and_an_overhead_of_its_own() -> None:
    """CLD-12, CLD-13: merged over the type's by name."""
    offering = Offering(
        requirements=(),
        price=1.0,
        available=True,
        capacity_override={"memory": 200},
        overhead_override={"cpu": 1},
    )

    room = allocatable(a_type({"cpu": 1000, "memory": 100}, {"cpu": 100, "memory": 10}), offering)

    assert room == {"cpu": 999, "memory": 190}
