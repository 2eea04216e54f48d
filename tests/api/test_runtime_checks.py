"""What the API server lets through and the runtime checks do not (API-18, API-19, API-22, API-25; BEH-95)."""

from typing import Any

import pytest

from dovetail.api.karpenter.node_overlay import NodeOverlay
from dovetail.api.karpenter.node_pool import NodePool
from dovetail.api.runtime_checks import is_restricted, node_overlay_faults, node_pool_faults
from dovetail.api.validation import parse
from tests.api.case import one
from tests.api.manifests import a_pool, an_overlay, changed

LABELS, TEMPLATE = "spec.template.metadata.labels", "spec.template.spec"


def _pool_faults(path: str, value: Any) -> tuple[str, ...]:
    return node_pool_faults(parse(NodePool, changed(a_pool(), path, value)).spec)


def _capacity_types(*values: str, **more: Any) -> list[dict[str, Any]]:
    return one(key="karpenter.sh/capacity-type", operator="In", values=list(values), **more)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (LABELS, {"a.example/b": "c", "d": ""}),
        (f"{TEMPLATE}.taints", [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]),
        (f"{TEMPLATE}.requirements", _capacity_types("spot", "on-demand")),
        (f"{TEMPLATE}.requirements", _capacity_types("spot", "cheap")),
        (f"{TEMPLATE}.requirements", _capacity_types("spot", "reserved", minValues=2)),
        (f"{TEMPLATE}.requirements", one(key="beta.kubernetes.io/arch", operator="In", values=["amd64"])),
        (f"{TEMPLATE}.requirements", one(key="karpenter.k8s.aws/instance-cpu", operator="Gt", values=["3"])),
        (f"{TEMPLATE}.requirements", one(key="a", operator="NotIn", values=[])),
    ],
)
def test_a_good_pool_has_no_faults(path: str, value: Any) -> None:
    assert _pool_faults(path, value) == ()


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (LABELS, {"k" * 64: "v"}, f"labels[{'k' * 64}]: the key is not a qualified name"),
        (LABELS, {"a b": "v"}, "labels[a b]: the key is not a qualified name"),
        (
            f"{TEMPLATE}.taints",
            [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "NoSchedule"}],
            "taints[a]: the taint with effect NoSchedule stands here twice",
        ),
        (
            f"{TEMPLATE}.taints",
            one(key=f"a/{'b' * 64}", effect="NoSchedule"),
            f"taints[a/{'b' * 64}]: the key is not a qualified name",
        ),
        (
            f"{TEMPLATE}.requirements",
            one(key="a", operator="In", values=["b c"]),
            "requirements[a]: 'b c' is not a label value",
        ),
        (
            f"{TEMPLATE}.requirements",
            one(key="a", operator="In", values=["b" * 64]),
            f"requirements[a]: {'b' * 64!r} is not a label value",
        ),
        (
            f"{TEMPLATE}.requirements",
            _capacity_types("cheap"),
            "requirements[karpenter.sh/capacity-type]: none of on-demand, reserved, spot is among the values",
        ),
        (
            f"{TEMPLATE}.requirements",
            _capacity_types("spot", "cheap", minValues=2),
            "requirements[karpenter.sh/capacity-type]: minValues 2 is more than there are known capacity types",
        ),
    ],
)
def test_a_faulty_pool_says_what_and_where(path: str, value: Any, fault: str) -> None:
    assert _pool_faults(path, value) == (fault,)


def test_one_taint_in_both_lists_is_a_fault() -> None:
    twice = one(key="a", effect="NoSchedule")
    pool = changed(changed(a_pool(), f"{TEMPLATE}.taints", twice), f"{TEMPLATE}.startupTaints", twice)

    faults = node_pool_faults(parse(NodePool, pool).spec)

    assert faults == ("startupTaints[a]: the taint with effect NoSchedule stands here twice",)


def test_every_fault_of_a_pool_is_listed() -> None:
    requirements = [{"key": "a", "operator": "In", "values": ["b c"]}, *_capacity_types("cheap")]

    assert len(_pool_faults(f"{TEMPLATE}.requirements", requirements)) == 2


@pytest.mark.parametrize(
    ("key", "restricted"),
    [
        ("karpenter.sh/capacity-type", False),
        ("karpenter.sh/nodepool", False),
        ("karpenter.sh/registered", True),
        ("x.karpenter.sh/y", True),
        ("foo-karpenter.sh/y", False),
        ("karpenter.k8s.aws/instance-family", False),
        ("karpenter.k8s.aws/other", True),
        ("kubernetes.io/hostname", True),
        ("kubernetes.io/arch", False),
        ("foo.kubernetes.io/bar", False),
        ("kops.k8s.io/gpu", False),
        ("karpenter.sh", False),
    ],
)
def test_which_labels_are_restricted(key: str, restricted: bool) -> None:
    """API-18."""
    assert is_restricted(key) is restricted


def test_a_good_overlay_has_no_faults() -> None:
    overlay = changed(an_overlay(), "spec.requirements", one(key="a", operator="NotIn", values=["b"]))

    assert node_overlay_faults(parse(NodeOverlay, overlay).spec) == ()


def test_an_overlay_s_values_are_checked_too() -> None:
    overlay = changed(an_overlay(), "spec.requirements", one(key="a", operator="NotIn", values=["b c"]))

    assert node_overlay_faults(parse(NodeOverlay, overlay).spec) == ("requirements[a]: 'b c' is not a label value",)
