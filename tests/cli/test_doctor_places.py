"""`dovetail doctor` says when the cloud that it asks cannot see this cluster's instances at all."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dovetail.answers.doctor.cluster import _places
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Instance
from dovetail.ports.failures import Failure, Misconfigured, Unreachable
from dovetail.wiring.world import World
from tests.lifecycle.objects import a_joined_claim
from worlds.disruption import a_claim, a_pool


def a_running_instance() -> Instance:
    return Instance(provider_id="aws:///us-west-2a/i-1", labels={}, annotations={}, capacity={}, allocatable={})


class Cloud:
    """A cloud that answers a look-up with this failure, or with nothing."""

    def __init__(self, failure: Failure | None) -> None:
        self.failure, self.asked, self.instances = failure, list[str](), tuple[Instance, ...]()

    async def find(self, claim_uid: str = "", provider_id: str = "") -> None:
        self.asked.append(provider_id)
        if self.failure is not None:
            raise self.failure

    async def list_instances(self) -> tuple[Instance, ...]:
        return self.instances


def world_with(failure: Failure | None) -> tuple[World, Cloud]:
    cloud: Any = Cloud(failure)
    return cast(World, SimpleNamespace(cloud=cloud)), cloud


WRONG = Misconfigured("AWS_REGION", "it is us-east-1, but aws:///us-west-2a/i-1 is an instance in zone us-west-2a")


async def test_instances_of_another_region_are_a_failed_check_with_the_setting_named() -> None:
    claim = a_joined_claim()
    world, cloud = world_with(WRONG)

    (check,) = await _places(world, Snapshot(now=0.0, claims={claim.name: claim}))

    assert (check.name, check.verdict) == ("instances", "fails")
    assert "AWS_REGION: it is us-east-1" in check.found
    assert cloud.asked == [claim.provider_id]


@pytest.mark.parametrize("failure", [None, Unreachable("ec2", "no answer")])
async def test_what_is_gone_or_does_not_answer_is_no_wrong_region(failure: Failure | None) -> None:
    claim = a_joined_claim()
    world, _ = world_with(failure)

    assert await _places(world, Snapshot(now=0.0, claims={claim.name: claim})) == ()


async def test_without_an_instance_nothing_is_asked() -> None:
    claim = a_claim()
    world, cloud = world_with(WRONG)

    assert await _places(world, Snapshot(now=0.0, claims={claim.name: claim})) == ()
    assert cloud.asked == []


@pytest.mark.parametrize(
    ("snapshot", "said"),
    [
        (Snapshot(now=0.0), 1),
        (Snapshot(now=0.0, pools={"a": a_pool()}), 0),
        (Snapshot(now=0.0, claims={"pool-1": a_claim()}), 0),
    ],
)
async def test_instances_that_nobody_ends_are_a_failed_check_with_their_ids(snapshot: Snapshot, said: int) -> None:
    """GCR-6: without NodePool and NodeClaim no instance is terminated, and there is no NodePool to say so."""
    world, cloud = world_with(None)
    one = a_running_instance()
    cloud.instances = (one, replace(one, provider_id="aws:///us-west-2a/i-ends", state="terminating"))

    checks = await _places(world, snapshot)

    assert len(checks) == said
    for check in checks:
        assert (check.name, check.verdict) == ("instances", "fails")
        assert one.provider_id in check.found and "i-ends" not in check.found
