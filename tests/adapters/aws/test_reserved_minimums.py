"""Where reservations are of fewer types than minValues asks for: what is planned of what AWS offers, and launched."""

import time
from dataclasses import replace
from typing import Final

import pytest

from dovetail.adapters.aws import names as aws
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.pods import Expression
from dovetail.model.pools import ClaimTemplate, NodePool
from dovetail.model.values.json import Json
from dovetail.placement.place_pods import Index, place
from dovetail.placement.proposals import proposed_nodes
from dovetail.placement.settings import PlacementSettings
from dovetail.ports.cloud import Instance, LaunchRefused, NoCapacity
from tests.adapters.aws.conftest import Stage
from tests.adapters.aws.test_provider_rules import BLOCK, OPEN, with_reservations
from tests.placement.builders import a_snapshot, a_waiting_pod
from worlds.aws import REFERENCE, a_claim_of_ec2, amd64, any_kind, on_demand, one_of

SETTINGS: Final = PlacementSettings(well_known=names.WELL_KNOWN_LABELS | aws.WELL_KNOWN)
LARGER: Final = {**OPEN, "id": "cr-02", "type": "m5.xlarge"}
EITHER: Final = one_of(names.CAPACITY_TYPE, "reserved", "on-demand")


def three_types(least: int | None) -> Expression:
    return replace(one_of(names.INSTANCE_TYPE, "m5.large", "m5.xlarge", "m5.2xlarge"), min_values=least)


async def next_claim(stage: Stage, least: int | None) -> NodeClaim:
    """That of the node which a pod gets, planned of what is offered now."""
    template = ClaimTemplate(node_class=REFERENCE, requirements=(amd64(), three_types(least), EITHER))
    pool = NodePool(name="gpu", uid="p", conditions=(Condition(type="Ready", status="True"),), template=template)
    catalogue = await stage.adapter.catalogues.catalogue(pool)
    world = a_snapshot([a_waiting_pod("p")], pools=[pool], now=time.time())
    found = place(Index(replace(world, catalogues={pool.name: catalogue}), SETTINGS)).new
    [node], [types] = proposed_nodes(found, SETTINGS.well_known)
    listed = replace(one_of(names.INSTANCE_TYPE, *types), min_values=node.min_types)
    return a_claim_of_ec2(*node.requirements, listed)


async def next_launch(stage: Stage, least: int | None) -> str:
    """What it is launched as."""
    answer = await stage.launch(await next_claim(stage, least))
    return answer.labels[names.CAPACITY_TYPE] if isinstance(answer, Instance) else f"{answer.reason}: {answer.message}"


@pytest.mark.parametrize(
    ("reservations", "least", "launched"),
    [
        ([OPEN], None, ["reserved", "reserved", "on-demand"]),
        ([OPEN], 2, ["on-demand"] * 3),
        ([OPEN, LARGER], 2, ["reserved", "reserved", "on-demand"]),  # until that of the cheaper type is full
        ([OPEN, {**LARGER, "zone": "us-west-2b"}], 2, ["reserved", "reserved", "on-demand"]),
        ([OPEN, {**OPEN, "id": "cr-04"}], 2, ["on-demand"] * 3),
        ([OPEN, {**BLOCK, "type": "m5.xlarge"}], 2, ["on-demand"] * 3),
        ([BLOCK, {**BLOCK, "id": "cr-05", "type": "m5.xlarge"}], 2, ["on-demand"] * 3),
        ([OPEN, {**LARGER, "interruptible": True}], 2, ["on-demand"] * 3),
    ],
)
async def test_a_pod_gets_a_node_though_reservations_are_of_too_few_types(
    stage: Stage, reservations: list[Json], least: int | None, launched: list[str]
) -> None:
    """PLQ-70, AWS-79: a launch takes reservations of one kind only, and of capacity blocks one."""
    await with_reservations(stage, *reservations)

    assert [await next_launch(stage, least) for _ in launched] == launched


async def test_a_claim_is_given_up_once_one_of_its_reservations_is_full(stage: Stage) -> None:
    """PLQ-70, AWS-90: no reason for the claim to stay, as the next one is of other capacity."""
    await with_reservations(stage, {**OPEN, "available": 1}, LARGER)
    planned = await next_claim(stage, 2)
    await stage.launched(a_claim_of_ec2(one_of(names.INSTANCE_TYPE, "m5.large"), any_kind(), amd64()))

    answer = await stage.launch(planned)

    assert isinstance(answer, NoCapacity)
    assert await next_launch(stage, 2) == "on-demand"


async def test_a_claim_that_may_be_on_demand_is_where_reservations_are_of_too_few_types(stage: Stage) -> None:
    """AWS-81: as that of a static NodePool, which no pod is planned onto."""
    await with_reservations(stage, OPEN)
    asking = (three_types(2), amd64())

    launched = [await stage.launched(a_claim_of_ec2(*asking, kind)) for kind in (EITHER, any_kind())]
    without = await stage.launched(a_claim_of_ec2(three_types(None), amd64(), EITHER))

    assert [each.labels[names.CAPACITY_TYPE] for each in launched] == ["on-demand", "spot"]
    assert without.labels[names.CAPACITY_TYPE] == "reserved"


async def test_a_claim_whose_minimum_is_not_met_says_of_how_many_types(stage: Stage) -> None:
    """AWS-81."""
    await with_reservations(stage, OPEN)
    only_reserved = one_of(names.CAPACITY_TYPE, "reserved")

    answers = [
        await stage.launch(a_claim_of_ec2(three_types(least), kind, amd64()))
        for least, kind in ((2, only_reserved), (4, on_demand()))
    ]

    assert all(isinstance(each, LaunchRefused) for each in answers)
    assert [each.message for each in answers] == [
        "minValues cannot be met by 1 available instance type; found node.kubernetes.io/instance-type: 1",
        "minValues cannot be met by 3 available instance types; found node.kubernetes.io/instance-type: 3",
    ]
