"""One worker publishes what is true of the cluster; counters are everybody's."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dovetail.activities.shared.every_step.step_health import StepHealth
from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import NotSeenYet
from dovetail.telemetry.metrics.duties import DISRUPTION, PROVISIONING, UPKEEP, Duties
from dovetail.telemetry.metrics.karpenters.catalogue import GAUGE_LOOPS, GAUGES
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from tests.worker.test_endpoints import Still
from worlds.disruption import a_pair, a_pod, a_world
from worlds.fakes import a_scrape, on_duty


def counting() -> tuple[InMemoryMetricReader, Any]:
    reader = InMemoryMetricReader()
    return reader, MeterProvider(metric_readers=[reader]).get_meter("test")


async def scraped(snapshot: Snapshot, duties: Duties, reader: InMemoryMetricReader | None = None) -> list[str]:
    times = PodTimes(duties=duties)
    scrape = a_scrape(
        view=Still(snapshot),  # a scrape asks nothing else of it
        supported=lambda: snapshot.supported_node_classes,
        settings=DisruptionSettings(),
        reader=reader or InMemoryMetricReader(),
        duties=duties,
        times=times,
    )
    return (await scrape.text()).splitlines()


async def test_two_workers_show_each_gauge_of_the_cluster_once() -> None:
    """MET-7: a sum over both is what one of them shows."""
    world = a_world([a_pair("n1"), a_pair("n2")], [a_pod("n1"), a_pod("n2")])
    holder, other = StepHealth(), StepHealth()
    holder.begin("c/caretaker", "keep_up", None, 1)
    other.begin("c/scheduler", "await_provisioning_plan", None, 1)

    speaks = await scraped(world, on_duty(holder.works_on))
    silent = await scraped(world, on_duty(other.works_on))

    def families(lines: list[str]) -> set[str]:
        """Without summaries, which count what this worker did, and here what other tests of the process did."""
        typed = [line.split() for line in lines if line.startswith("# TYPE")]
        return {name for _, _, name, kind in typed if kind != "summary"}

    shared = families(speaks) & families(silent)
    own = {"karpenter_build_info", "leader_election_master_status"}
    assert {name for name in families(silent) if name.startswith("karpenter_scheduler_")} == {
        "karpenter_scheduler_queue_depth",
        "karpenter_scheduler_unfinished_work_seconds",
    }, "the worker that plans shows what it plans"
    assert shared == own | {name for name in shared if name.startswith("dovetail_")}
    assert {"karpenter_nodes_allocatable", "karpenter_pods_state", "karpenter_nodepools_usage"} <= families(speaks)
    gauges = ("karpenter_nodes", "karpenter_pods", "karpenter_cluster")
    assert not [name for name in families(silent) if name.startswith(gauges)]
    leader = 'leader_election_master_status{name="karpenter-leader-election"} '
    assert f"{leader}1" in speaks
    assert f"{leader}0" in silent


async def test_a_gauge_of_the_last_round_is_shown_where_the_rounds_are_made() -> None:
    """An hour ago another worker had the loop; what it found then is no answer."""
    reader, meter = counting()
    for name in ("scheduler_unschedulable_pods_count", "voluntary_disruption_eligible_nodes"):
        meter.create_gauge(f"karpenter_{name}").set(3)
    meter.create_counter("karpenter_nodes_created_total").add(2)
    world = a_world([])

    planner = await scraped(world, on_duty(lambda loop: loop == PROVISIONING), reader)
    decider = await scraped(world, on_duty(lambda loop: loop == DISRUPTION), reader)

    assert "karpenter_scheduler_unschedulable_pods_count 3" in planner
    assert "karpenter_voluntary_disruption_eligible_nodes 3" not in planner
    assert "karpenter_scheduler_unschedulable_pods_count 3" not in decider
    assert "karpenter_voluntary_disruption_eligible_nodes 3" in decider
    assert "karpenter_nodes_created_total 2" in planner and "karpenter_nodes_created_total 2" in decider


def test_every_gauge_of_a_last_round_has_the_loop_that_makes_the_rounds() -> None:
    """MET-7."""
    assert {f"karpenter_{name}" for name in GAUGES} <= GAUGE_LOOPS.keys()


def test_the_last_holder_goes_on_while_temporal_is_away_and_stops_when_it_is_back() -> None:
    """MET-7."""
    here, away = {UPKEEP}, [False]
    duties = on_duty(here.__contains__, lambda: away[0])
    assert duties.has(UPKEEP) and not duties.has(PROVISIONING)

    here.clear()
    away[0] = True
    assert duties.has(UPKEEP) and not duties.has(PROVISIONING)
    away[0] = False
    assert not duties.has(UPKEEP)
    away[0] = True
    assert not duties.has(UPKEEP), "whoever had lost it before has no claim to it"


def test_a_step_that_has_ended_is_nobodys() -> None:
    health = StepHealth()
    step = health.begin("c/caretaker", "keep_up", None, 1)
    assert health.works_on(UPKEEP) and not health.works_on(DISRUPTION)
    health.end(step)
    assert not health.works_on(UPKEEP)


def test_a_pods_wait_is_counted_by_one_of_two_workers(monkeypatch: Any) -> None:
    """MET-1m: both see the same pod."""
    seen: list[str] = []
    monkeypatch.setattr(
        "dovetail.telemetry.metrics.karpenters.pod_times.observe", lambda name, seconds, labels: seen.append(name)
    )
    waiting = replace(a_pod("", "1"), node_name="", phase="Pending", ready=None)
    ready = replace(waiting, node_name="n1", phase="Running", ready=True)
    for duties in (on_duty(), on_duty(lambda loop: False)):
        times = PodTimes(lambda: waiting.created + 5.0, duties=duties)
        times.heard(None, waiting)
        times.heard(waiting, ready)
    assert seen == ["pods_bound_duration_seconds", "pods_startup_duration_seconds"]


async def test_who_asks_while_a_scrape_runs_gets_its_answer() -> None:
    """One at a time: a second Prometheus costs nothing."""
    asked: list[int] = []

    class Counting(Still):
        def snapshot(self, reads: object = None) -> Snapshot:
            asked.append(1)
            return self.shown

    scrape = a_scrape(
        view=Counting(a_world([a_pair("n1")])),
        supported=frozenset,
        settings=DisruptionSettings(),
        reader=InMemoryMetricReader(),
    )
    answers = await asyncio.gather(scrape.pieces(), scrape.pieces(), scrape.pieces())
    assert answers[0] is answers[1] is answers[2]
    assert len(asked) == 1
    await scrape.pieces()
    assert len(asked) == 2


async def test_a_view_that_cannot_be_used_says_for_how_long(monkeypatch: Any) -> None:
    """MET-1i."""

    class Broken(Still):
        def snapshot(self, reads: object = None) -> Snapshot:
            raise NotSeenYet("cluster view", "the watch is broken")

    clock = [1000.0]
    monkeypatch.setattr("dovetail.telemetry.metrics.scrape.time", SimpleNamespace(monotonic=lambda: clock[0]))
    scrape = a_scrape(
        view=Broken(Snapshot(now=1.0)),
        supported=frozenset,
        settings=DisruptionSettings(),
        reader=InMemoryMetricReader(),
    )
    assert "karpenter_cluster_state_unsynced_time_seconds 0" in (await scrape.text()).splitlines()
    clock[0] += 42.0
    lines = (await scrape.text()).splitlines()
    assert "karpenter_cluster_state_unsynced_time_seconds 42" in lines
    assert "karpenter_cluster_state_synced 0" in lines


def test_a_kind_may_have_several_listeners() -> None:
    """Conditions and phases of NodeClaims are followed by two parts of the metrics."""
    cache, heard = Cache(CLUSTER_KINDS), list[tuple[str, bool]]()
    raw = {"metadata": {"name": "n", "uid": "n", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    cache.listen("Node", lambda old, new: heard.append(("first", new is not None)))
    cache.apply("Node", raw, deleted=False)
    cache.listen("Node", lambda old, new: heard.append(("second", new is not None)))
    assert heard == [("first", True), ("second", True)]
    cache.apply("Node", {**raw, "metadata": {**raw["metadata"], "resourceVersion": "2"}}, deleted=True)
    assert heard[2:] == [("first", False), ("second", False)]
