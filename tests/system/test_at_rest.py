"""A worker at rest costs next to nothing, whatever state its cluster rests in.

Of a real worker process: its processor time by the kernel's account, and the events of its singletons' histories. One
state that once took all of a core is looked at in every run, all of them in the soak. What kubelets write at rest is
counted in looks.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest
from temporalio.service import RPCError

from dovetail.cli.demo.temporal_server import TemporalServer, free_ports
from dovetail.messages.workflow_ids import caretaker_id, scheduler_id
from tests.adapters.simulator.manifests import a_pdb
from tests.system.beside import a_disruption_that_waits, a_settled_node, beside
from tests.system.test_metrics import scrape
from tests.waiting import until_answered
from worlds.manifests import node_manifest, pod_manifest
from worlds.patience import CROWDED
from worlds.stage.running import shared_stage
from worlds.stage.stage import Stage, node_class, node_pool

pytestmark = pytest.mark.temporal

SHARE: Final = 0.03  # of a core
WATCHED_SECONDS: Final = 60.0
EVENTS_A_MINUTE: Final = 1
SETTLED_SECONDS: Final = 10.0  # without a new event
LONGEST_SECONDS: Final = CROWDED * 150.0
HEARTBEATS: Final = 40
HEARTBEAT_SECONDS: Final = 0.3  # more than the quiet that a look waits for: each would be a look of its own

SMALL: Final = "c-2x-amd64-linux"
State = Callable[[Stage], Awaitable[None]]


async def nothing(stage: Stage) -> None:
    stage.start_worker()


async def pods_without_a_pool(stage: Stage) -> None:
    stage.deploy(3)
    stage.start_worker()


async def a_ready_pool_without_pods(stage: Stage) -> None:
    stage.apply_pool()
    stage.start_worker()


async def a_missing_class(stage: Stage) -> None:
    stage.world.apply(node_pool([SMALL]))
    stage.deploy(2)
    stage.start_worker()


async def a_class_of_another_cloud(stage: Stage) -> None:
    pool = node_pool([SMALL])
    pool["spec"]["template"]["spec"]["nodeClassRef"] = {"group": "else.where", "kind": "Other", "name": "default"}
    stage.world.apply(pool)
    stage.deploy(2)
    stage.start_worker()


async def the_only_pool_deleted_while_its_pods_become_pending(stage: Stage) -> None:
    """Its NodeClass's next moment lay in the past for ever."""
    await a_settled_node(stage)
    stage.world.delete("NodePool", "pool")
    await stage.until(lambda: stage.world.get("NodePool", "pool") is None, 60, "the pool is gone")
    for node in stage.managed_nodes():
        stage.world.delete("Node", node["metadata"]["name"])
    stage.deploy(3)
    await stage.until(lambda: stage.nothing_left() and stage.running_pods() == 0, 90, "its pods are pending")


async def a_leaving_pool_whose_node_cannot_be_drained(stage: Stage) -> None:
    await a_blocked_drain(stage)
    stage.world.delete("NodePool", "pool")


async def a_leaving_pool_with_pending_pods(stage: Stage) -> None:
    await a_blocked_drain(stage)
    stage.world.delete("NodePool", "pool")
    stage.deploy(3, "more")


async def pods_that_fit_nowhere(stage: Stage) -> None:
    stage.apply_pool()
    stage.world.apply(pod_manifest("huge", cpu="4000"))
    stage.start_worker()


async def pods_that_want_a_volume_that_is_missing(stage: Stage) -> None:
    stage.apply_pool()
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
    stage.world.apply(pod_manifest("lost", volumes=[volume]))
    stage.start_worker()


async def pods_of_another_scheduler(stage: Stage) -> None:
    stage.apply_pool()
    stage.world.apply(pod_manifest("theirs", schedulerName="another"))
    stage.start_worker()


async def a_pool_at_its_limit(stage: Stage) -> None:
    three_pods_for_a_pool_limited_to(stage, "2")
    await stage.until(lambda: stage.running_pods() == 1, 90, "one pod runs")


async def a_pool_whose_limit_is_nothing(stage: Stage) -> None:
    three_pods_for_a_pool_limited_to(stage, "0")


def three_pods_for_a_pool_limited_to(stage: Stage, cpu: str) -> None:
    stage.world.apply(node_class())
    pool = node_pool([SMALL])
    pool["spec"]["limits"] = {"cpu": cpu}
    stage.world.apply(pool)
    stage.deploy(3)
    stage.start_worker()


async def a_running_pod(stage: Stage) -> None:
    await a_settled_node(stage)


async def a_blocked_drain(stage: Stage) -> None:
    await a_settled_node(stage)
    stage.world.apply(a_pdb(maxUnavailable=0))
    stage.world.delete("NodeClaim", stage.claims()[0]["metadata"]["name"])


async def a_replacement_that_never_joins(stage: Stage) -> None:
    await a_disruption_that_waits(stage)


async def an_undone_disruption_and_a_resting_node(stage: Stage) -> None:
    claim = await a_disruption_that_waits(stage)
    code, _, said = await stage.dovetail("cancel", claim["status"]["nodeName"], "--reason", "at rest")
    assert code == 0, said
    await stage.until(lambda: not stage.tainted(), 60, "the node is given back")


async def an_empty_node_without_a_budget(stage: Stage) -> None:
    stage.apply_pool(budgets=[{"nodes": "0"}])
    stage.deploy(1)
    stage.start_worker()
    await stage.until(lambda: stage.running_pods() == 1, 90, "the pod runs")
    stage.deploy(0)


async def a_drifted_node_that_must_not_be_disrupted(stage: Stage) -> None:
    stage.apply_pool()
    stage.world.apply(
        {**pod_manifest("alone", cpu="1"), "metadata": {
            "name": "alone", "namespace": "default", "annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
    )  # fmt: skip
    stage.start_worker()
    await stage.until(lambda: stage.running_pods() == 1, 90, "the pod runs")
    pool = node_pool([SMALL])
    pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
    stage.world.apply(pool)


async def nodes_of_somebody_else(stage: Stage) -> None:
    stage.apply_pool()
    stage.world.apply(node_manifest("theirs"))
    stage.start_worker()


async def unreadable_objects(stage: Stage) -> None:
    """A NodePool and a pod that no API server would keep, beside a pool with a node and a pod that fits nowhere."""
    await a_settled_node(stage)
    pool, pod = node_pool([SMALL], name="unreadable"), pod_manifest("unreadable", cpu="much")
    pool["spec"]["limits"] = {"cpu": "much"}
    for number, body in enumerate((pool, pod)):
        body["metadata"] |= {"uid": f"unreadable-{number}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        stage.world.put_raw(body)
    stage.world.apply(pod_manifest("huge", cpu="4000"))


async def paused(stage: Stage) -> None:
    stage.apply_pool()
    stage.start_worker()
    await running(stage)
    code, _, said = await stage.dovetail("pause", "all", "--reason", "rest")
    assert code == 0, said
    stage.deploy(3)


async def no_capacity(stage: Stage) -> None:
    """Each claim is given up; the shortage is remembered."""
    stage.apply_pool()
    stage.world.never_join()
    stage.deploy(1)
    stage.start_worker()
    await stage.until(lambda: bool(stage.claims()), 60, "a claim is launched and never joins")


STATES: Final[tuple[State, ...]] = (
    *(nothing, pods_without_a_pool, a_ready_pool_without_pods, a_missing_class, a_class_of_another_cloud),
    *(a_leaving_pool_whose_node_cannot_be_drained, a_leaving_pool_with_pending_pods, pods_that_fit_nowhere),
    *(pods_that_want_a_volume_that_is_missing, pods_of_another_scheduler, a_pool_at_its_limit, no_capacity),
    *(a_pool_whose_limit_is_nothing, a_running_pod, a_blocked_drain, a_replacement_that_never_joins, paused),
    *(an_undone_disruption_and_a_resting_node, an_empty_node_without_a_budget, nodes_of_somebody_else),
    *(a_drifted_node_that_must_not_be_disrupted, unreadable_objects),
)


@beside
async def test_the_only_pool_may_be_deleted_while_its_pods_become_pending(stage: Stage) -> None:
    await the_only_pool_deleted_while_its_pods_become_pending(stage)
    await settled(stage)
    share, events = await cost(stage, 20.0)
    assert share <= SHARE and events <= EVENTS_A_MINUTE, f"{share:.1%} of a core, {events} events"


@beside
async def test_kubelets_heartbeats_cost_a_worker_at_rest_no_look_and_no_write(stage: Stage) -> None:
    """Played faster than a thousand kubelets send them. The label that comes last is a change: once a look has followed
    it, the heartbeats before it have been seen too."""
    metrics, health = free_ports(2)
    stage.start_worker(METRICS_PORT=str(metrics), HEALTH_PROBE_PORT=str(health))
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")
    await settled(stage)
    [node] = stage.managed_nodes()
    name, began = node["metadata"]["name"], time.time()
    looks, events = await looks_of(metrics), await histories(stage)

    for number in range(HEARTBEATS):
        beat(stage, name, number)
        await asyncio.sleep(HEARTBEAT_SECONDS)
    writes = [entry for entry in stage.writes_of_ours(began) if entry.operation != "cloud:list"]
    before = await looks_of(metrics)
    stage.world.patch("Node", name, {"metadata": {"labels": {"example.com/last": "yes"}}})

    async def looked() -> bool:
        return await looks_of(metrics) > before

    await until_answered(looked, 30, "the label is looked at")
    extra = await looks_of(metrics) - looks - 1
    assert extra <= HEARTBEATS / 10, f"{extra:.0f} looks for {HEARTBEATS} heartbeats"
    assert not writes
    assert await histories(stage) - events <= EVENTS_A_MINUTE


def beat(stage: Stage, name: str, number: int) -> None:
    """What a kubelet writes when nothing has changed."""
    node = stage.world.get("Node", name)
    assert node is not None
    at = f"2026-08-20T12:{number // 60:02}:{number % 60:02}Z"
    conditions = [{**condition, "lastHeartbeatTime": at} for condition in node["status"]["conditions"]]
    stage.world.patch("Node", name, {"status": {"conditions": conditions}}, "status")


async def looks_of(port: int) -> float:
    """How often the worker has looked for something to disrupt."""
    return (await scrape(port)).get('dovetail_round_duration_seconds_count{loop="disruption"}', 0.0)


@pytest.mark.soak
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
async def test_a_worker_at_rest_costs_next_to_nothing(
    state: State, tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer
) -> None:
    folder = tmp_path_factory.mktemp("rest")
    stage = shared_stage(folder, folder.name, temporal_server)
    try:
        await state(stage)
        await running(stage)
        await settled(stage)
        share, events = await cost(stage, WATCHED_SECONDS)
        print(f"\n{state.__name__}: {share:.2%} of a core, {events} events a minute")
        assert share <= SHARE, f"{share:.1%} of a core"
        assert events <= EVENTS_A_MINUTE, f"{events} events"
    finally:
        await stage.close()


async def running(stage: Stage) -> None:
    """Until both singletons have begun."""
    await until_answered(lambda: histories(stage), 150, "both singletons have begun")


async def settled(stage: Stage) -> None:
    """Until no event was written for ten seconds."""
    before, since = await histories(stage), time.monotonic()
    async with asyncio.timeout(LONGEST_SECONDS):
        while time.monotonic() - since < SETTLED_SECONDS:
            await asyncio.sleep(0.5)
            now = await histories(stage)
            if now != before:
                before, since = now, time.monotonic()


async def cost(stage: Stage, seconds: float) -> tuple[float, int]:
    """The share of a core that the worker takes, and the events that its singletons write, over so many seconds."""
    [worker] = stage.workers
    began, used, events = time.monotonic(), processor_seconds(worker.pid), await histories(stage)
    await asyncio.sleep(seconds)
    share = (processor_seconds(worker.pid) - used) / (time.monotonic() - began)
    return share, await histories(stage) - events


async def histories(stage: Stage) -> int:
    """The events of both singletons; none before both run."""
    client = await stage.client()
    try:
        found: list[Any] = [
            await client.get_workflow_handle(identity).describe()
            for identity in (scheduler_id(stage.cluster), caretaker_id(stage.cluster))
        ]
    except RPCError:
        return 0
    return sum(described.history_length for described in found)


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
