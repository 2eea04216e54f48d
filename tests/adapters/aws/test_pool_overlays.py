"""Launches choose by the prices that placement chose by: NodeOverlays change both alike (PLC-138, AWS-88)."""

from collections.abc import AsyncIterator, Callable, Iterable

import pytest

from dovetail.adapters.aws.adapter import AwsAdapter, Surroundings
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.catalogue.pool_overlays import PoolOverlays
from dovetail.model.nodes import Condition
from dovetail.model.overlays import NodeOverlay
from dovetail.model.pods import Expression
from dovetail.model.pools import ClaimTemplate, NodePool
from testbed.cloud.server import CloudServer
from tests.adapters.aws.conftest import Stage
from tests.adapters.aws.worlds import (
    CLUSTER,
    REFERENCE,
    ClassStore,
    a_claim,
    amd64,
    on_demand,
    one_of,
    settings_for,
)

TYPES = one_of("node.kubernetes.io/instance-type", "m5.large", "m5.xlarge")


def an_overlay(*requirements: Expression, price: str = "", conditions: Iterable[Condition] = ()) -> NodeOverlay:
    return NodeOverlay(name="o", uid="o", requirements=requirements, price=price, conditions=tuple(conditions))


Staged = Callable[..., Stage]


@pytest.fixture
async def staged(aws_server: CloudServer, aws_calls: Calls) -> AsyncIterator[Staged]:
    """A stage with these overlays, and the pool `default`."""
    opened: list[AwsAdapter] = []

    def make(*overlays: NodeOverlay) -> Stage:
        aws_server.control("POST", "reset")
        classes = ClassStore()
        pool = NodePool(name="default", uid="p", template=ClaimTemplate(node_class=REFERENCE))
        pool_overlays = PoolOverlays(overlays=lambda: overlays, pools=lambda: {"default": pool})
        given = Surroundings(node_classes=classes.raw, cluster=CLUSTER, calls=aws_calls, overlays=pool_overlays)
        opened.append(AwsAdapter.open(settings_for(aws_server), given))
        since = aws_server.control("GET", "ledger")["last"]
        return Stage(server=aws_server, classes=classes, adapter=opened[-1], since=since)

    yield make
    for adapter in opened:
        await adapter.close()


async def launched(stage: Stage) -> tuple[str, dict[str, float]]:
    """The fleet's strategy, and each type's priority."""
    await stage.with_class()
    await stage.launched(a_claim(TYPES, on_demand(), amd64()))
    fleet = stage.calls("CreateFleet")[-1]["input"]
    overrides = [each for config in fleet["LaunchTemplateConfigs"] for each in config["Overrides"]]
    return fleet["OnDemandOptions"]["AllocationStrategy"], {o["InstanceType"]: o["Priority"] for o in overrides}


async def test_without_overlays_the_cheapest_is_asked_for(staged: Staged) -> None:
    assert await launched(staged()) == ("lowest-price", {"m5.large": 0.096, "m5.xlarge": 0.192})


async def test_a_price_of_an_overlay_is_the_priority_and_changes_the_strategy(staged: Staged) -> None:
    """AWS-88."""
    cheaper = an_overlay(one_of("node.kubernetes.io/instance-type", "m5.xlarge"), price="0.01")

    assert await launched(staged(cheaper)) == ("prioritized", {"m5.large": 0.096, "m5.xlarge": 0.01})


async def test_an_overlay_that_contradicts_another_changes_nothing(staged: Staged) -> None:
    """NPL-53."""
    refused = Condition(type="ValidationSucceeded", status="False", reason="Conflict")

    assert (await launched(staged(an_overlay(TYPES, price="0.01", conditions=(refused,)))))[0] == "lowest-price"
