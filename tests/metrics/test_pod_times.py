"""Times of pods: what was seen pending is counted once, at the change that ends its wait (MET-1, MET-6, BEH-117)."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.model.pods import Pod
from dovetail.telemetry.metrics.karpenters import pod_times
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from worlds.disruption import a_pod
from worlds.fakes import on_duty

CREATED = 1000.0


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    monkeypatch.setattr(pod_times, "observe", lambda name, seconds, labels: found.append((name, seconds)))
    return found


class Clock:
    def __init__(self) -> None:
        self.now = CREATED

    def __call__(self) -> float:
        return self.now


def pending(**changes: Any) -> Pod:
    waiting = replace(a_pod("", "1"), node_name="", phase="Pending", ready=None, created=CREATED)
    return replace(waiting, **changes)


def gauges(times: PodTimes) -> dict[str, float]:
    return {sample.name: sample.value for sample in times.samples()}


def test_a_pod_is_counted_when_it_is_bound_and_when_it_is_ready(observed: list[tuple[str, float]]) -> None:
    clock = Clock()
    times, pod = PodTimes(clock, duties=on_duty()), pending()
    bound = replace(pod, node_name="n1")
    ready = replace(bound, phase="Running", ready=True)
    times.heard(None, pod)
    times.decided(pod.uid, CREATED + 2.0, placed=True)
    clock.now = CREATED + 5.0
    times.heard(pod, bound)
    clock.now = CREATED + 9.0
    times.heard(bound, ready)
    times.heard(ready, replace(ready, resource_version="9"))

    assert observed == [
        ("pods_bound_duration_seconds", 5.0),
        ("pods_provisioning_bound_duration_seconds", 3.0),
        ("pods_startup_duration_seconds", 9.0),
        ("pods_provisioning_startup_duration_seconds", 7.0),
    ]
    assert gauges(times) == {}


def test_a_pod_that_was_never_seen_pending_counts_nothing(observed: list[tuple[str, float]]) -> None:
    """MET-6: a new process begins anew."""
    times = PodTimes(Clock(), duties=on_duty())
    running = pending(phase="Running", node_name="n1")
    times.heard(None, running)
    times.heard(running, replace(running, ready=True))

    assert (observed, gauges(times)) == ([], {})


@pytest.mark.parametrize("end", [None, "Succeeded", "Failed"])
def test_a_pod_that_ends_or_is_deleted_observes_nothing(observed: list[tuple[str, float]], end: str | None) -> None:
    """MET-6, BEH-117: it would be negative."""
    times, pod = PodTimes(Clock(), duties=on_duty()), pending()
    times.heard(None, pod)
    times.heard(pod, None if end is None else replace(pod, phase=end))

    assert (observed, gauges(times)) == ([], {})


def test_gauges_say_how_long_a_pod_has_waited_for_what() -> None:
    """BEH-117, PLC-236: no room in a later round takes the time of the first success away."""
    clock = Clock()
    times, pod = PodTimes(clock, duties=on_duty()), pending()
    times.heard(None, pod)
    times.acknowledged(pod.uid, CREATED + 1.0)
    clock.now = CREATED + 4.0
    undecided = gauges(times)
    times.decided(pod.uid, CREATED + 3.0, placed=True)
    placed = gauges(times)
    times.heard(pod, replace(pod, node_name="n"))
    bound = gauges(times)
    times.decided(pod.uid, CREATED + 4.0, placed=False)

    waits = {"pods_unstarted_time_seconds": 4.0, "pods_unbound_time_seconds": 4.0}
    assert undecided == {**waits, "pods_provisioning_scheduling_undecided_time_seconds": 3.0}
    provisioning = {"pods_provisioning_unstarted_time_seconds": 1.0, "pods_provisioning_unbound_time_seconds": 1.0}
    assert placed == {**waits, **provisioning}
    assert bound == {name: seconds for name, seconds in placed.items() if "unstarted" in name}
    assert gauges(times) == {"pods_unstarted_time_seconds": 4.0}


def test_what_waits_for_devices_of_resource_claims_has_the_label_of_upstream(monkeypatch: pytest.MonkeyPatch) -> None:
    """MET-1, since 1.15: the waits to be bound alone."""
    kept: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(pod_times, "observe", lambda name, seconds, labels: kept.append((name, labels)))
    times, pod = PodTimes(Clock(), duties=on_duty()), pending()
    pod = replace(pod, shape=replace(pod.shape, uses_resource_claims=True))
    times.heard(None, pod)
    waits = {sample.name: dict(sample.labels).get("dynamic_resources") for sample in times.samples()}
    times.heard(pod, replace(pod, node_name="n", phase="Running", ready=True))

    assert waits == {"pods_unstarted_time_seconds": None, "pods_unbound_time_seconds": "true"}
    assert kept == [
        ("pods_bound_duration_seconds", {"dynamic_resources": "true"}),
        ("pods_startup_duration_seconds", {}),
    ]


def test_the_pass_under_way_shows_its_pods_and_for_how_long_it_has_lasted() -> None:
    """MET-1p."""
    clock = Clock()
    times = PodTimes(clock, duties=on_duty())

    def shown() -> dict[str, float]:
        return {sample.name: sample.value for sample in times.pass_samples()}

    times.pass_began(7)
    clock.now += 3.0
    assert shown() == {"scheduler_queue_depth": 7.0, "scheduler_unfinished_work_seconds": 3.0}
    times.pass_ended()
    assert shown() == {"scheduler_queue_depth": 0.0, "scheduler_unfinished_work_seconds": 0.0}
