"""EC2 may not know an instance for some time after its launch: until then nothing says that it is gone (AWS-102). One
that has ended before its launch was written down is not taken for the claim's."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.activities.launch.launch_instance import LaunchInstance
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.adapters.aws.adapter import AwsAdapter
from dovetail.adapters.aws.environment import AwsEnvironment
from dovetail.adapters.aws.provider import _surroundings
from dovetail.lifecycle.conditions import true
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Instance
from dovetail.ports.failures import Postponed, Retryable
from dovetail.ports.provider import SharedSettings
from tests.adapters.aws.conftest import Stage
from worlds.aws import CLUSTER, ClassStore, Notices, a_claim_of_ec2, settings_for
from worlds.fakes import FakeCatalogues, FakeClaims, FakeLookups, World, departure_ports


@pytest.fixture
async def ready(stage: Stage) -> Stage:
    """A class, and a cloud that does not show for an hour what it launches."""
    await stage.with_class()
    stage.patch(visibleAfter=3600, shutdownSeconds=0)
    return stage


@asynccontextmanager
async def another_worker(stage: Stage, claim: NodeClaim, later: float = 0.0) -> AsyncIterator[AwsAdapter]:
    """One that has launched nothing, opened as in a cluster that has this claim."""
    view: Any = SimpleNamespace(snapshot=lambda _kinds: Snapshot(now=0.0, claims={claim.name: claim}))
    made: Any = SimpleNamespace(
        settings=SharedSettings(
            cluster="dovetail", namespace="dovetail", endpoint="", agent="", gates={}, best_effort_min_values=False
        ),
        view=view,
        objects=lambda *_: ClassStore(),
        authority=lambda: "",
        node_classes=lambda _: stage.classes.raw(),
        version=None,
    )
    given = await _surroundings(made, AwsEnvironment(eks_control_plane=True))
    given = replace(given, calls=stage.adapter.calls, cluster=CLUSTER, clock=lambda: time.time() + later)
    adapter = AwsAdapter.open(settings_for(stage.server), given)
    yield adapter
    await adapter.close()


def recorded(claim: NodeClaim, instance: Instance) -> NodeClaim:
    return replace(claim, provider_id=instance.provider_id, conditions=(true(names.LAUNCHED, time.time()),))


def running(stage: Stage) -> int:
    shown = stage.server.control("GET", "instances?after=0&wait=0")["instances"]
    return sum(each["state"] in ("pending", "running") for each in shown)


async def test_a_claim_that_is_deleted_just_after_its_launch_leaves_no_instance(ready: Stage) -> None:
    """AWS-102, TRM-36: with the last NodePool gone nobody would collect it."""
    world, cloud = World(), ready.adapter.cloud
    claim = a_claim_of_ec2(finalizers=(names.TERMINATION_FINALIZER,), resource_version="1")
    instance = await ready.launched(claim)
    world.put(replace(recorded(claim, instance), deleting_since=world.clock))
    known = KnownClaims(FakeLookups(world), FakeClaims(world))
    departing = BeginAndEndDeparture(departure_ports(world, cloud=cloud), world.now)

    async def shown(_seconds: float) -> None:
        assert world.claims, "it was released"
        ready.patch(visibleAfter=0)

    ref = ClaimRef(name=claim.name, uid=claim.uid, pool="default")
    departure = await departing.begin_departure(ref)
    step = TerminateInstance(known, cloud, world.now, departing, shown)
    with pytest.raises(Retryable):  # EC2 does not know it yet; Temporal asks again
        await step.terminate_instance(departure)
    await shown(0)
    await step.terminate_instance(departure)

    assert (departure.instance_gone, running(ready), world.claims) == (False, 0, {})


async def test_an_instance_that_was_launched_and_not_written_down_is_found_by_its_claim(ready: Stage) -> None:
    """DUR-3."""
    claim = a_claim_of_ec2()
    instance = await ready.launched(claim)

    found = await ready.adapter.cloud.find(claim_uid=claim.uid)

    assert found is not None
    assert (found.provider_id, await ready.adapter.cloud.find(claim_uid="another")) == (instance.provider_id, None)


async def test_an_instance_that_has_ended_is_not_taken_for_one_that_is_not_shown_yet(ready: Stage) -> None:
    ready.patch(visibleAfter=0)
    claim = a_claim_of_ec2()
    instance = await ready.launched(claim)
    ready.server.control("PATCH", "instances/first", {"state": "terminated"})

    assert await ready.adapter.cloud.find(claim_uid=claim.uid) is None
    assert await ready.adapter.cloud.find(provider_id=instance.provider_id) is None


async def test_for_some_minutes_no_worker_says_that_an_instance_is_gone_because_ec2_does_not_know_it(
    ready: Stage,
) -> None:
    claim = a_claim_of_ec2()
    instance = await ready.launched(claim)

    async with another_worker(ready, recorded(claim, instance)) as other:
        for look in (other.cloud.terminate(instance.provider_id), other.cloud.find(provider_id=instance.provider_id)):
            with pytest.raises(Postponed, match="was launched just now"):
                await look
    async with another_worker(ready, recorded(claim, instance), later=301.0) as other:
        assert await other.cloud.terminate(instance.provider_id) == "gone"
        assert await other.cloud.find(provider_id=instance.provider_id) is None


async def test_a_launch_whose_instance_has_ended_before_its_answer_came_is_made_anew(stage: Stage) -> None:
    """DUR-1: under the same token EC2 answers the instance for ever, whatever has become of it."""
    await stage.with_class()
    world = World()
    claim = replace(a_claim_of_ec2(), created=world.clock, resource_version="1")
    world.put(claim)
    known = KnownClaims(FakeLookups(world), FakeClaims(world))
    step, ref = (
        LaunchInstance(known, stage.adapter.cloud, Notices(), world.now, catalogues=FakeCatalogues()),
        ClaimRef(name=claim.name, uid=claim.uid),
    )
    stage.patch(fail=[{"op": "CreateFleet", "dryRun": False, "answer": "drop", "when": "after", "times": 3}])
    with pytest.raises(Retryable):
        await step.launch_instance(ref)
    stage.server.control("PATCH", "instances/first", {"state": "terminated"})

    with pytest.raises(Retryable, match="InstanceEnded"):
        await step.launch_instance(ref)
    outcome = await step.launch_instance(ref)

    assert (outcome.kind, outcome.provider_id[-1], running(stage)) == ("launched", "2", 1)
