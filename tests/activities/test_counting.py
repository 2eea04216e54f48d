"""Karpenter's metric names, counted once each by the steps of a node's life (M-1, B-28, B-30, B-51)."""

from collections.abc import Mapping
from typing import Any

import pytest
from temporalio.common import MetricMeter
from temporalio.testing import ActivityEnvironment

from core.model import names
from core.model.steps import ClaimRef
from ports.cloud import NoCapacity
from tests.activities import test_departing, test_draining, test_joining, test_launching
from tests.activities.fakes import FakeCloud, World
from tests.core.lifecycle.objects import a_joined_claim, a_joined_node, a_node, a_pod, is_now


class _Sink:
    def __init__(self, name: str, kept: list[tuple[str, float, dict[str, Any]]]) -> None:
        self.name, self.kept = name, kept

    def add(self, value: int, additional_attributes: Mapping[str, Any] | None = None) -> None:
        self.kept.append((self.name, value, dict(additional_attributes or {})))

    def record(self, value: float, additional_attributes: Mapping[str, Any] | None = None) -> None:
        self.kept.append((self.name, value, dict(additional_attributes or {})))


class Meter:
    """Remembers what was counted."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, float, dict[str, Any]]] = []

    def create_counter(self, name: str, description: str | None = None, unit: str | None = None) -> _Sink:
        return _Sink(name, self.kept)

    create_histogram_float = create_counter

    def with_additional_attributes(self, additional_attributes: Mapping[str, Any]) -> "Meter":
        return self


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture
def environment(meter: Meter) -> ActivityEnvironment:
    made = ActivityEnvironment()
    kept: Any = meter
    assert not isinstance(kept, MetricMeter)
    made.metric_meter = kept
    return made


async def test_a_registration_counts_a_node(environment: ActivityEnvironment, meter: Meter) -> None:
    world = World(clock=1010.0)
    world.put(test_joining.a_launched_claim(), a_node())
    step = test_joining.stage_over(world).step

    await environment.run(step.await_registered, test_joining.REF)
    await environment.run(step.await_registered, test_joining.REF)

    assert meter.kept == [("karpenter_nodes_created_total", 1, {"nodepool": "pool", "zone": ""})]


async def test_a_launch_without_capacity_counts_a_disruption(environment: ActivityEnvironment, meter: Meter) -> None:
    stage = test_launching.new_stage()
    stage.cloud.answer = NoCapacity(message="none")

    await environment.run(stage.step.launch_instance, test_launching.REF)

    ((name, value, labels),) = meter.kept
    assert (name, value, labels["reason"]) == ("karpenter_nodeclaims_disrupted_total", 1, "insufficient_capacity")
    assert labels["termination_mode"] == "graceful"


async def test_a_termination_counts_node_and_claim_once(environment: ActivityEnvironment, meter: Meter) -> None:
    """B-28, B-67: durations from the deletion and from the creation."""
    stage = test_departing.new_stage()
    stage.world.put(test_departing.a_leaving_claim(), a_joined_node(deleting_since=1000.0))
    departure = await environment.run(stage.departing.begin_departure, ClaimRef(name="pool-1", uid="uid-pool-1"))
    stage.world.clock = 1060.0
    await environment.run(stage.terminating.terminate_instance, departure)
    for _ in range(2):
        await environment.run(stage.departing.release_claim, departure)

    found = {name.removeprefix("karpenter_"): value for name, value, _ in meter.kept}
    assert len(meter.kept) == len(found)
    assert found.pop("nodes_lifetime_duration_seconds") == 1060.0
    assert found == {
        "nodes_terminated_total": 1,
        "nodes_termination_duration_seconds": 60.0,
        "nodeclaims_terminated_total": 1,
        "nodeclaims_termination_duration_seconds": 60.0,
    }


async def test_an_instance_that_took_its_time_tells_how_long(environment: ActivityEnvironment, meter: Meter) -> None:
    stage = test_departing.new_stage()
    terminating = is_now(names.INSTANCE_TERMINATING, changed=1000.0)
    stage.world.put(a_joined_claim(deleting_since=1000.0, conditions=(terminating,)))
    departure = await environment.run(stage.departing.begin_departure, ClaimRef(name="pool-1", uid="uid-pool-1"))
    stage.world.clock = 1042.0

    await environment.run(stage.terminating.terminate_instance, departure)

    name = "karpenter_nodeclaims_instance_termination_duration_seconds"
    assert meter.kept == [(name, 42.0, {"nodepool": "pool"})]


async def test_evictions_are_counted_by_their_answer(environment: ActivityEnvironment, meter: Meter) -> None:
    """T-26, B-30, B-31, B-33."""
    stage = test_draining.new_stage()
    pod = a_pod()
    stage.holds(pod)
    stage.pods.answers[pod.uid] = "blocked"
    stage.world.at(1000.05, stage.pods.answers.clear)

    await environment.run(stage.drain.drain_node, test_draining.DEPARTURE)
    await environment.run(stage.detach.await_detached, test_draining.DEPARTURE)

    assert meter.kept == [
        ("karpenter_pods_eviction_requests_total", 1, {"code": "429"}),
        ("karpenter_pods_eviction_requests_total", 1, {"code": "200"}),
        ("karpenter_pods_drained_total", 1, {"reason": "Drifted"}),
        ("karpenter_nodes_drained_total", 1, {"nodepool": "pool"}),
    ]
    assert isinstance(stage.cloud, FakeCloud)
