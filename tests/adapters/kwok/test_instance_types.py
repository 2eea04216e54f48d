"""What the cloud kwok sells: 144 types by formula, or those of a file in Karpenter's format."""

import json
from typing import Any

import pytest

from dovetail.adapters.kwok import names as own
from dovetail.adapters.kwok.instance_types import OfferingKey, default_types, read_types
from dovetail.model import names
from dovetail.ports.failures import Misconfigured


def test_the_generated_types_are_karpenters() -> None:
    """KWK-10."""
    types = {each.name: each for each in default_types()}
    assert len(types) == 144
    sold = types["s-4x-arm64-windows"]
    assert sold.capacity == {"cpu": 4 * 10**9, "memory": 16 * 2**30, "pods": 64, "ephemeral-storage": 20 * 2**30}
    assert len(sold.prices) == 8
    on_demand = sold.prices[OfferingKey("s-4x-arm64-windows", "test-zone-c", "on-demand")]
    assert on_demand == pytest.approx(0.1 + 17.179869184 * 0.001)
    spot = sold.prices[OfferingKey("s-4x-arm64-windows", "test-zone-c", "spot")]
    assert spot == pytest.approx(0.7 * on_demand)
    said = {each.key: each.values for each in sold.requirements}
    assert (said[own.FAMILY], said[own.SIZE], said[own.CPU], said[own.MEMORY]) == (("s",), ("4",), ("4",), ("16Gi",))
    assert types["m-256x-amd64-linux"].capacity["pods"] == 1024


@pytest.mark.parametrize(
    ("offering", "systems"),
    [
        ({"capacityType": "spot", "zone": "a", "price": 1.5}, {"linux": {}}),
        (
            {
                "Price": 1.5,
                "Available": True,
                "Requirements": [
                    {"key": names.CAPACITY_TYPE, "operator": "In", "values": ["spot"]},
                    {"key": names.ZONE, "operator": "In", "values": ["a"]},
                ],
            },
            ["linux"],
        ),
    ],
    ids=["as it was", "as it is"],
)
def test_a_file_is_read_in_both_forms(offering: dict[str, Any], systems: Any) -> None:
    entry = {
        "name": "g5.4xlarge",
        "offerings": [offering],
        "architecture": "amd64",
        "operatingSystems": systems,
        "resources": {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "1"},
    }
    [sold] = read_types(json.dumps([entry]).encode())
    assert sold.prices == {OfferingKey("g5.4xlarge", "a", "spot"): 1.5}
    assert sold.capacity["pods"] == 110 and sold.capacity["nvidia.com/gpu"] == 1
    assert (sold.labels[own.FAMILY], sold.labels[own.SIZE]) == (("g5",), ("4xlarge",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{", "no JSON"),
        (b"[]", "empty"),
        (b'[{"name": "a"}]', r"\[0\]: KeyError: 'resources'"),
        (b'[{"name": "a", "resources": {"cpu": "much"}}]', r"\[0\]: QuantityError: .*much"),
    ],
)
def test_a_file_that_cannot_be_read_says_which_type_and_why(text: bytes, words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        read_types(text)
