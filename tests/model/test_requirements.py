"""Another name of a label means the label (PLC-33, API-22, AWS-4)."""

import pytest

from dovetail.model.scheduling.requirements import requirement


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
        ("topology.ebs.csi.aws.com/zone", "topology.kubernetes.io/zone"),
        ("kubernetes.io/arch", "kubernetes.io/arch"),
    ],
)
def test_another_name_means_the_label(old: str, new: str) -> None:
    assert requirement(old, "In", ("a",)) == requirement(new, "In", ("a",))
    assert requirement(old, "In", ("a",)).key == new
