"""Calls to the cloud are timed, and their errors named as Karpenter names them (CLD-16)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from dovetail.model.nodes import NodeClaim
from dovetail.ports.cloud import ClassNotReady, LaunchRefused, NoCapacity
from dovetail.ports.failures import Throttled
from dovetail.telemetry.metrics.karpenters import catalogue as meters
from dovetail.telemetry.metrics.karpenters.cloud_calls import MeasuredCloud
from tests.metrics.test_lifecycle import Meter
from worlds.disruption import a_claim
from worlds.fakes import FakeCloud, World

CLAIM: NodeClaim = a_claim()


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meter]:
    made = Meter()
    changed = replace(meters.INSTRUMENTS, meter=made.provider.get_meter("test"), made={})
    monkeypatch.setattr(meters, "INSTRUMENTS", changed)
    yield made


def counted(meter: Meter, name: str, *labels: str) -> list[tuple[object, ...]]:
    return [
        tuple(found[label] for label in labels) for n, _, found in meter.kept if n == f"karpenter_cloudprovider_{name}"
    ]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (NoCapacity(message="none"), "InsufficientCapacityError"),
        (ClassNotReady(message="no class"), "NodeClassNotReadyError"),
        (LaunchRefused(reason="BadImage", message="no image"), "unknown"),
    ],
)
async def test_a_launch_that_comes_to_nothing_is_an_error_with_upstreams_name(
    meter: Meter, answer: NoCapacity | ClassNotReady | LaunchRefused, error: str
) -> None:
    """CLD-9, BEH-113: anything without a name of upstream's is unknown."""
    cloud = FakeCloud(World())
    cloud.answer = answer

    found = await MeasuredCloud(cloud, "fake").launch(CLAIM, "request", "token")

    assert found == answer
    labels = ("method", "error", "provider", "nodepool")
    assert counted(meter, "errors_total", *labels) == [("Create", error, "fake", "pool")]
    assert counted(meter, "duration_seconds", "method") == [("Create",)]


async def test_an_instance_that_is_gone_is_not_found_to_a_delete(meter: Meter) -> None:
    await MeasuredCloud(FakeCloud(World()), "fake").terminate("aws:///zone/i-1")

    assert counted(meter, "errors_total", "method", "error") == [("Delete", "NodeClaimNotFoundError")]


async def test_a_call_that_fails_is_timed_and_raised(meter: Meter) -> None:
    cloud = FakeCloud(World())
    cloud.before = Throttled("ec2", "slow down")

    with pytest.raises(Throttled):
        await MeasuredCloud(cloud, "fake").launch(CLAIM, "request", "token")

    assert counted(meter, "errors_total", "method", "error", "nodepool") == [("Create", "unknown", "pool")]
    assert counted(meter, "duration_seconds", "method") == [("Create",)]


async def test_looking_is_timed_too(meter: Meter) -> None:
    measured = MeasuredCloud(FakeCloud(World()), "fake")

    await measured.find(provider_id="i")
    await measured.list_instances()

    assert sorted(counted(meter, "duration_seconds", "method")) == [("Get",), ("List",)]
    assert counted(meter, "errors_total", "method") == []
