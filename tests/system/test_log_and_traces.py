"""What the log and traces say of a node's life: one line for each thing done, and one trace for a disruption.

The lines are read as programs read Karpenter's, the spans are compared with the histories that the server keeps.
"""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from dovetail.cli.demo.temporal_server import TemporalServer
from dovetail.messages.workflow_ids import claim_owner_id
from dovetail.model import names
from testbed.collector import Collector, ReceivedSpan
from tests.log.patterns import PATTERNS, found_in
from tests.system.histories import executions, replay_all
from tests.system.servers import temporal_server
from worlds.stage.running import shared_stage
from worlds.stage.stage import Stage, node_pool

__all__ = ["temporal_server"]

pytestmark = pytest.mark.temporal

COMES = ("created nodeclaim", "launched nodeclaim", "registered nodeclaim", "initialized nodeclaim")
LEAVES = ("tainted node", "drained node", "terminated instance", "deleted node", "deleted nodeclaim")


@dataclass(frozen=True)
class Told:
    """A node that has drifted was replaced; what came of it."""

    stage: Stage
    collector: Collector
    old: str  # the claims
    new: str
    disruption: str  # the workflow
    lines: Sequence[str]  # of the log, as written

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    @property
    def trace(self) -> list[ReceivedSpan]:
        return self.collector.trace(self.disruption.rpartition("/")[2].replace("-", ""))

    async def histories(self) -> Mapping[str, WorkflowHistory]:
        """Of every run, by its id."""
        client = await self.stage.client()
        found = await executions(client, self.stage.cluster)
        handles = [(e, client.get_workflow_handle(e.id, run_id=e.run_id)) for e in found]
        return {execution.run_id: await handle.fetch_history() for execution, handle in handles}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def told(tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer) -> AsyncIterator[Told]:
    """A pod, a node, and another pool template: the node is replaced, drained and terminated."""
    folder = tmp_path_factory.mktemp("told")
    stage, collector = shared_stage(folder, folder.name, temporal_server), Collector()
    try:
        endpoint = collector.start()
        worker = stage.start_worker(
            OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
            OTEL_BSP_SCHEDULE_DELAY="200",
            OTEL_METRIC_EXPORT_INTERVAL="1000",
        )
        stage.apply_pool()
        stage.deploy(1)
        await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 300, "the pod runs")
        [old] = [claim["metadata"]["name"] for claim in stage.claims()]
        pool = node_pool(["c-2x-amd64-linux"])
        pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
        stage.world.apply(pool)
        gone = lambda: [c for c in stage.departed("NodeClaim") if c["metadata"]["name"] == old]  # noqa: E731
        [departed] = await stage.until(gone, 300, "the drifted node is gone")
        [new] = [claim["metadata"]["name"] for claim in stage.claims()]
        disruption = departed["metadata"]["annotations"][names.OWNER]
        await (await stage.workflow(disruption)).result()
        await (await stage.workflow(claim_owner_id(stage.cluster, old))).result()
        worker.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.wait, 60) == 0
        lines = [line for line in (folder / "worker.log").read_text().splitlines() if line.startswith("{")]
        yield Told(stage, collector, old, new, disruption, lines)
    finally:
        collector.close()
        await stage.close()


def about(record: Mapping[str, Any]) -> str:
    """The claim that a line is about."""
    claim: str = record.get("NodeClaim", {}).get("name", "")
    return claim


async def test_each_deed_is_one_line(told: Told) -> None:
    said = Counter((about(record), record["message"]) for record in told.records)
    expected = {(claim, log_line): 1 for claim in (told.old, told.new) for log_line in COMES}
    expected |= {(told.old, log_line): 1 for log_line in LEAVES}
    assert {key: count for key, count in said.items() if key[0]} == expected
    assert said[("", "disrupting node(s)")] == 1
    assert said[("", "found provisionable pod(s)")] == said[("", "computed new nodeclaim(s) to fit pod(s)")] == 1


async def test_a_reader_of_karpenters_log_finds_every_field(told: Told) -> None:
    found = [(json.loads(line)["message"], found_in(line)) for line in told.lines]
    read = [(message, fields) for message, fields in found if message in PATTERNS]
    assert [message for message, fields in read if fields is None] == []
    of_old = {message: fields for message, fields in read if fields and fields["claim"] == told.old}
    assert of_old["launched nodeclaim"]["type"] == "c-2x-amd64-linux"
    assert of_old["disrupting node(s)"]["reason"] == "drifted"
    assert (of_old["disrupting node(s)"]["decision"], of_old["disrupting node(s)"]["replacements"]) == ("replace", "1")
    assert (of_old["tainted node"]["key"], of_old["tainted node"]["effect"]) == ("karpenter.sh/disrupted", "NoSchedule")


async def test_lines_name_their_workflow_and_its_trace(told: Told) -> None:
    [disrupting] = [record for record in told.records if record["message"] == "disrupting node(s)"]
    of_old = [r for r in told.records if about(r) == told.old and r["message"] in ("drained node", "deleted nodeclaim")]
    trace = told.disruption.rpartition("/")[2].replace("-", "")
    assert (disrupting["workflow_id"], disrupting["trace_id"]) == (told.disruption, trace)
    assert {r["workflow_id"] for r in of_old} == {claim_owner_id(told.stage.cluster, told.old)}
    assert {r["trace_id"] for r in of_old} == {trace}
    sent = [line for line in told.collector.lines if line.message == "disrupting node(s)"]
    assert [(line.trace, line.severity) for line in sent] == [(trace, "INFO")]
    assert sent[0].attributes["workflow_id"] == told.disruption


async def test_metrics_are_sent_with_the_gauges_of_the_cluster(told: Told) -> None:
    found = told.collector.metrics
    created = {point.attributes["reason"]: point.value for point in found["karpenter_nodeclaims_created_total"]}
    assert created["provisioned"] >= 1
    assert [point.value for point in found["karpenter_cluster_state_node_count"]] == [1]
    assert "dovetail_nodeclaims" in found and "karpenter_pods_state" not in found


async def test_a_disruption_is_one_trace_from_its_decision_to_the_terminated_instance(told: Told) -> None:
    spans = told.trace
    roots = [span.name for span in spans if span.parent not in {other.span for other in spans}]
    assert roots == ["DisruptNodes"] and len({span.span for span in spans}) == len(spans)
    ways = (
        *("decide", "mark_nodes", "create_node_claims", "launch_instance", "await_joined", "await_ready"),
        *("delete_claim", "begin_departure", "drain_node", "terminate_instance"),
    )
    order = [span.name for span in spans if span.name in ways]
    assert [name for name in order if name != "await_ready"] == [name for name in ways if name != "await_ready"]
    assert {span.name for span in spans} >= {"LaunchNode", "TerminateNode", "await_ready", "await_gone"}
    assert not [span.name for span in spans if span.failed]
    assert {span.resource["service.name"] for span in spans} == {"dovetail"}


async def test_the_spans_are_those_of_the_histories(told: Told) -> None:
    """Every step that a workflow of the trace asked for is a span from its schedule to its answer, and no other is."""
    histories = await told.histories()
    steps = {
        (span.attributes["temporalRunID"], span.attributes["temporalActivityID"]): span
        for span in told.trace
        if "temporalActivityID" in span.attributes
    }
    runs = {run for run, _ in steps}
    expected = {(run, step.id): step for run in runs for step in steps_in(histories[run])}
    assert steps.keys() == expected.keys()
    for key, span in steps.items():
        step = expected[key]
        assert (span.name, span.attributes["dovetail.attempts"]) == (step.name, step.attempts)
        assert span.began // 1000 == step.scheduled // 1000  # the SDK's moments are of microseconds
        assert step.started <= span.ended <= step.completed
    workflows = [s for s in told.trace if s.name in ("DisruptNodes", "LaunchNode", "TerminateNode")]
    assert {span.attributes["temporalRunID"] for span in workflows} == runs


async def test_a_trace_leads_to_the_decision_that_it_came_of(told: Told) -> None:
    [decide] = [span for span in told.trace if span.name == "decide"]
    [(trace, _)] = decide.links
    [decision] = told.collector.trace(trace)
    assert decision.name in ("decide disruption", "look again")
    assert decision.attributes["karpenter.reason"] == "Drifted" and decision.began == decide.began


async def test_pods_waits_are_in_the_trace_of_what_was_launched_for_them(told: Told) -> None:
    [provision] = [span for span in told.collector.spans if span.name == "provision"]
    spans = told.collector.trace(provision.trace)
    assert {span.name for span in spans} >= {"pod waits", "decide", "create_node_claims", "LaunchNode", "await_joined"}
    [wait] = [span for span in spans if span.name == "pod waits"]
    assert wait.parent == provision.span and wait.attributes["k8s.pod.name"].startswith("default/web")


async def test_a_workflow_with_traces_replays_where_there_are_none(told: Told) -> None:
    assert await replay_all(await told.stage.client(), told.stage.cluster) > 0


@dataclass
class Step:
    """A step as a history has it, moments in nanoseconds."""

    id: str
    name: str
    scheduled: int
    started: int = 0
    completed: int = 0
    attempts: int = 0


def steps_in(history: WorkflowHistory) -> list[Step]:
    """Those that were answered."""
    found: dict[int, Step] = {}
    for event in history.events:
        at = event.event_time.ToNanoseconds()
        match event.event_type:
            case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                asked = event.activity_task_scheduled_event_attributes
                found[event.event_id] = Step(asked.activity_id, asked.activity_type.name, at)
            case EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
                begun = event.activity_task_started_event_attributes
                found[begun.scheduled_event_id].started = at
                found[begun.scheduled_event_id].attempts = begun.attempt
            case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                found[event.activity_task_completed_event_attributes.scheduled_event_id].completed = at
    return [step for step in found.values() if step.completed]
