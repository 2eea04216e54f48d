"""LIF-70 and LIF-76: which objects lack the label of their class, and which nodes are smaller than what was bought."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.lifecycle.node_checks import missing_class_labels, shape_issues
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.snapshot import Snapshot
from tests.lifecycle.objects import a_joined_claim, a_joined_node
from worlds.disruption import EC2_CLASS, a_claim

LABEL = "karpenter.k8s.aws/ec2nodeclass"
FOREIGN = replace(EC2_CLASS, group="other.cloud")


def unlabelled(*objects: NodeClaim | Node) -> list[tuple[str, str]]:
    """Kind and name of what lacks its label in a cluster of these objects."""
    world = Snapshot(
        now=2000.0,
        claims={one.name: one for one in objects if isinstance(one, NodeClaim)},
        nodes={one.name: one for one in objects if isinstance(one, Node)},
        supported_node_classes=frozenset({(EC2_CLASS.group, EC2_CLASS.kind)}),
    )
    return [(missing.kind, missing.name) for missing in missing_class_labels(world)]


def test_what_has_its_label_is_not_named() -> None:
    """LIF-70: each object is judged by its own labels, and a label that says another class is left as it is."""
    labelled = a_joined_node(labels={LABEL: "another"})

    assert unlabelled(a_joined_claim(), labelled) == []
    assert unlabelled(a_joined_claim(), a_joined_node()) == [("Node", "node-1")]
    assert unlabelled(a_joined_claim(labels={}), labelled) == [("NodeClaim", "pool-1")]


def test_objects_of_another_provider_get_no_label() -> None:
    """LIF-70, BEH-84: neither the claim nor its node."""
    assert unlabelled(a_joined_claim(labels={}, node_class=FOREIGN), a_joined_node()) == []


def test_a_node_gets_a_label_only_from_one_claim_of_ours() -> None:
    """LIF-70: no claim and two claims say nothing about a node; a claim of another provider is not counted."""
    ours = a_joined_claim("ours")

    assert unlabelled(a_joined_node()) == []
    assert unlabelled(ours, a_joined_claim("twin"), a_joined_node()) == []
    assert unlabelled(ours, a_joined_claim("theirs", node_class=FOREIGN), a_joined_node()) == [("Node", "node-1")]


@pytest.mark.parametrize(
    ("claim", "issues"),
    [
        ({}, 1),
        ({"requests": {"memory": 0}}, 0),
        ({"requests": {}}, 0),
        ({"capacity": {}}, 0),
        ({"capacity": {"memory": 0}}, 0),
        ({"deleting_since": 1900.0}, 0),
        ({"conditions": ()}, 0),
    ],
)
def test_a_node_is_compared_only_in_what_was_asked_for_and_bought(claim: dict[str, Any], issues: int) -> None:
    """LIF-76: a claim that is leaving or not initialised is not judged at all."""
    given = {"requests": {"memory": 1}, "capacity": {"memory": 1000}, **claim}

    assert len(shape_issues(a_joined_claim(**given), a_joined_node(capacity={"memory": 899}))) == issues


def test_nine_tenths_are_enough_and_nothing_at_all_is_an_issue() -> None:
    """LIF-76: the boundary; a resource that the node does not report counts as none."""
    claim = a_joined_claim(requests={"memory": 1}, capacity={"memory": 1000})

    assert shape_issues(claim, a_joined_node(capacity={"memory": 900})) == ()
    assert shape_issues(claim, a_joined_node(capacity={})) == (
        "expected 1000 of resource memory, but found 0 (0.0% of expected)",
    )


def test_a_claim_that_is_still_launched_has_its_label_put_back() -> None:
    """LIF-70, PLM-2: whatever the claim's conditions say."""
    assert unlabelled(a_claim(labels={names.NODE_POOL: "pool"})) == [("NodeClaim", "pool-1")]
