"""Launches choose by the prices, and claims show the capacity, that placement counted on: NodeOverlays change all of
them alike (PLC-138, AWS-76, AWS-88, AWS-94)."""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

from dovetail.adapters.aws.adapter import AwsAdapter, Surroundings
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.catalogue.pool_overlays import PoolOverlays
from dovetail.model.nodes import Condition
from dovetail.model.objects.overlays import NodeOverlay
from dovetail.model.pods import Expression
from dovetail.model.pools import ClaimTemplate, NodePool
from dovetail.model.values.resources import Resources
from testbed.cloud.server import CloudServer
from tests.adapters.aws.conftest import Stage
from worlds.aws import CLUSTER, REFERENCE, ClassStore, a_claim_of_ec2, amd64, on_demand, one_of, settings_for

TYPES = one_of("node.kubernetes.io/instance-type", "m5.large", "m5.xlarge")


def an_overlay(
    *requirements: Expression, price: str = "", capacity: Resources | None = None, conditions: Iterable[Condition] = ()
) -> NodeOverlay:
    return NodeOverlay(
        name="o",
        uid="o",
        requirements=requirements,
        price=price,
        capacity=capacity or {},
        conditions=tuple(conditions),
    )


Staged = Callable[..., Stage]


@pytest.fixture
async def staged(aws_server: CloudServer, aws_calls: Calls) -> AsyncIterator[Staged]:
    """A stage with these overlays, and the pool `default`."""
    opened: list[AwsAdapter] = []

    def make(*overlays: NodeOverlay, held: Iterable[NodeOverlay] | None = None) -> Stage:
        aws_server.control("POST", "reset")
        classes = ClassStore()
        pool = NodePool(name="default", uid="p", template=ClaimTemplate(node_class=REFERENCE))
        pool_overlays = PoolOverlays(overlays=lambda: held or overlays, pools=lambda: {"default": pool})
        given = Surroundings(node_classes=classes.raw, cluster=CLUSTER, calls=aws_calls, overlays=pool_overlays)
        opened.append(AwsAdapter.open(settings_for(aws_server), given))
        since = aws_server.control("GET", "ledger/last")
        return Stage(server=aws_server, classes=classes, adapter=opened[-1], since=since)

    yield make
    for adapter in opened:
        await adapter.close()


async def launched(stage: Stage) -> tuple[str, dict[str, float]]:
    """The fleet's strategy, and each type's priority."""
    await stage.with_class()
    await stage.launched(a_claim_of_ec2(TYPES, on_demand(), amd64()))
    fleet = stage.calls("CreateFleet")[-1]["input"]
    overrides = [each for config in fleet["LaunchTemplateConfigs"] for each in config["Overrides"]]
    return fleet["OnDemandOptions"]["AllocationStrategy"], {o["InstanceType"]: o["Priority"] for o in overrides}


async def test_without_overlays_the_cheapest_is_asked_for(staged: Staged) -> None:
    assert await launched(staged()) == ("lowest-price", {"m5.large": 0.096, "m5.xlarge": 0.192})


async def test_a_price_of_an_overlay_is_the_priority_and_changes_the_strategy(staged: Staged) -> None:
    """AWS-88."""
    cheaper = an_overlay(one_of("node.kubernetes.io/instance-type", "m5.xlarge"), price="0.01")

    assert await launched(staged(cheaper)) == ("prioritized", {"m5.large": 0.096, "m5.xlarge": 0.01})


async def test_an_overlay_of_a_restored_server_counts_under_the_version_of_another_content(staged: Staged) -> None:
    xlarge = one_of("node.kubernetes.io/instance-type", "m5.xlarge")
    held = [an_overlay(xlarge, price="0.01")]
    stage = staged(held=held)
    before = await launched(stage)

    held[:] = [an_overlay(xlarge, price="0.02")]

    assert [prices["m5.xlarge"] for _, prices in (before, await launched(stage))] == [0.01, 0.02]


async def test_an_overlay_that_contradicts_another_changes_nothing(staged: Staged) -> None:
    """NPL-53."""
    refused = Condition(type="ValidationSucceeded", status="False", reason="Conflict")

    assert (await launched(staged(an_overlay(TYPES, price="0.01", conditions=(refused,)))))[0] == "lowest-price"


ENCLAVES = "hugepages.example/enclaves"


def enclaves_on(name: str, **change: Any) -> NodeOverlay:
    """An overlay that gives one type four enclaves and a gibibyte of memory less than planners know of."""
    return an_overlay(
        one_of("node.kubernetes.io/instance-type", name), capacity={ENCLAVES: 4, "memory": 2**30}, **change
    )


async def test_a_capacity_of_an_overlay_is_what_the_claim_will_show(staged: Staged) -> None:
    """AWS-76, AWS-94. A claim that did not show what its plan counted on would not hold its own pod: each pass would
    launch another instance."""
    stage = staged(enclaves_on("m5.large"))
    await stage.with_class()
    instance = await stage.launched(a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m5.large"), on_demand()))
    bare = staged()
    await bare.with_class()  # which takes the other's instance profile for one that nobody uses

    plain = await bare.launched(a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m5.large"), on_demand()))

    assert instance.capacity == {**plain.capacity, ENCLAVES: 4, "memory": 2**30}
    assert instance.allocatable[ENCLAVES] == 4
    overhead = plain.capacity["memory"] - plain.allocatable["memory"]
    assert instance.allocatable["memory"] == 2**30 - overhead
    assert instance.allocatable["cpu"] == plain.allocatable["cpu"]


async def test_an_instance_that_is_found_again_shows_the_same_capacity(staged: Staged) -> None:
    """A worker that died between the launch and the status leaves its successor to find the instance."""
    stage = staged(enclaves_on("m5.large"))
    await stage.with_class()
    claim = a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m5.large"), on_demand())
    launched = await stage.launched(claim)

    cloud = stage.adapter.cloud
    found = [
        await cloud.find(claim_uid=claim.uid),
        await cloud.find(provider_id=launched.provider_id),
        *await cloud.list_instances(),
    ]

    assert [(each.capacity, each.allocatable) for each in found if each is not None] == [
        (launched.capacity, launched.allocatable)
    ] * 3


@pytest.mark.parametrize(
    "other",
    [
        enclaves_on("m5.xlarge"),
        enclaves_on("m5.large", conditions=[Condition(type="ValidationSucceeded", status="False", reason="Conflict")]),
    ],
    ids=["of another type", "that contradicts another"],
)
async def test_an_overlay_that_is_not_applied_changes_no_capacity(staged: Staged, other: NodeOverlay) -> None:
    stage = staged(other)
    await stage.with_class()

    instance = await stage.launched(a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m5.large"), on_demand()))

    assert ENCLAVES not in instance.capacity
    assert instance.capacity["memory"] > 2**30
