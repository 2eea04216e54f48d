"""What is filled in where a manifest says nothing, and what is dropped (API-6 to API-8, API-13, AWS-18, AWS-23;
BEH-111)."""

from typing import Any

import pytest

from dovetail.api.aws.ec2_node_class import EC2NodeClass
from dovetail.api.karpenter.node_claim import NodeClaim
from dovetail.api.karpenter.node_overlay import NodeOverlay
from dovetail.api.karpenter.node_pool import NodePool
from dovetail.api.validation import InvalidObject, parse
from tests.api.manifests import a_node_class, a_written_claim, a_written_pool, an_overlay, changed

USUAL_DISRUPTION = {
    "consolidateAfter": "0s",
    "consolidationPolicy": "WhenEmptyOrUnderutilized",
    "budgets": [{"nodes": "10%"}],
}
USUAL_OPTIONS = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 1,
    "httpTokens": "required",
}


def _disruption(given: Any) -> Any:
    pool = parse(NodePool, changed(a_written_pool(), "spec.disruption", given))
    return pool.as_object()["spec"]["disruption"]


def test_a_pool_without_disruption_gets_all_its_defaults() -> None:
    pool = parse(NodePool, a_written_pool())

    assert pool.as_object()["spec"]["disruption"] == USUAL_DISRUPTION


@pytest.mark.parametrize("given", [{}, None, {"consolidateAfter": None, "budgets": None}], ids=str)
def test_an_empty_or_null_disruption_gets_the_same_defaults(given: Any) -> None:
    assert _disruption(given) == USUAL_DISRUPTION


def test_an_empty_list_of_budgets_stays_empty() -> None:
    assert _disruption({"budgets": []}) == {**USUAL_DISRUPTION, "budgets": []}


def test_a_budget_without_nodes_allows_ten_percent() -> None:
    assert _disruption({"budgets": [{"reasons": ["Empty"]}]})["budgets"] == [{"nodes": "10%", "reasons": ["Empty"]}]


def test_pools_and_claims_expire_after_thirty_days() -> None:
    pool = parse(NodePool, a_written_pool())
    claim = parse(NodeClaim, a_written_claim())

    assert (pool.spec.template.spec.expire_after, claim.spec.expire_after) == ("720h", "720h")


@pytest.mark.parametrize("given", [None, {}, {"httpTokens": None}], ids=str)
def test_metadata_options_are_filled_in_field_by_field(given: Any) -> None:
    node_class = parse(EC2NodeClass, changed(a_node_class(), "spec.metadataOptions", given))

    assert node_class.as_object()["spec"]["metadataOptions"] == USUAL_OPTIONS


def test_one_metadata_option_given_leaves_the_others_at_their_defaults() -> None:
    node_class = parse(EC2NodeClass, changed(a_node_class(), "spec.metadataOptions", {"httpTokens": "optional"}))

    assert node_class.as_object()["spec"]["metadataOptions"] == {**USUAL_OPTIONS, "httpTokens": "optional"}


def test_unknown_fields_are_pruned() -> None:
    pool = parse(
        NodePool, changed(changed(a_written_pool(), "spec.colour", "red"), "spec.template.spec.kubelet", {"a": 1})
    )

    assert pool == parse(NodePool, a_written_pool())


def test_a_requirement_of_an_overlay_has_no_min_values() -> None:
    """API-17: an unknown field, not even looked at."""
    wanted = {"key": "a", "operator": "In", "values": ["b"]}
    overlay = parse(NodeOverlay, changed(an_overlay(), "spec.requirements", [{**wanted, "minValues": 51}]))

    assert overlay == parse(NodeOverlay, changed(an_overlay(), "spec.requirements", [wanted]))


def test_a_field_under_its_python_name_is_an_unknown_field() -> None:
    pool = parse(NodePool, changed(a_written_pool(), "spec.template.spec.expire_after", "1h"))

    assert pool.spec.template.spec.expire_after == "720h"


def test_unknown_fields_of_the_kubelet_are_kept() -> None:
    kubelet = {"maxPods": "max_pods - 1", "shutdownGracePeriod": "30s", "deep": {"er": [1, {"a": True}]}}
    node_class = parse(EC2NodeClass, changed(a_node_class(), "spec.kubelet", kubelet))

    assert node_class.as_object()["spec"]["kubelet"] == kubelet


def test_quantities_and_durations_are_kept_as_written() -> None:
    """API-8, PLM-8: an immutable spec that came back in another spelling would be refused as a change."""
    claim = changed(a_written_claim(), "spec.resources", {"requests": {"cpu": 4, "memory": "50000", "a.b/c": "0.50"}})
    claim = changed(changed(claim, "spec.expireAfter", "720h"), "spec.terminationGracePeriod", "90m")

    assert parse(NodeClaim, claim).as_object()["spec"] == claim["spec"]


def test_absent_and_empty_labels_are_distinguished() -> None:
    """NPL-3: the hash of a template differs between the two."""
    absent = parse(NodePool, changed(a_written_pool(), "spec.template.metadata", {}))
    empty = parse(NodePool, changed(a_written_pool(), "spec.template.metadata", {"labels": {}}))

    assert absent.spec.template.metadata is not None
    assert empty.spec.template.metadata is not None
    assert (absent.spec.template.metadata.labels, empty.spec.template.metadata.labels) == (None, {})


@pytest.mark.parametrize("amount", [0.5, True, None, "1\n"])
def test_an_amount_is_a_whole_number_or_text(amount: object) -> None:
    """API-7: a null is dropped, and anything else is refused."""
    pool = changed(a_written_pool(), "spec.limits", {"cpu": amount})

    if amount is None:
        assert parse(NodePool, pool).spec.limits == {}
    else:
        with pytest.raises(InvalidObject):
            parse(NodePool, pool)
