"""Who pokes for those whom a killed worker leaves unanswered, and who does not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode

from dovetail.messages.workflow_ids import claim_owner_id
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Catalogues
from dovetail.ports.view import ClusterView
from dovetail.worker.unanswered import LOOK_SECONDS, Subject, Unanswered, Wait, departures_in, pods_in
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod, is_now
from worlds.disruption import a_claim
from worlds.fakes.descriptions import running_as

SCHEDULER, CARETAKER = "c/scheduler", "c/caretaker"
STEP = "await_provisioning_plan"
OURS, THEIRS = "2@us", "1@them"


@dataclass
class Scene:
    """A worker beside another one that holds the wait, second by second."""

    subjects: dict[str, Subject] = field(default_factory=dict)
    owners: set[str] = field(default_factory=set)  # that run
    now: float = 100.0
    holder: str = THEIRS
    number: int = 1
    beat: int = 1
    told: tuple[int, bool] | None = None
    holds_here: bool = False
    silent: bool = False
    away: bool = False
    pokes: list[tuple[float, str]] = field(default_factory=list)
    asked: int = 0

    def watch(self) -> Unanswered:
        wait = Wait(workflow_id=SCHEDULER, step=STEP, subjects=lambda: dict(self.subjects))
        return Unanswered(
            waits=(wait,),
            singletons=(SCHEDULER, CARETAKER),
            client=lambda: cast(Client, self),
            holds=lambda step, identity: self.holds_here and (step, identity) == (STEP, SCHEDULER),
            silent=lambda: self.silent,
            now=lambda: self.now,
        )

    async def play(self, watch: Unanswered, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            await watch.look()
            self.now += LOOK_SECONDS

    # Temporal

    identity, namespace = OURS, "default"
    reset_sticky_task_queue = AsyncMock()
    data_converter = DataConverter.default

    @property
    def workflow_service(self) -> "Scene":
        return self

    def note(self, identity: str) -> None:
        """Note that this workflow is asked about."""
        if self.away:
            raise RPCError("away", RPCStatusCode.UNAVAILABLE, b"")
        if identity not in (SCHEDULER, CARETAKER) and identity not in self.owners:
            raise RPCError("none", RPCStatusCode.NOT_FOUND, b"")
        self.asked += 1

    async def describe_workflow_execution(
        self, request: DescribeWorkflowExecutionRequest, *, retry: bool
    ) -> DescribeWorkflowExecutionResponse:
        self.note(request.execution.workflow_id)
        return running_as("TerminateNode")

    def get_workflow_handle(self, identity: str) -> Any:
        async def describe(rpc_timeout: object = None) -> Any:
            self.note(identity)
            steps = [await self.pending()] if identity == SCHEDULER and self.holder else []
            return SimpleNamespace(
                raw_description=SimpleNamespace(pending_activities=steps),
                status=WorkflowExecutionStatus.RUNNING,
            )

        async def signal(name: str) -> None:
            assert name == "poke"
            self.pokes.append((self.now, identity))

        return SimpleNamespace(describe=describe, signal=signal)

    async def pending(self) -> PendingActivityInfo:
        step = PendingActivityInfo(
            activity_id=str(self.number),
            attempt=1,
            state=PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
            last_worker_identity=self.holder,
        )
        step.activity_type.name = STEP
        step.last_heartbeat_time.FromSeconds(self.beat)
        if self.told is not None:
            step.heartbeat_details.payloads.extend(await self.data_converter.encode(["text", [], list(self.told)]))
        return step


def one_pod(version: int = 50) -> dict[str, Subject]:
    return {"pod": Subject(version)}


async def test_a_pod_that_nobody_answers_makes_a_worker_poke_within_a_few_seconds_and_once() -> None:
    scene = Scene(one_pod())
    watch = scene.watch()

    await scene.play(watch, 5)

    assert scene.pokes == [(103.0, SCHEDULER)], "the Caretaker waits in nobody that is gone"
    scene.number, scene.holder = 2, OURS
    scene.holds_here = True
    await scene.play(watch, 600)
    assert len(scene.pokes) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"subjects": {}},
        {"holds_here": True},
        {"holder": OURS},
        {"holder": ""},  # carried out, paused, or handed out and not taken yet
        {"silent": True},  # Temporal is away, or this worker stands aside
        {"away": True},
        {"told": (50, False)},  # it was answered: there is no place for it
    ],
    ids=str,
)
async def test_nobody_pokes(change: Mapping[str, Any]) -> None:
    scene = Scene(**{"subjects": one_pod(), **change})

    await scene.play(scene.watch(), 600)

    assert scene.pokes == []


async def test_a_worker_that_thinks_for_long_is_not_poked_and_one_that_is_killed_meanwhile_is() -> None:
    scene = Scene(one_pod(), told=(50, True))
    watch = scene.watch()

    for _ in range(100):
        scene.beat += 1
        await scene.play(watch, 2)
    assert scene.pokes == []

    await scene.play(watch, 7)
    assert [identity for _, identity in scene.pokes] == [SCHEDULER]


async def test_a_worker_that_beats_has_not_seen_the_pod_yet_and_lives() -> None:
    """Or takes another turn: each has a number of its own."""
    scene = Scene(one_pod(), told=(49, False))
    watch = scene.watch()

    for turn in range(20):
        scene.beat += 1
        scene.number += turn % 2
        await scene.play(watch, 2)

    assert scene.pokes == []


async def test_what_was_answered_is_not_asked_about_again_and_what_comes_later_is() -> None:
    scene = Scene(one_pod(), told=(50, False))
    watch = scene.watch()
    await scene.play(watch, 60)
    assert scene.asked == 1

    scene.subjects["later"] = Subject(51)
    await scene.play(watch, 5)

    assert len(scene.pokes) == 1


async def test_pokes_that_help_nobody_become_rare() -> None:
    """A worker that is at its first look tells nothing; one in an hour's time is no harm to it."""
    scene = Scene(one_pod())
    watch = scene.watch()

    await scene.play(watch, 3600)

    moments = [moment for moment, _ in scene.pokes]
    assert 5 < len(moments) < 15
    assert min(b - a for a, b in pairwise(moments)) >= 5.0


async def test_many_who_wait_make_no_more_pokes_than_one() -> None:
    scene = Scene()
    watch = scene.watch()
    for number in range(60):
        scene.subjects[f"pod-{number}"] = Subject(50)
        await scene.play(watch, 1)

    moments = [moment for moment, _ in scene.pokes]
    assert min(b - a for a, b in pairwise(moments)) >= 5.0


async def test_a_claim_whose_workflow_runs_is_answered() -> None:
    scene = Scene({"claim": Subject(50, "c/claim/a")}, owners={"c/claim/a"})
    watch = scene.watch()
    await scene.play(watch, 60)
    assert scene.pokes == []

    scene.subjects["other"] = Subject(51, "c/claim/b")
    await scene.play(watch, 5)

    assert len(scene.pokes) == 1


class View:
    """What is seen of a cluster."""

    def __init__(self, *objects: Any) -> None:
        self.objects = objects

    def snapshot(self, reads: object = None) -> Snapshot:
        found: dict[type, dict[str, Any]] = {NodeClaim: {}, Node: {}}
        pods = {each.uid: each for each in self.objects if isinstance(each, Pod)}
        for each in self.objects:
            if type(each) in found:
                found[type(each)][each.name] = each
        return Snapshot(now=2.0, claims=found[NodeClaim], nodes=found[Node], pods=pods)


def test_a_pod_waits_until_a_claim_is_promised_to_it_and_again_when_that_one_has_joined() -> None:
    pods = [
        a_web_pod(uid, uid=uid, node_name="", phase="Pending", unschedulable=True, resource_version="7")
        for uid in ("a", "b", "c")
    ]
    planned = {names.PLANNED_PODS: "b"}
    launched = a_claim("launched", annotations=planned, conditions=(is_now(names.LAUNCHED),))

    assert pods_in(cast(ClusterView, View(*pods, launched))) == {"a": Subject(7), "c": Subject(7)}
    assert set(pods_in(cast(ClusterView, View(*pods, a_joined_claim("joined", annotations=planned))))) == set("abc")


def test_a_claim_and_a_node_that_were_deleted_wait() -> None:
    leaving = a_joined_claim("leaving", uid="c-1", node_name="", deleting_since=1.0, resource_version="8")
    resting = a_joined_claim("resting", uid="c-2", provider_id="p-2", node_name="node-2")
    node = a_joined_node("node-2", uid="n-2", provider_id="p-2", deleting_since=1.0, resource_version="9")
    catalogues = SimpleNamespace(supported_classes=frozenset)

    found = departures_in("c", cast(ClusterView, View(leaving, resting, node)), cast(Catalogues, catalogues))

    assert found == {"c-1": Subject(8, claim_owner_id("c", "leaving")), "n-2": Subject(9)}
