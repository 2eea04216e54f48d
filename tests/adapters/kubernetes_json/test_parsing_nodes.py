"""Nodes, NodeClaims and NodePools as the API writes them."""

from typing import Any

import pytest

from dovetail.adapters.kubernetes_json.parsing.class_hashes import ec2_node_class_hash
from dovetail.adapters.kubernetes_json.parsing.errors import UnreadableObject
from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node, parse_node_claim
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.model.nodes import Node, NodeClaim, NodeClassRef
from dovetail.model.pools import Budget, DisruptionPolicy
from worlds.manifests import pool_manifest


def test_what_a_pool_does_not_say_is_what_the_api_defaults_to() -> None:
    """DIS-193."""
    assert parse_node_pool(pool_manifest()).disruption == DisruptionPolicy(
        policy="WhenEmptyOrUnderutilized", consolidate_after=0.0, budgets=(Budget(nodes="10%"),)
    )


def test_never_is_no_duration() -> None:
    """DIS-194."""
    pool = parse_node_pool(pool_manifest(disruption={"consolidateAfter": "Never"}))
    claim = parse_node_claim({"metadata": {"name": "c"}, "spec": {"expireAfter": "Never"}})
    assert (pool.disruption.consolidate_after, claim.expire_after) == (None, None)


@pytest.mark.parametrize(
    "budget",
    [
        {"nodes": 5},
        {"nodes": "1", "schedule": 5},
        {"nodes": "1", "reasons": "Empty"},
        {"reasons": [5]},
        {"duration": 9},
    ],
)
def test_a_budget_of_other_types_than_the_api_has_is_unreadable(budget: dict[str, Any]) -> None:
    """DIS-49: a text has letters, which are no reasons."""
    with pytest.raises(UnreadableObject) as caught:
        parse_node_pool(pool_manifest(disruption={"budgets": [budget]}))

    assert "spec.disruption" in str(caught.value)


def test_an_empty_list_of_reasons_is_not_an_absent_one() -> None:
    """DIS-52."""
    budgets = [{"nodes": "1", "reasons": []}, {"nodes": "1"}]
    assert [b.reasons for b in parse_node_pool(pool_manifest(disruption={"budgets": budgets})).disruption.budgets] == [
        (),
        None,
    ]


def test_an_object_that_says_nothing_is_read_in_every_field() -> None:
    bare = {"metadata": {"name": "n"}}
    nothing = NodeClassRef(group="", kind="", name="")

    assert parse_node(bare) == Node(name="n", labels={}, capacity={}, allocatable={})
    assert parse_node_claim(bare) == NodeClaim(
        name="n", labels={}, node_class=nothing, requests={}, capacity={}, allocatable={}
    )


def test_a_pool_carries_the_hash_of_its_template() -> None:
    """NPL-1."""
    assert (
        parse_node_pool(pool_manifest(limits={"cpu": "1"})).hash == parse_node_pool(pool_manifest(weight=7)).hash != ""
    )


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "much"}}}, "status.capacity"),
        ({"metadata": {"name": "n", "creationTimestamp": "noon"}}, "metadata"),
        ({"metadata": {"name": ""}}, "metadata"),
        ({}, "metadata"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_field(raw: dict[str, Any], field: str) -> None:
    with pytest.raises(UnreadableObject) as caught:
        parse_node(raw)
    assert (caught.value.kind, caught.value.field) == ("Node", field)


def test_a_claim_that_is_not_launched_has_no_size() -> None:
    claim = parse_node_claim({"metadata": {"name": "c"}, "spec": {"terminationGracePeriod": "1m30s"}})
    assert (claim.provider_id, dict(claim.capacity), claim.termination_grace, claim.last_pod_event) == (
        "",
        {},
        90.0,
        None,
    )


def test_the_selectors_of_a_class_are_not_part_of_its_hash() -> None:
    """AWS-116."""
    spec = {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}]}
    other = {**spec, "subnetSelectorTerms": [{"id": "subnet-1"}], "amiFamily": "AL2023", "ipPrefixCount": 1}
    assert ec2_node_class_hash(spec) == ec2_node_class_hash(other)
    assert ec2_node_class_hash({**spec, "role": "s"}) != ec2_node_class_hash(spec)
