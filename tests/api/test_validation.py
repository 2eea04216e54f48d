"""A broken object gets one clear line that names it and the field, and does not hinder the others."""

from typing import Any

import pytest

from dovetail.api.karpenter.node_claim import NodeClaim
from dovetail.api.karpenter.node_pool import NodePool
from dovetail.api.validation import InvalidObject, parse, refuse_change
from tests.api.manifests import REMOVED, Manifest, a_written_claim, a_written_pool, changed


def _problem_of(raw: Any) -> str:
    with pytest.raises(InvalidObject) as refused:
        parse(NodePool, raw)
    return str(refused.value)


def test_the_error_names_kind_object_field_and_value() -> None:
    pool = changed(a_written_pool(), "spec.disruption.budgets", [{"nodes": "ten"}])

    assert _problem_of(pool) == (
        "NodePool default: spec.disruption.budgets[0].nodes: "
        "String should match pattern '^((100|[0-9]{1,2})%|[0-9]+)$', not 'ten'"
    )


def test_all_problems_stand_in_one_line() -> None:
    pool = changed(changed(a_written_pool(), "spec.weight", 0), "spec.template.spec.nodeClassRef.name", REMOVED)

    assert _problem_of(pool) == (
        "NodePool default: spec.template.spec.nodeClassRef.name: Required value; "
        "spec.weight: Input should be greater than or equal to 1, not 0"
    )


def test_a_map_s_entry_is_named_by_its_key() -> None:
    pool = changed(a_written_pool(), "spec.template.metadata.labels", {"a.example/b": "c d"})

    assert "NodePool default: spec.template.metadata.labels[a.example/b]: " in _problem_of(pool)


def test_a_long_value_is_cut() -> None:
    assert len(_problem_of(changed(a_written_pool(), "spec.disruption.consolidateAfter", "x" * 10_000))) < 300


@pytest.mark.parametrize("raw", [None, 7, "text", [], {}, {"metadata": {}}, {"metadata": {"name": 7}}], ids=str)
def test_what_is_no_object_at_all_still_gets_one_line(raw: Any) -> None:
    line = _problem_of(raw)

    assert line.startswith("NodePool <without a name>: ")
    assert "\n" not in line


def test_another_kind_is_refused() -> None:
    assert "kind: " in _problem_of(a_written_claim())


def test_another_version_is_refused() -> None:
    assert "apiVersion: " in _problem_of(changed(a_written_pool(), "apiVersion", "karpenter.sh/v1beta1"))


@pytest.mark.parametrize(
    ("path", "old", "new", "refusal"),
    [
        ("spec.replicas", None, 3, "spec: Cannot transition NodePool between static (replicas set) and dynamic"),
        ("spec.replicas", 3, None, "spec: Cannot transition NodePool between static (replicas set) and dynamic"),
        (
            "spec.template.spec.nodeClassRef.group",
            "a.example",
            "b.example",
            "spec.template.spec.nodeClassRef: nodeClassRef.group is immutable",
        ),
        (
            "spec.template.spec.nodeClassRef.kind",
            "A",
            "B",
            "spec.template.spec.nodeClassRef: nodeClassRef.kind is immutable",
        ),
    ],
)
def test_a_pool_does_not_change_its_nature(path: str, old: Any, new: Any, refusal: str) -> None:
    """API-13, API-14."""
    with pytest.raises(InvalidObject) as refused:
        refuse_change(
            parse(NodePool, changed(a_written_pool(), path, old)), parse(NodePool, changed(a_written_pool(), path, new))
        )

    assert str(refused.value).startswith(f"NodePool default: {refusal}")


@pytest.mark.parametrize(
    ("path", "value"),
    [("spec.template.spec.nodeClassRef.name", "other"), ("spec.weight", 5), ("spec.limits", {"cpu": "1"})],
)
def test_the_rest_of_a_pool_may_change(path: str, value: Any) -> None:
    refuse_change(parse(NodePool, a_written_pool()), parse(NodePool, changed(a_written_pool(), path, value)))


def _claim_with(path: str, value: Any) -> Manifest:
    return changed(changed(a_written_claim(), "spec.resources", {"requests": {"memory": "50000"}}), path, value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.expireAfter", "1h"),
        ("spec.terminationGracePeriod", "1h"),
        ("spec.nodeClassRef.name", "other"),
        ("spec.resources.requests.memory", "50k"),
        ("spec.taints", []),
    ],
)
def test_nothing_in_a_claims_spec_changes(path: str, value: Any) -> None:
    """API-15, PLM-8: not even the spelling of a quantity."""
    old = parse(NodeClaim, _claim_with("metadata.name", "default"))

    with pytest.raises(InvalidObject, match=r"^NodeClaim default: spec: spec is immutable$"):
        refuse_change(old, parse(NodeClaim, _claim_with(path, value)))


def test_metadata_and_status_of_a_claim_change() -> None:
    old = parse(NodeClaim, a_written_claim())
    new = changed(changed(a_written_claim(), "metadata.annotations", {"a": "b"}), "status.providerID", "x:///y/z")

    refuse_change(old, parse(NodeClaim, new))
