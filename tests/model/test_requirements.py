"""Old spellings of keys mean the new ones (PLC-33, API-22)."""

import pytest

from dovetail.model.requirements import requirement


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
        ("kubernetes.io/arch", "kubernetes.io/arch"),
    ],
)
def test_an_old_key_means_the_new_one(old: str, new: str) -> None:
    assert requirement(old, "In", ("a",)) == requirement(new, "In", ("a",))
    assert requirement(old, "In", ("a",)).key == new
