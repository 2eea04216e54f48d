"""A real Prometheus scrapes two workers through a story; then everything that anybody asks it is asked.

The story: launches that fail at first, a wave of drift, a drain that a PodDisruptionBudget holds, a kill -9 of the
worker that speaks for the cluster in the middle of it, a roll-out that asks Prometheus and a person, a drain that asks,
a node that is not well, an open breaker, a node that is empty, a pause, two policies that hold for ever, a move that
fails. Whatever finds nothing in it is named here with the reason.
"""

import asyncio
import json
import math
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from docs.tools.dashboards_upstream import CAPACITY, PERFORMANCE, asked
from dovetail.cli.demo.temporal_server import free_ports, stop_process
from dovetail.model.names import BREAKER, MOVE, NODE_POOL_HASH
from dovetail.model.values.json import Json
from testbed.plane.unavailable import TestbedUnavailable
from testbed.prometheus import find_program
from testbed.prometheus.server import Prometheus, scraping
from tests.cluster.system.scenes import gone
from tests.cluster.test_moves import QUOTAS, allow_moves, created
from tests.cluster.test_time_rules import a_rule, create
from tests.cluster.test_time_rules import path as rule_path
from tests.unavailable import no_prometheus
from worlds.cluster.fleets import fleet_pool, workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import DEPLOYMENTS, no_eviction

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy" / "alerts" / "dovetail.yaml"
DASHBOARDS = sorted((ROOT / "deploy" / "dashboards").glob("*.json"))
DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
NODES = 3
BUDGET: Json = {"budgets": [{"nodes": "100%"}], "consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"}
PATIENCE = 240.0  # of each wait, on a loaded machine

# What this story gives no series of, by what is asked for, with the reason.
WITHOUT = {
    "dovetail_last_day_saved_dollars{}": "worked out before the first move, and then every ten minutes",
    "dovetail_last_day_bill_dollars{}": "likewise",
    "dovetail_last_day_namespace_saved_dollars{}": "likewise",
    'dovetail_rollout_state{state=~"RollingBack|Failed"}': "its roll-outs come to a good end",
    "dovetail_objects_set_aside{}": "every object can be read and judged",
    "temporal_workflow_task_execution_failed{}": "no workflow task fails",
    'dovetail_launches_total{outcome=~"refused|class_not_ready|timed_out"}': "what fails is tried again and succeeds",
    'operator_nodepool_status_condition_count{status="False",type="NodeRegistrationHealthy"}': "every node joins",
}


@dataclass(frozen=True, slots=True)
class Watched:
    """The servers, what scrapes two workers, and since when."""

    ground: Ground
    prometheus: Prometheus
    since: float
    ports: tuple[int, ...]

    async def shows(self, expression: str, value: float, words: str) -> None:
        """Wait until the expression has that one value."""

        async def right() -> bool:
            found = await asyncio.to_thread(self.prometheus.now, expression)
            return [values[-1][1] for _, values in found] == [value]

        await self.ground.until(right, PATIENCE, f"{words}: {expression} is {value}")

    async def speaker(self) -> int:
        """Which of the workers speaks for the cluster."""

        async def one() -> str:
            found = await asyncio.to_thread(self.prometheus.now, "leader_election_master_status == 1")
            return found[0][0]["instance"] if len(found) == 1 else ""

        instance = await self.ground.until(one, PATIENCE, "one worker speaks for the cluster")
        return self.ports.index(int(instance.rpartition(":")[2]))

    def start_worker(self, number: int) -> "subprocess.Popen[bytes]":
        """That worker, which asks the Prometheus that scrapes it."""
        more = {
            "METRICS_PORT": str(self.ports[number]),
            "DOVETAIL_MOVES": "true",
            "DOVETAIL_PROMETHEUS_URL": f"http://127.0.0.1:{self.prometheus.port}",
        }
        everything = self.ground.everything
        return replace(everything, environment={**everything.environment, **more}).start_worker()


@pytest_asyncio.fixture(loop_scope="session")
async def watched(ground: Ground, tmp_path: Path) -> AsyncIterator[Watched]:
    """Two workers and a Prometheus that scrapes both; a DaemonSet on every node."""
    try:
        program = await asyncio.to_thread(find_program, "prometheus", print)
    except TestbedUnavailable as error:
        no_prometheus(error)
    ports = tuple(free_ports(2))
    ground.kill_workers()
    since = time.time()
    with scraping(program, tmp_path / "prometheus", ports, [ALERTS]) as prometheus:
        watched = Watched(ground, prometheus, since, ports)
        ground.workers = [watched.start_worker(number) for number in range(len(ports))]
        yield watched
        await ground.api.delete(f"{DAEMON_SETS}/agent", {"propagationPolicy": "Background"})
    for worker in ground.workers[1:]:
        await asyncio.to_thread(stop_process, worker, signal.SIGKILL)


def a_limited_pool(colour: str = "blue", annotations: dict[str, str] | None = None) -> Json:
    """A pool with limits, whose empty nodes go; another colour makes its nodes drift."""
    pool = fleet_pool("web", colour=colour, disruption=BUDGET, annotations=annotations or {})
    pool["spec"]["limits"] = {"cpu": "100", "memory": "1000Gi"}
    return pool


def a_daemon_set() -> Json:
    labels = {"app": "agent"}
    container = {"name": "agent", "image": "agent:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {"metadata": {"name": "agent"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


async def on_nodes(watched: Watched, nodes: int) -> None:
    """That many nodes, each with a pod of its own and one of the DaemonSet, and every sum says so."""
    ground = watched.ground

    async def settled() -> bool:
        return len(await ground.claims()) == nodes == len(await ground.nodes()) and await ground.settled(2 * nodes)

    await ground.until(settled, PATIENCE, f"{nodes} nodes with two pods each")
    await watched.shows("sum(up)", 2, "both workers are scraped")
    await watched.shows('count(karpenter_nodes_allocatable{resource_type="cpu",nodepool!=""})', nodes, "nodes")
    await watched.shows('sum(karpenter_nodes_total_pod_requests{resource_type="cpu"})', 3 * nodes, "requests")
    await watched.shows("sum(karpenter_cluster_state_node_count)", nodes, "nodes of the state")
    await watched.shows('sum(karpenter_nodepools_usage{resource_type="nodes"})', nodes, "nodes of the pool")
    await watched.shows("sum(karpenter_pods_state)", 2 * nodes, "pods")
    await watched.shows('sum(dovetail_nodeclaims{phase="running"})', nodes, "claims")


async def launches_and_a_wave(watched: Watched) -> None:
    """Three nodes, the first call for which fails; then all of them drift. What all workers have counted together."""
    ground = watched.ground
    await ground.api.post(DAEMON_SETS, a_daemon_set())
    await ground.until(ground.class_is_ready, PATIENCE, "the class is validated, by calls of CreateFleet too")
    ground.world({"fail": [{"op": "CreateFleet", "code": "InternalError", "times": 12}]})
    await ground.apply(a_limited_pool())
    await ground.apply(workload("web", "web", NODES))
    await on_nodes(watched, NODES)
    await ground.apply(a_limited_pool(colour="green"))

    async def green() -> bool:
        return {n["metadata"]["labels"].get("colour") for n in await ground.nodes()} == {"green"}

    await ground.until(green, PATIENCE, "all nodes are replaced")
    await on_nodes(watched, NODES)
    await watched.shows('sum(karpenter_nodeclaims_disrupted_total{reason="drifted"})', NODES, "disrupted")
    await watched.shows("sum(karpenter_nodes_created_total)", 2 * NODES, "created")
    await watched.shows("sum(karpenter_nodes_terminated_total)", NODES, "terminated")


async def a_held_drain_and_a_kill(watched: Watched) -> None:
    """A PodDisruptionBudget holds a drain; the worker that speaks for the cluster is killed; the other takes over."""
    ground = watched.ground
    await ground.apply(no_eviction())
    leaving = (await ground.claims())[0]
    await ground.delete("NodeClaim", leaving["metadata"]["name"])
    await watched.shows('sum(dovetail_nodeclaims{phase="draining"})', 1, "a drain")

    async def refused() -> list[object]:
        return [*await asyncio.to_thread(watched.prometheus.now, 'karpenter_pods_eviction_requests_total{code="429"}')]

    await ground.until(refused, PATIENCE, "evictions are refused")
    struck = await watched.speaker()
    ground.workers[struck].send_signal(signal.SIGKILL)
    await asyncio.to_thread(ground.workers[struck].wait)
    await watched.shows("sum(up)", 1, "one worker is left")
    assert await watched.speaker() != struck
    ground.workers[struck] = watched.start_worker(struck)
    await ground.delete("PodDisruptionBudget", "web")

    async def left() -> bool:
        return await gone(ground, leaving)

    await ground.until(left, PATIENCE, "the drain goes on and ends")
    await on_nodes(watched, NODES)


async def a_roll_out_that_asks(watched: Watched) -> None:
    """The next change goes step by step: one node, then a person is asked, who stops it, and then lets all go."""
    ground = watched.ground
    steps = [{"name": "canary", "to": "1", "approve": {"expiresAfter": "1h"}}, {"name": "rest", "to": "100%"}]
    gates = [{"name": "slo", "query": {"expr": "vector(0)", "max": "1", "every": "15s"}}]
    await create(ground, a_rule("NodeRollout", "careful", nodePool="web", steps=steps, gates=gates))
    try:
        await ground.apply(no_eviction())  # until it has been seen that the step replaces nodes: that takes seconds
        await ground.apply(a_limited_pool(colour="red"))
        await watched.shows('max(dovetail_rollout_state{rollout="careful",state="Replacing"})', 1, "a step goes on")
        await ground.delete("PodDisruptionBudget", "web")
        await watched.shows('max(dovetail_rollout_state{rollout="careful",state="Awaiting"})', 1, "a person is asked")
        await watched.shows('max(dovetail_rollout_nodes{rollout="careful",state="target"})', 1, "one node went")
        await watched.shows('max(dovetail_rollout_gate{rollout="careful",gate="slo"})', 1, "its gate passes")
        await intend(ground, "Abort")
        await watched.shows('max(dovetail_rollout_stalled{rollout="careful",reason="Aborted"})', 1, "it stands still")
        await intend(ground, "Promote")

        async def red() -> bool:
            return {n["metadata"]["labels"].get("colour") for n in await ground.nodes()} == {"red"}

        await ground.until(red, PATIENCE, "all nodes are replaced")
        await watched.shows('sum(dovetail_rollouts_total{pool="web",result="Complete"})', 1, "the change has ended")
    finally:
        await ground.api.delete(rule_path("NodeRollout", "careful"))
    await on_nodes(watched, NODES)


async def intend(ground: Ground, intent: str) -> None:
    answer = await ground.api.patch(rule_path("NodeRollout", "careful"), {"spec": {"intent": intent}})
    assert answer.status == 200, answer.text


async def a_drain_that_asks_and_what_holds_a_beginning(watched: Watched) -> None:
    """A held drain asks and is decided; a node is not well; a breaker is open. Each for less than its alert takes."""
    ground, drain = watched.ground, {"escalation": [{"after": "1m", "do": "Ask"}]}
    health = {"maxNotReady": "1%", "stableFor": "1m", "alerts": {"firing": '{severity="of-nobody"}'}}
    try:
        await create(ground, a_rule("DisruptionPolicy", "asks", drain=drain))
        await ground.apply(no_eviction())
        leaving = (await ground.claims())[0]
        await ground.delete("NodeClaim", leaving["metadata"]["name"])
        await watched.shows('max(dovetail_drains_asking{nodepool="web"})', 1, "a drain asks")
        code, said = await ground.dovetail("decide", leaving["metadata"]["name"], "force")
        assert code == 0, said

        async def left() -> bool:
            return await gone(ground, leaving)

        await ground.until(left, PATIENCE, "what was decided is done")
        await ground.delete("PodDisruptionBudget", "web")
        await on_nodes(watched, NODES)
        await create(ground, a_rule("DisruptionPolicy", "well", health=health))
        await watched.shows('max(dovetail_disruption_held_blind{name="well"})', 0, "alerts are asked for")
        node = (await ground.nodes())[0]["metadata"]["name"]
        await ground.hear(node, alive=False)
        await watched.shows('max(dovetail_beginnings_held{rule="health",pool="web"})', 1, "a node is not ready")
        await ground.hear(node, alive=True)
    finally:
        for name in ("asks", "well"):
            await ground.api.delete(rule_path("DisruptionPolicy", name))
    [pool] = [each for each in await ground.objects("NodePool") if each["metadata"]["name"] == "web"]
    template, now = pool["metadata"]["annotations"][NODE_POOL_HASH], int(time.time())
    open_breaker = f"Expired@{template}={now}:00000001/{now}x0"
    pool = a_limited_pool(colour="red", annotations={BREAKER: open_breaker})
    await ground.apply(pool)
    await watched.shows('max(dovetail_beginnings_held{rule="breaker",pool="web"})', 1, "a breaker is open")
    assert (await ground.dovetail("resume", "--pool", "web"))[0] == 0


async def an_empty_node_and_a_pause(watched: Watched) -> None:
    """A node that nobody needs goes, which saves; then the pool is paused."""
    ground = watched.ground
    answer = await ground.api.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": NODES - 1}})
    assert answer.status == 200, answer.text
    await on_nodes(watched, NODES - 1)
    for savings in ("predicted", "realised"):
        total = f"sum(dovetail_{savings}_savings_dollars_per_hour_total)"
        await watched.shows(f"{total} > bool 0", 1, "a promise that is kept")
    code, said = await ground.dovetail("pause", "disruption", "--pool", "web", "--reason", "the story says so")
    assert code == 0, said
    await watched.shows('max(dovetail_paused{what="disruption",pool="web"})', 1, "a pause")
    assert (await ground.dovetail("resume", "--pool", "web"))[0] == 0


async def time_rules_and_a_move_that_fails(watched: Watched) -> None:
    """A policy that cannot be understood, one that never opens, and a new pod that a quota does not allow."""
    ground = watched.ground
    shut = [{"from": "00:00", "to": "00:00"}]
    try:
        await create(ground, a_rule("DisruptionPolicy", "unread", timeZone="Nowhere/Here"))
        await watched.shows('max(dovetail_time_rule_not_understood{name="unread"})', 1, "a policy of no zone")
        await ground.api.delete(rule_path("DisruptionPolicy", "unread"))
        await create(ground, a_rule("DisruptionPolicy", "shut", deny=shut))
        await watched.shows('max(dovetail_policy_never_opens{name="shut",reason="Drifted"})', 1, "it never opens")
        await ground.api.delete(rule_path("DisruptionPolicy", "shut"))
        await allow_moves(ground)
        await ground.apply(fleet_pool("ledger", disruption=BUDGET))
        body = workload("ledger", "ledger", 1)
        body["metadata"]["annotations"] = {MOVE: "restart"}
        body["spec"]["progressDeadlineSeconds"] = 2
        await ground.apply(body)
        pods = 2 * NODES  # with those of the DaemonSet
        await ground.until(lambda: ground.settled(pods), PATIENCE, "the pod that asks to be moved runs")
        quota = {"spec": {"hard": {"pods": str(pods)}}}
        await created(
            ground, QUOTAS, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}, **quota}
        )
        await ground.apply(fleet_pool("ledger", colour="green", disruption=BUDGET))
        await watched.shows('sum(dovetail_moves_total{outcome="failed"}) > bool 0', 1, "a move is taken back")
    finally:
        await ground.api.delete(f"{QUOTAS}/one")
        for name in ("unread", "shut"):
            await ground.api.delete(rule_path("DisruptionPolicy", name))


# What is asked


def our_queries() -> Iterable[str]:
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            yield from (target["expr"] for target in panel["targets"])


def alert_expressions() -> list[str]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule["expr"] for rule in group["rules"]]


async def test_what_two_workers_show_answers_every_query_and_alert(watched: Watched) -> None:
    await launches_and_a_wave(watched)
    await a_held_drain_and_a_kill(watched)
    await a_roll_out_that_asks(watched)
    await a_drain_that_asks_and_what_holds_a_beginning(watched)
    await an_empty_node_and_a_pause(watched)
    await time_rules_and_a_move_that_fails(watched)

    upstream = [*CAPACITY, *PERFORMANCE]
    assert nothing_for(watched, (each.expression for each in upstream)) == {
        each.expression for each in upstream if each.empty
    }
    ours, prometheus = list(our_queries()), watched.prometheus
    silent = nothing_for(watched, ours)
    assert {query for query in silent if not set(prometheus.selectors(asked(query))) & WITHOUT.keys()} == set()
    series = {each for query in (*ours, *alert_expressions()) for each in prometheus.selectors(asked(query))}
    assert nothing_for(watched, series) <= WITHOUT.keys()
    each_node = 'max(count by (node_name) (karpenter_nodes_allocatable{resource_type="cpu"}))'
    twice = prometheus.throughout(each_node, watched.since)
    assert {value for _, values in twice for _, value in values} == {1.0}, "no node ever stands twice"
    assert prometheus.throughout('ALERTS{alertstate="firing"}', watched.since) == []


def nothing_for(watched: Watched, expressions: Iterable[str]) -> set[str]:
    """Those that have given no number in the whole story."""

    def silent(expression: str) -> bool:
        series = watched.prometheus.throughout(asked(expression), watched.since)
        return all(math.isnan(value) for _, values in series for _, value in values)

    return {expression for expression in expressions if silent(expression)}
