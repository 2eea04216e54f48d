"""Karpenter's metric names, counted once each by the steps of a node's life (MET-1, BEH-28, BEH-30, BEH-51)."""

from dataclasses import replace

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from temporalio.testing import ActivityEnvironment

from dovetail.messages.orders import DeleteClaim
from dovetail.messages.outcomes import DrainOutcome
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.pods import Pod
from dovetail.notices.notice import Notice
from dovetail.ports.cloud import NoCapacity
from dovetail.ports.objects import Eviction
from dovetail.telemetry.metrics.karpenters import catalogue as meters
from dovetail.telemetry.metrics.karpenters.lifecycle import claim_created, ordered
from dovetail.telemetry.metrics.summaries import Summaries
from tests.activities import test_departing, test_draining, test_gated_orders, test_joining, test_launching
from tests.activities.lives import Killed
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod, is_now
from worlds.disruption import a_claim, a_node
from worlds.fakes import FakeCloud, FakeNotices, World

Counted = tuple[str, float, dict[str, object]]


class Meter:
    """What OpenTelemetry's SDK received: (name, number or sum of seconds, labels), by name."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider(metric_readers=[self.reader])

    @property
    def kept(self) -> list[Counted]:
        data = self.reader.get_metrics_data()
        if data is None:
            return []
        return [
            (metric.name, _value(point), dict(point.attributes or {}))
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        ]


def _value(point: object) -> float:
    if isinstance(point, HistogramDataPoint):
        return point.sum
    assert isinstance(point, NumberDataPoint)
    return point.value


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    made = Meter()
    monkeypatch.setattr(
        meters, "INSTRUMENTS", replace(meters.INSTRUMENTS, meter=made.provider.get_meter("test"), made={})
    )
    monkeypatch.setattr(meters, "BESIDE", meters.BESIDE.on(made.provider.get_meter("test")))
    monkeypatch.setattr(meters, "QUANTILES", Summaries(meters.SUMMARIES, "karpenter_"))
    return made


@pytest.fixture
def environment(meter: Meter) -> ActivityEnvironment:
    return ActivityEnvironment()


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


@pytest.mark.parametrize("relaxed", ["false", "true"])
def test_a_claim_that_is_created_is_counted_with_why(meter: Meter, relaxed: str) -> None:
    """MET-1."""
    annotations = {names.MIN_VALUES_RELAXED: "true"} if relaxed == "true" else {}

    claim_created(a_claim(annotations=annotations), "provisioned")

    labels = {"reason": "provisioned", "nodepool": "pool", "min_values_relaxed": relaxed}
    assert meter.kept == [("karpenter_nodeclaims_created_total", 1, labels)]


async def test_a_launch_that_takes_too_long_counts_a_disruption(environment: ActivityEnvironment, meter: Meter) -> None:
    """LIF-41."""
    stage = test_launching.new_stage()
    stage.world.clock = 1300.0

    await environment.run(stage.step.launch_instance, test_launching.REF)

    ((name, value, labels),) = meter.kept
    assert (name, value, labels["reason"]) == ("karpenter_nodeclaims_disrupted_total", 1, "launch_timeout")


async def test_a_node_that_does_not_come_counts_a_disruption(environment: ActivityEnvironment, meter: Meter) -> None:
    """LIF-43."""
    world = World(clock=1900.0)
    world.put(test_joining.a_launched_claim())

    await environment.run(test_joining.stage_over(world).step.await_registered, test_joining.REF)

    ((name, value, labels),) = meter.kept
    assert (name, value, labels["reason"]) == ("karpenter_nodeclaims_disrupted_total", 1, "registration_timeout")


async def test_a_repair_that_is_carried_out_is_counted_once(meter: Meter) -> None:
    """GCR-16: a second try finds the claim leaving."""
    world = World()
    world.put(a_joined_claim(), replace(a_joined_node(), conditions=(test_gated_orders.silent(0.0),)))

    for _ in range(2):
        await test_gated_orders.carry_out(world, test_gated_orders.UNHEALTHY)

    assert {name.removeprefix("karpenter_"): value for name, value, _ in meter.kept} == {
        "nodeclaims_disrupted_total": 1,
        "nodeclaims_unhealthy_disrupted_total": 1,
    }


async def test_a_termination_counts_node_and_claim_once(environment: ActivityEnvironment, meter: Meter) -> None:
    """BEH-28, BEH-67: durations from the deletion and from the creation."""
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
        "dovetail_nodes_termination_duration_seconds": 60.0,
        "nodeclaims_terminated_total": 1,
        "nodeclaims_termination_duration_seconds": 60.0,
    }
    summary = [*meters.QUANTILES.lines()]
    assert 'karpenter_nodes_termination_duration_seconds{nodepool="pool",quantile="0.5"} 60' in summary
    assert 'karpenter_nodes_termination_duration_seconds_count{nodepool="pool"} 1' in summary


async def test_an_instance_that_took_its_time_shows_how_long(environment: ActivityEnvironment, meter: Meter) -> None:
    stage = test_departing.new_stage()
    terminating = is_now(names.INSTANCE_TERMINATING, changed=1000.0)
    stage.world.put(a_joined_claim(deleting_since=1000.0, conditions=(terminating,)))
    departure = await environment.run(stage.departing.begin_departure, ClaimRef(name="pool-1", uid="uid-pool-1"))
    stage.world.clock = 1042.0

    await environment.run(stage.terminating.terminate_instance, departure)

    name = "karpenter_nodeclaims_instance_termination_duration_seconds"
    first, *released = meter.kept
    assert first == (name, 42.0, {"nodepool": "pool"})
    assert [(kept, value) for kept, value, _ in released] == [
        ("karpenter_nodeclaims_terminated_total", 1),
        ("karpenter_nodeclaims_termination_duration_seconds", 42.0),
    ]


async def test_evictions_are_counted_by_their_answer(environment: ActivityEnvironment, meter: Meter) -> None:
    """TRM-26, BEH-30, BEH-31, BEH-33."""
    stage = test_draining.new_stage()
    pod = a_web_pod()
    stage.holds(pod)
    stage.pods.answers[pod.uid] = "blocked"
    stage.world.at(1000.05, stage.pods.answers.clear)
    stage.says()

    await environment.run(stage.drain.drain_node, test_draining.DEPARTURE)
    await environment.run(stage.detach.await_detached, test_draining.DEPARTURE)

    assert meter.kept == [
        ("karpenter_pods_eviction_requests_total", 1, {"code": "429"}),
        ("karpenter_pods_eviction_requests_total", 1, {"code": "200"}),
        ("karpenter_pods_drained_total", 1, {"reason": "Drifted"}),
        ("karpenter_nodes_drained_total", 1, {"nodepool": "pool"}),
    ]
    assert isinstance(stage.cloud, FakeCloud)


@pytest.mark.parametrize(
    ("dies", "expected"),  # how often it was asked, counted, told of
    [("before the request", (2, 1, 1)), ("before the count", (1, 0, 0)), ("before the event", (1, 1, 0))],
)
async def test_a_worker_that_dies_around_an_eviction_counts_and_tells_of_it_once_at_most(
    meter: Meter, monkeypatch: pytest.MonkeyPatch, dies: str, expected: tuple[int, int, int]
) -> None:
    """DUR-13: the next worker finds a pod that is leaving already."""
    stage = test_draining.new_stage()
    pod = a_web_pod()
    stage.holds(pod)
    stage.pods.lasts = 30.0
    evict, publish = stage.pods.evict, FakeNotices.publish

    async def evict_and_die(of: Pod) -> Eviction:
        if dies == "before the count":
            await evict(of)
        else:
            stage.world.ledger.append(f"evict {of.name}")
        raise Killed

    async def die_at_its_event(self: FakeNotices, *notices: Notice) -> None:
        if any(notice.reason == "Evicted" for notice in notices):
            raise Killed
        await publish(self, *notices)

    with monkeypatch.context() as dying:
        if dies == "before the event":
            dying.setattr(FakeNotices, "publish", die_at_its_event)
        else:
            dying.setattr(stage.pods, "evict", evict_and_die)
        with pytest.raises(Killed):
            await stage.drain.drain_node(test_draining.DEPARTURE)
    found = await stage.drain.drain_node(test_draining.DEPARTURE)

    assert found == DrainOutcome(message="drained")
    counted = sum(value for name, value, _ in meter.kept if name == "karpenter_pods_drained_total")
    told = [notice.reason for notice in stage.world.notices].count("Evicted")
    assert (len(stage.evictions()), counted, told) == expected


async def test_a_drain_that_is_looked_at_again_is_counted_once(environment: ActivityEnvironment, meter: Meter) -> None:
    """TRM-19: also by a second try of the step that has written the condition already."""
    stage = test_draining.new_stage()
    for _ in range(2):
        await environment.run(stage.detach.await_detached, test_draining.DEPARTURE)

    assert meter.kept == [("karpenter_nodes_drained_total", 1, {"nodepool": "pool"})]


async def test_a_pod_that_lingers_is_counted_once(environment: ActivityEnvironment, meter: Meter) -> None:
    """TRM-28: however often it is deleted by force."""
    stage = test_draining.new_stage()
    pod = a_web_pod()
    stage.holds(pod)
    stage.pods.lingers = True
    stage.world.at(1030.0, lambda: stage.world.kill(pod))
    stage.says(deadline=990.0)

    await environment.run(stage.drain.drain_node, test_draining.DEPARTURE)

    assert len(stage.forced()) > 3
    assert meter.kept == [("karpenter_pods_drained_total", 1, {"reason": "Drifted"})]


def test_a_repair_counts_the_claim_its_pods_and_the_condition(meter: Meter) -> None:
    """GCR-16: the condition's type in snake case."""
    claim = a_joined_claim(image_id="ami-1")
    order = DeleteClaim(
        claim=ClaimRef(name=claim.name, uid=claim.uid), reason="unhealthy", condition="KernelReady", pods=3
    )

    ordered(claim, order)

    found = {name.removeprefix("karpenter_"): (value, labels) for name, value, labels in meter.kept}
    assert found["nodeclaims_disrupted_total"][0] == 1
    assert found["pods_disruption_initiated_total"][0] == 3
    assert found["nodeclaims_unhealthy_disrupted_total"] == (
        1,
        {
            "condition": "kernel_ready",
            "nodepool": "pool",
            "capacity_type": "",
            "image_id": "ami-1",
            "termination_mode": "graceful",
        },
    )


@pytest.mark.parametrize("reason", ["expired", "garbage_collected"])
def test_a_claim_that_is_deleted_by_itself_is_counted_with_its_pods(meter: Meter, reason: str) -> None:
    """LIF-63, GCR-5, MET-2."""
    claim = a_joined_claim(termination_grace=60.0)

    ordered(claim, DeleteClaim(claim=ClaimRef(name=claim.name, uid=claim.uid), reason=reason, pods=2))

    labels = {"nodepool": "pool", "capacity_type": "", "termination_mode": "eventual", "consolidation_policy": ""}
    assert meter.kept == [
        ("karpenter_nodeclaims_disrupted_total", 1, {"reason": reason, **labels}),
        ("karpenter_pods_disruption_initiated_total", 2, {"reason": reason, **labels}),
    ]


@pytest.mark.parametrize(("grace", "mode"), [(None, "graceful"), (0.0, "forceful"), (60.0, "eventual")])
def test_the_mode_of_a_termination_is_its_grace(meter: Meter, grace: float | None, mode: str) -> None:
    """MET-2."""
    claim = a_joined_claim(termination_grace=grace)

    ordered(claim, DeleteClaim(claim=ClaimRef(name=claim.name, uid=claim.uid), reason="expired"))

    assert [labels["termination_mode"] for _, _, labels in meter.kept] == [mode]


def test_a_claim_that_is_surplus_is_no_disruption(meter: Meter) -> None:
    """MET-1: upstream's reasons and no others."""
    claim = a_joined_claim()

    ordered(claim, DeleteClaim(claim=ClaimRef(name=claim.name, uid=claim.uid), reason="static_scale_down", pods=3))

    assert meter.kept == []
