"""Temporal is away, on a real server that is stopped, killed and started again: what the worker does meanwhile.

The embedded world has no warnings; what leaves here is a claim that a person deletes. Warnings: tests/cluster.
"""

import asyncio
import signal
import time
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from dovetail.cli.demo.temporal_server import free_ports, start_temporal
from dovetail.messages.workflow_ids import claim_owner_id
from dovetail.model.values.json import Json
from tests.system.beside import beside
from worlds.stage.stage import Stage

pytestmark = pytest.mark.temporal

STOP_SECONDS = 45.0  # what a worker may take to end: its grace and the flush after it, on a busy machine


async def started_again(stage: Stage) -> None:
    """The server runs again at its address, with its database, after it was killed."""
    port = int(stage.temporal.address.rpartition(":")[2])
    stage.temporal = await start_temporal(stage.folder, stage.own_temporal.database, port=port)


async def a_pod_on_a_node(stage: Stage, port: int = 0) -> Json:
    """Its claim."""
    stage.start_worker(HEALTH_PROBE_PORT=str(port), METRICS_PORT=str(port))
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")
    [claim] = stage.claims()
    return claim


def left_the_node(stage: Stage, claim: Json) -> bool:
    """Tainted, and no pod is bound to it any more."""
    node = claim["status"]["nodeName"]
    bound = [p for p in stage.world.objects("Pod") if p["spec"].get("nodeName") == node]
    return node in stage.tainted() and not bound


def is_gone(stage: Stage, claim: Json) -> bool:
    return stage.world.get("NodeClaim", claim["metadata"]["name"]) is None


async def ask(port: int, path: str) -> tuple[int, str]:
    def get() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    return await asyncio.to_thread(get)


@beside
async def test_a_node_that_leaves_is_drained_without_temporal_and_its_workflow_takes_over(alone: Stage) -> None:
    """The server hangs, is killed, and comes back with what it had."""
    stage, [port] = alone, free_ports(1)
    claim = await a_pod_on_a_node(stage, port)
    stage.own_temporal.process.send_signal(signal.SIGSTOP)

    stage.world.delete("NodeClaim", claim["metadata"]["name"])
    await stage.until(lambda: left_the_node(stage, claim), 60, "the node is tainted and empty")
    assert [i.provider_id for i in stage.world.live_instances()] == [claim["status"]["providerID"]], "it is left alone"
    health, ready, metrics = [await ask(port, path) for path in ("/healthz", "/readyz", "/metrics")]
    assert health[0] == 200 and "Temporal is away" in health[1]
    assert ready[0] == 503 and "Temporal" in ready[1]
    assert "dovetail_departures_begun_without_temporal_total 1" in metrics[1]

    stage.own_temporal.process.kill()
    await asyncio.to_thread(stage.own_temporal.process.wait)
    await started_again(stage)

    await stage.until(lambda: is_gone(stage, claim), 90, "the claim is released")
    assert (
        await (await stage.workflow(claim_owner_id(stage.cluster, claim["metadata"]["name"]))).result() == "terminated"
    )
    await stage.until(lambda: stage.running_pods() == 1, 90, "the pod runs on another node")
    assert stage.tainted() == []
    assert set(stage.instances_by_claim().values()) == {1}
    assert (await ask(port, "/healthz"))[1].startswith("ok\n")
    assert "Temporal is away" not in (await ask(port, "/healthz"))[1]


@beside
async def test_a_worker_that_starts_while_temporal_is_away_waits_and_drains_what_leaves(alone: Stage) -> None:
    stage = alone
    claim = await a_pod_on_a_node(stage)
    stage.kill(stage.workers[-1])
    stage.own_temporal.process.kill()
    await asyncio.to_thread(stage.own_temporal.process.wait)

    worker = stage.start_worker()
    stage.world.delete("NodeClaim", claim["metadata"]["name"])
    await stage.until(lambda: left_the_node(stage, claim), 90, "the node is tainted and empty")
    log = (stage.folder / "worker.log").read_text()
    assert f"no Temporal server at {stage.temporal.address}" in log and "this worker waits until it answers" in log
    assert worker.poll() is None

    await started_again(stage)
    await stage.until(lambda: is_gone(stage, claim), 90, "the claim is released")
    await stage.until(lambda: stage.running_pods() == 1, 90, "the pod runs on another node")
    assert worker.poll() is None


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.soak)])
@beside
async def test_a_worker_is_stopped_while_temporal_is_away(alone: Stage, how: signal.Signals) -> None:
    """Nobody takes what its steps have to say any more; it ends all the same."""
    stage = alone
    await a_pod_on_a_node(stage)
    stage.own_temporal.process.send_signal(how)
    await asyncio.sleep(2)

    stage.workers[-1].send_signal(signal.SIGTERM)

    await stage.until(lambda: stage.workers[-1].poll() is not None, STOP_SECONDS, "the worker ends")
    assert stage.workers[-1].poll() == 0


@pytest.mark.soak
@beside
async def test_a_worker_lives_through_ten_minutes_without_temporal(alone: Stage) -> None:
    """Beyond every heartbeat timeout, and beyond what a liveness probe would call stuck."""
    stage, [port] = alone, free_ports(1)
    claim = await a_pod_on_a_node(stage, port)
    stage.own_temporal.process.send_signal(signal.SIGSTOP)
    stage.own_temporal.process.kill()
    await asyncio.to_thread(stage.own_temporal.process.wait)
    until = time.monotonic() + 660.0
    while time.monotonic() < until:
        assert (await ask(port, "/healthz"))[0] == 200
        await asyncio.sleep(10)
    await started_again(stage)

    stage.deploy(1, "more")
    await stage.until(lambda: stage.running_pods() == 2, 90, "a pod gets a node as before")
    assert not is_gone(stage, claim)
    assert stage.workers[-1].poll() is None


@beside
async def test_the_database_is_lost_with_the_server_and_what_was_drained_is_finished(alone: Stage) -> None:
    stage = alone
    claim = await a_pod_on_a_node(stage)
    stage.own_temporal.process.kill()
    await asyncio.to_thread(stage.own_temporal.process.wait)
    stage.world.delete("NodeClaim", claim["metadata"]["name"])
    await stage.until(lambda: left_the_node(stage, claim), 60, "the node is tainted and empty")

    empty = replace(stage.own_temporal, database=stage.folder / "another.db")
    stage.temporal = empty
    await started_again(stage)

    await stage.until(lambda: is_gone(stage, claim), 90, "the claim is released")
    await stage.until(lambda: stage.running_pods() == 1, 90, "the pod runs on another node")
