"""The text of a frozen launch is on claims when a worker is upgraded, and must be read and written as ever."""

import pytest

from dovetail.adapters.aws.launch.frozen_launch import FleetOverride, UnreadableLaunch, read_launch, write_launch
from dovetail.adapters.aws.launch.launch_terms import FleetTerms, LaunchTerms, ReservedAmounts

PLAIN = (
    '{"class":"default","context":"","groups":[{"efa":0,"image":"ami-1","market":"","offers":[["m5.large",0,0.096],'
    '["m5.xlarge",1,0.192]],"pods":29,"reservation":"","template":"karpenter.k8s.aws/1"}],"hash":"123",'
    '"kind":"on-demand","overlaid":false,"partition":"","places":[["subnet-1","us-west-2a"],["subnet-2","us-west-2b"]],'
    '"profile":"p","tags":{"a":"b"},"tenancy":"default","v":1}'
)
RESERVED = (
    '{"class":"default","context":"ctx","groups":[{"efa":2,"image":"ami-1","market":"capacity-block",'
    '"offers":[["p5.48xlarge",0,9e-7]],"pods":100,"reservation":"cr-1","reserved":[{"cpu":"80m"},{}],'
    '"template":"karpenter.k8s.aws/2"}],"hash":"123","kind":"reserved","overlaid":true,"partition":"3",'
    '"places":[["subnet-1","us-west-2a"]],"profile":"","tags":{},"tenancy":"dedicated","v":1}'
)


@pytest.mark.parametrize("text", [PLAIN, RESERVED])
def test_a_text_is_read_and_written_back_byte_for_byte(text: str) -> None:
    assert write_launch(read_launch(text)) == text


def test_what_a_text_leaves_empty_is_none() -> None:
    launch = read_launch(PLAIN)

    assert launch.fleet == FleetTerms(capacity_type="on-demand", tenancy="default")
    assert launch.groups[0].terms == LaunchTerms(image="ami-1", max_pods=29)
    assert launch.groups[0].overrides[1] == FleetOverride("m5.xlarge", 1, 0.192)
    assert not launch.block


def test_a_reservation_and_the_results_of_formulas_are_kept() -> None:
    launch = read_launch(RESERVED)

    assert launch.fleet.partition == "3"
    assert launch.groups[0].terms == LaunchTerms(
        image="ami-1",
        max_pods=100,
        efa=2,
        reserved=ReservedAmounts(kube=(("cpu", "80m"),)),
        reservation_id="cr-1",
        market="capacity-block",
    )
    assert launch.block


@pytest.mark.parametrize("text", ["", "{}", PLAIN.replace('"v":1', '"v":2'), PLAIN.replace('"pods":29,', "")])
def test_a_text_of_another_version_or_form_is_refused(text: str) -> None:
    with pytest.raises(UnreadableLaunch):
        read_launch(text)
