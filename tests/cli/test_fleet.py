"""`dovetail fleet`: what a worker reports of its cluster, how seldom, and what is made of the reports of all."""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
import pytest_asyncio
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo, PendingWorkflowTaskInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from dovetail.answers.doctor.temporal import MOST_CLUSTERS, clusters_check
from dovetail.answers.failures import CommandFailed
from dovetail.answers.fleet.answer import ClusterRow, FleetAnswer
from dovetail.answers.fleet.looking import FRESH_SECONDS, fleet_of
from dovetail.answers.fleet.text import fleet_text
from dovetail.answers.serving.duties import REPORT_SECONDS
from dovetail.answers.serving.reporting import say_report
from dovetail.answers.serving.worker_source import WorkerSource
from dovetail.answers.shown.screen import Screen
from dovetail.cli.commands.fleet import fleet_document, needs_person
from dovetail.connection.presence import TemporalPresence
from dovetail.messages.reports import ClusterReport, ReportedNeed, ReportedWorker, differs
from dovetail.model.objects.watched_kinds import FLEET as FLEET_KINDS
from dovetail.wiring.world import open_world
from testbed.simulated_world import SimulatedWorld
from tests.cli.schemas import faults_of
from tests.cli.test_explain_node import OPEN, a_managed_node
from tests.cli.worlds import a_ready_pool, a_world, settings_of
from tests.waiting import until
from worlds.manifests import pod_manifest

DAY = 86400.0
NOW = 1_780_000_000.0
STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
SCHEDULED = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED

WORKER = ReportedWorker(pod="dovetail-a", version="0.2.0", since=NOW - 7200)
REPORT = ClusterReport(
    at=NOW - 60,
    version="0.2.0",
    kubernetes="v1.35.1",
    region="eu-west-1",
    workers=(WORKER,),
    nodes=143,
    price=61.42,
    pending_pods=4,
    launches=1,
    terminations=2,
    drifted=14,
)
NEED = ReportedNeed(
    about="ml/train-7f", what="pending for 9m", since=NOW - 540, command="dovetail explain pod ml/train-7f"
)


class Temporal:
    """One Caretaker's memo, who polls, and how often it was signalled."""

    def __init__(self) -> None:
        self.namespace, self.workflow_service = "default", self
        self.polling = ["dovetail/0.2.0/7@dovetail-a", "dovetail/0.1.0/8@dovetail-b"]
        self.report: ClusterReport | None = None
        self.signals = 0

    def get_workflow_handle(self, identity: str) -> "Temporal":
        assert identity == "demo/caretaker"
        return self

    async def describe(self) -> "Temporal":
        return self

    async def memo_value(self, key: str, otherwise: None, type_hint: type) -> ClusterReport | None:
        return self.report

    async def signal(self, name: str, found: ClusterReport) -> None:
        assert name == "report"
        self.report, self.signals = found, self.signals + 1

    async def describe_task_queue(self, request: Any) -> Any:
        asked = SimpleNamespace(ToSeconds=time.time)
        return SimpleNamespace(pollers=[SimpleNamespace(identity=who, last_access_time=asked) for who in self.polling])


class Ground:
    """A worker's source over a simulated world, and a Temporal of our own."""

    def __init__(self, world: SimulatedWorld, source: WorkerSource, temporal: Temporal) -> None:
        self.world, self.source, self.temporal = world, source, temporal

    async def said(self, now: float) -> ClusterReport:
        await say_report(self.source, now)
        assert self.temporal.report is not None
        return self.temporal.report


@pytest_asyncio.fixture(loop_scope="session")
async def ground(tmp_path: Path) -> AsyncIterator[Ground]:
    simulated = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node(), *a_managed_node("n2"))
    settings, temporal = settings_of(simulated), Temporal()
    world, presence = await open_world(settings), TemporalPresence("demo")
    presence.use(cast(Client, temporal))
    yield Ground(simulated, WorkerSource(settings, world, presence), temporal)
    await world.close()


async def test_a_report_has_what_somebody_who_looks_at_all_clusters_asks(ground: Ground) -> None:
    found = await ground.said(NOW)

    workers = (ReportedWorker(pod="dovetail-a", version="0.2.0"), ReportedWorker(pod="dovetail-b", version="0.1.0"))
    assert (found.at, found.kubernetes, found.nodes, found.workers) == (NOW, "embedded", 2, workers)
    assert found.price > 0 and found.version
    assert (found.pending_pods, found.needs, found.troubles) == (0, (), ())


async def test_a_quiet_day_costs_less_than_fifty_actions(ground: Ground) -> None:
    looks = int(DAY / REPORT_SECONDS)
    for look in range(looks):
        await ground.said(NOW + look * REPORT_SECONDS)
    assert looks == 288
    assert ground.temporal.signals == 24, "once an hour: two actions each, the signal and the memo"


async def test_what_changes_is_said_in_the_next_look_and_once(ground: Ground) -> None:
    await ground.said(NOW)
    ground.world.apply(pod_manifest("stuck", nodeSelector={"topology.kubernetes.io/zone": "nowhere"}))
    ground.world.player().settle(time.time())
    view = ground.source.opened.view
    await until(lambda: any(pod.unschedulable for pod in view.snapshot(FLEET_KINDS).pods.values()))
    found = [(await ground.said(NOW + n * REPORT_SECONDS)).pending_pods for n in (1, 2, 3)]
    assert (found, ground.temporal.signals) == ([1, 1, 1], 2)


@pytest.mark.parametrize(
    ("after", "new"),
    [
        (replace(REPORT, at=NOW, price=61.9), False),
        (replace(REPORT, at=NOW, price=63.0), True),
        (replace(REPORT, at=NOW, nodes=144), True),
        (replace(REPORT, at=NOW, workers=()), True),
        (replace(REPORT, needs=(NEED,), needing=1), True),
    ],
)
def test_time_and_a_little_of_the_price_are_nothing_new(after: ClusterReport, new: bool) -> None:
    assert differs(REPORT, after) is new


def test_words_that_grow_older_are_nothing_new() -> None:
    before = replace(REPORT, needs=(NEED,), needing=1, troubles=("keep_up has failed 9 times, last 4 s ago",))
    later = replace(NEED, what="pending for 1h2m")
    after = replace(REPORT, needs=(later,), needing=1, troubles=("keep_up has failed 12 times, last 17 s ago",))
    assert not differs(before, after)


def stamp(seconds: float) -> Timestamp:
    return Timestamp(seconds=int(seconds))


def taken(heard: float) -> PendingActivityInfo:
    return PendingActivityInfo(state=STARTED, last_heartbeat_time=stamp(heard))


def due(at: float, heard: float = 0.0) -> PendingActivityInfo:
    return PendingActivityInfo(
        state=SCHEDULED,
        last_heartbeat_time=stamp(heard),
        scheduled_time=stamp(at - 9000),
        next_attempt_schedule_time=stamp(at),
    )


def task(since: float) -> PendingWorkflowTaskInfo:
    return PendingWorkflowTaskInfo(original_scheduled_time=stamp(since))


class Namespace:
    """Runs of Caretakers with their memos, and what Temporal describes of them."""

    namespace = "shared"

    def __init__(self) -> None:
        self.reports: dict[str, ClusterReport | None] = {}
        self.described: dict[str, DescribeWorkflowExecutionResponse] = {}
        self.asked: list[str] = []

    async def list_workflows(self, query: str, page_size: int) -> AsyncIterator[Any]:
        assert query == "WorkflowType = 'Caretaker' AND ExecutionStatus = 'Running'"
        for name, report in self.reports.items():

            async def memo_value(key: str, otherwise: None, type_hint: type, found: Any = report) -> Any:
                return found

            started = SimpleNamespace(timestamp=lambda: NOW - DAY)
            yield SimpleNamespace(id=name, memo_value=memo_value, start_time=started)

    def get_workflow_handle(self, identity: str) -> Any:
        async def describe() -> Any:
            self.asked.append(identity)
            return SimpleNamespace(raw_description=self.described[identity])

        return SimpleNamespace(describe=describe)

    async def looked(self) -> FleetAnswer:
        return await fleet_of(cast(Client, self), NOW)


def of_steps(*steps: PendingActivityInfo, **more: Any) -> DescribeWorkflowExecutionResponse:
    return DescribeWorkflowExecutionResponse(pending_activities=steps, **more)


OLD = replace(REPORT, at=NOW - FRESH_SECONDS - 1)


@pytest.mark.parametrize(
    ("described", "silent_since"),
    [
        (of_steps(taken(NOW - 500), due(NOW - 300)), None),
        (of_steps(due(NOW + 60)), None),
        (of_steps(due(NOW - 30)), None),
        (of_steps(), None),
        (of_steps(due(NOW - 300), due(NOW - 400)), OLD.at),
        (of_steps(due(NOW - 300, heard=NOW - 360)), NOW - 360),
        (of_steps(taken(NOW - 400), pending_workflow_task=task(NOW - 200)), NOW - 400),
    ],
    ids=["worked on", "due later", "just due", "between two steps", "all due", "heard last", "nobody goes on"],
)
async def test_a_cluster_is_silent_where_nobody_takes_what_is_due(
    described: DescribeWorkflowExecutionResponse, silent_since: float | None
) -> None:
    namespace = Namespace()
    namespace.reports, namespace.described = {"a/caretaker": OLD}, {"a/caretaker": described}
    [row] = (await namespace.looked()).clusters
    assert row.silent_since == silent_since
    assert row.state == ("fine" if silent_since is None else "silent")


async def test_those_in_trouble_come_first_and_only_those_of_old_reports_are_asked_about() -> None:
    namespace = Namespace()
    needing = replace(REPORT, needs=(NEED,), needing=1)
    namespace.reports = {
        "fine/caretaker": REPORT,
        "new/caretaker": None,
        "needs/caretaker": needing,
        "worse/caretaker": replace(needing, troubles=("1 of 2 workers work",)),
        "silent/caretaker": OLD,
        "somebody-else-s-workflow": REPORT,
    }
    namespace.described = {"silent/caretaker": of_steps(due(NOW - 300)), "new/caretaker": of_steps(taken(NOW))}
    found = await namespace.looked()

    assert [row.name for row in found.clusters] == ["silent", "worse", "needs", "new", "fine"]
    assert sorted(namespace.asked) == ["new/caretaker", "silent/caretaker"]
    assert needs_person(found)
    assert not needs_person(replace(found, clusters=found.clusters[3:]))


async def test_a_namespace_that_may_not_be_read_is_one_line() -> None:
    class Closed(Namespace):
        async def list_workflows(self, query: str, page_size: int) -> AsyncIterator[Any]:
            raise RPCError("permission denied", RPCStatusCode.PERMISSION_DENIED, b"")
            yield

    with pytest.raises(CommandFailed, match="namespace shared cannot be listed: permission denied"):
        await Closed().looked()


FLEET = FleetAnswer(
    namespace="dovetail",
    now=NOW,
    clusters=(
        ClusterRow(name="prod-us1", state="silent", silent_since=NOW - 5400, month=1000.0, report=OLD),
        ClusterRow(
            name="prod-eu1", state="needs a person", month=44836.6, report=replace(REPORT, needs=(NEED,), needing=5)
        ),
        ClusterRow(name="new", state="unknown", note="it has not reported yet"),
        ClusterRow(
            name="calm", state="fine", month=12.0, report=replace(REPORT, pauses=("PAUSED: expiry",), drifted=0)
        ),
    ),
)


HEAD = "namespace dovetail · 4 clusters · 429 nodes · $45.8k/mo · 12 pods pending · 1 silent · 1 cluster needs a person"


def test_the_screen() -> None:
    table = fleet_text(FLEET, Screen()).splitlines()
    assert [" ".join(line.split()) for line in table] == [
        HEAD,
        "",
        "CLUSTER REGION VERSION KUBERNETES WORKERS AGE NODES $/MO PENDING MOVES STATE AS OF",
        "prod-us1 eu-west-1 0.2.0 v1.35.1 1 2h 143 $1,000 4 1 come, 2 leave, 14 drifted silent for 1h30m 10m1s ago",
        "prod-eu1 eu-west-1 0.2.0 v1.35.1 1 2h 143 $44.8k 4 1 come, 2 leave, 14 drifted needs a person 1m ago",
        "new unknown",
        "calm eu-west-1 0.2.0 v1.35.1 1 2h 143 $12 4 1 come, 2 leave paused 1m ago",
        "",
        "! prod-eu1 ml/train-7f pending for 9m dovetail explain pod ml/train-7f",
        "! prod-eu1 ... and 4 more",
        "? new it has not reported yet",
        "calm PAUSED: expiry",
    ]


def test_a_narrow_screen_keeps_the_cluster_its_cost_and_its_state() -> None:
    [_, _, head, *rows] = fleet_text(FLEET, Screen(width=60)).splitlines()
    assert all(word in head for word in ("CLUSTER", "NODES", "$/MO", "STATE"))
    assert max(len(row) for row in rows[:4]) <= 60


def test_a_namespace_without_clusters_says_so() -> None:
    empty = FleetAnswer(namespace="dovetail", now=NOW)
    assert fleet_text(empty, Screen()) == "no cluster runs in the namespace dovetail"


@pytest.mark.parametrize(
    ("clusters", "verdict"), [(1, "holds"), (MOST_CLUSTERS, "holds"), (MOST_CLUSTERS + 1, "warns")]
)
async def test_doctor_counts_the_clusters_that_share_the_namespace(clusters: int, verdict: str) -> None:
    async def count_workflows(query: str) -> Any:
        assert query == "WorkflowType = 'Scheduler' AND ExecutionStatus = 'Running'"
        return SimpleNamespace(count=clusters)

    found = await clusters_check(cast(Client, SimpleNamespace(count_workflows=count_workflows)))
    assert (found.name, found.verdict) == ("clusters in the namespace", verdict)
    assert found.found.startswith(f"{clusters} Scheduler")


def test_the_document_is_what_its_schema_says() -> None:
    found = json.loads(orjson.dumps(fleet_document(FLEET)))
    assert (found["kind"], faults_of(found)) == ("Fleet", [])
    assert found["clusters"][0]["silentSince"] == "2026-05-28T18:56:40Z"
