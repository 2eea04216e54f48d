"""What the API server lets through and the runtime checks do not (API-18, API-25)."""

import pytest

from dovetail.api.karpenter.node_overlay import NodeOverlay
from dovetail.api.runtime_checks import is_restricted, node_overlay_faults
from dovetail.api.validation import parse
from tests.api.case import one
from tests.api.manifests import an_overlay, changed


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
