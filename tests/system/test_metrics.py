"""A running worker, scraped: what operators see of a node's life, under Karpenter's names."""

import asyncio
import urllib.request
from functools import partial

import pytest

from dovetail.cli.demo.temporal_server import free_ports
from tests.system.beside import beside
from tests.waiting import until_answered
from worlds.stage.stage import Stage

pytestmark = pytest.mark.temporal

ENDED = "operator_nodeclaim_termination_duration_seconds_count{"  # the last to be counted: when the watch tells of it
READY = (  # likewise
    'operator_nodeclaim_status_condition_transitions_total{dovetail_sh_embeddednodeclass="default",'
    'karpenter_sh_nodepool="pool",reason="Ready",status="True",type="Ready"}'
)


def fetch(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        text: str = answer.read().decode()
        return text


async def scrape(port: int, path: str = "/metrics") -> dict[str, float]:
    """Every series with its value."""
    text = await asyncio.to_thread(fetch, port, path)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)}


async def scrape_with(port: int, beginning: str) -> dict[str, float]:
    """A scrape that has a series which begins so; nothing where it has none yet."""
    found = await scrape(port)
    return found if any(series.startswith(beginning) for series in found) else {}


@beside
async def test_a_worker_that_is_scraped_shows_a_nodes_life(stage: Stage) -> None:
    """MET-1: names, labels; BEH-28: one sample each."""
    metrics, health = free_ports(2)
    stage.start_worker(METRICS_PORT=str(metrics), HEALTH_PROBE_PORT=str(health))
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")
    while_it_runs = await until_answered(
        partial(scrape_with, metrics, READY), 30, "the worker has seen that it is ready"
    )
    assert await asyncio.to_thread(fetch, health, "/readyz") == "ok\n"

    stage.world.scale("web", 0)
    await stage.until(stage.nothing_left, 90, "no NodeClaim, Node or instance is left")
    afterwards = await until_answered(partial(scrape_with, metrics, ENDED), 30, "the end of the claim is counted")

    created = 'karpenter_nodeclaims_created_total{min_values_relaxed="false",nodepool="pool",reason="provisioned"}'
    assert while_it_runs[created] == 1
    assert sum(v for s, v in while_it_runs.items() if s.startswith("karpenter_nodes_created_total{")) == 1
    assert sum(v for s, v in while_it_runs.items() if s.startswith("karpenter_pods_state{")) == 1
    assert while_it_runs["karpenter_cluster_state_synced"] == 1
    for name in ("nodes_terminated_total", "nodes_drained_total", "nodeclaims_terminated_total"):
        assert sum(v for s, v in afterwards.items() if s.startswith(f"karpenter_{name}{{")) == 1, name
    termination = "karpenter_nodes_termination_duration_seconds"
    assert afterwards[f'{termination}_count{{nodepool="pool"}}'] == 1
    assert afterwards[f'{termination}{{nodepool="pool",quantile="0.99"}}'] > 0
    assert while_it_runs['leader_election_master_status{name="karpenter-leader-election"}'] == 1
    lifecycle = 'controller_runtime_reconcile_time_seconds_count{controller="nodeclaim.lifecycle"}'
    assert while_it_runs[lifecycle] >= 1
    phases = {s: v for s, v in afterwards.items() if s.startswith("dovetail_nodeclaim_phase_duration_seconds_count{")}
    assert phases.get('dovetail_nodeclaim_phase_duration_seconds_count{nodepool="pool",phase="launching"}') == 1, phases
    assert while_it_runs['dovetail_launches_total{nodepool="pool",outcome="launched"}'] == 1
    assert while_it_runs['dovetail_nodeclaims{nodepool="pool",phase="running"}'] == 1
    assert any(s.startswith("temporal_worker_task_slots_available{") for s in while_it_runs), "the SDK's own"
    assert not [s for s in afterwards if s.startswith(("karpenter_nodes_allocatable{", "karpenter_pods_state{"))]
    assert while_it_runs[READY] == 1
    ended = [s for s in afterwards if s.startswith(ENDED)]
    assert [afterwards[s] for s in ended] == [1]
    ours = [s for s in afterwards if not s.startswith("temporal_")]
    assert not [s for s in ours if "task_queue" in s or "otel" in s], "no label of the worker's own"
