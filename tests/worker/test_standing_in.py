"""What a worker does in Temporal's absence, and what it leaves alone: departures, warnings, the way back."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from dovetail.activities.interruptions.answer_interruptions import AnswerInterruptions
from dovetail.activities.interruptions.direct_answers import REMEMBERED_SECONDS, DirectAnswers
from dovetail.activities.interruptions.tell_interruptions import InterruptionNotices
from dovetail.activities.interruptions.watch_interruptions import BATCHES_AT_ONCE, WatchInterruptions
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.connection.presence import AWAY_AFTER, TemporalPresence
from dovetail.messages.interruptions import Interruption, InterruptionReason, Warned
from dovetail.messages.workflow_types import LAUNCH_NODE, TERMINATE_NODE
from dovetail.model import names
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Unreachable
from dovetail.ports.interruptions import Message
from dovetail.worker.absence.departures import Departures, DepartureSteps
from dovetail.worker.absence.stand_in import StandIn, Warnings
from tests.activities.test_departing import an_instance
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod
from worlds.fakes import (
    FakeClaims,
    FakeCloud,
    FakeLookups,
    FakeNodes,
    FakeNotices,
    FakePods,
    World,
    departure_ports,
    drain_ports,
    unlimited,
)

INSTANCE = "i-1"  # of a_joined_claim
VISIBLE_AGAIN = 0.3
LOOK_SECONDS = 0.01


class Watched(FakeLookups):
    """The view of the cluster: a snapshot of the claims, and changes that never come."""

    def snapshot(self, reads: object = None) -> Snapshot:
        return replace(Snapshot(now=self.world.clock), claims=dict(self.world.claims), nodes=dict(self.world.nodes))

    def revision(self) -> int:
        return 0

    async def changed(self, after: int) -> int:
        await asyncio.sleep(0.01)
        return 0

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return frozenset()


@dataclass
class Queue:
    """Messages that come again until they are acknowledged."""

    waiting: list[Message] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    learnt: list[str] = field(default_factory=list)
    bears_out: bool = True
    asked: list[int] = field(default_factory=list)
    shown: dict[str, float] = field(default_factory=dict)  # when each was handed out last

    async def receive(self) -> tuple[Message, ...]:
        await asyncio.sleep(0.01)
        now = asyncio.get_running_loop().time()
        found = [m for m in self.waiting if now - self.shown.get(m.receipt, 0.0) > VISIBLE_AGAIN]
        self.shown.update({m.receipt: now for m in found})
        return tuple(found)

    async def acknowledge(self, receipts: Sequence[str]) -> None:
        self.acknowledged += receipts
        self.waiting = [message for message in self.waiting if message.receipt not in receipts]

    async def troubles(self) -> tuple[Interruption, ...]:
        return ()

    async def borne_out(self, warned: Collection[Warned]) -> frozenset[Warned]:
        self.asked.append(len(warned))
        return frozenset(warned) if self.bears_out else frozenset()

    async def learn_from(self, interruption: Interruption, claim: object) -> None:
        self.learnt.append(interruption.reason)


@dataclass
class Temporal:
    """What runs under the claims' ids, and how a start fares."""

    running: str = ""
    start: Callable[[], Any] = lambda: None
    started: list[str] = field(default_factory=list)

    def get_workflow_handle(self, identity: str) -> "Temporal":
        return self

    async def describe(self) -> Any:
        if not self.running:
            raise RPCError("none", RPCStatusCode.NOT_FOUND, b"")

        class Found:
            workflow_type = self.running
            status = WorkflowExecutionStatus.RUNNING

        return Found

    async def start_workflow(self, name: str, given: Any, **options: Any) -> None:
        error = self.start()
        if isinstance(error, Exception):
            raise error
        if error == "hangs":
            await asyncio.Event().wait()
        self.started.append(options["id"])


class Stage:
    """One worker of a world, by fakes that count."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.world.instances = {"aws:///zone/i-1": an_instance()}
        self.view, self.claims, self.pods = Watched(self.world), FakeClaims(self.world), FakePods(self.world)
        self.cloud, nodes, notices = FakeCloud(self.world), FakeNodes(self.world), FakeNotices(self.world)
        now = self.world.now
        ports = drain_ports(
            self.world,
            lookups=self.view,
            claims=self.claims,
            nodes=nodes,
            pods=self.pods,
            notices=notices,
            cloud=self.cloud,
        )
        leaving = departure_ports(self.world, known=KnownClaims(self.view, self.claims), nodes=nodes, cloud=self.cloud)
        steps = DepartureSteps(
            departing=BeginAndEndDeparture(leaving, now),
            draining=DrainNode(ports, unlimited(EvictionPace(now, self.pause)), now, self.pause),
        )
        self.here: set[tuple[str, str]] = set()
        view: Any = self.view
        self.departures = Departures("c", view, view, steps, lambda step, workflow: (step, workflow) in self.here)
        self.seconds = 0.0
        self.presence = TemporalPresence("c", lambda: self.seconds)
        self.temporal, self.queue = Temporal(), Queue()
        queue: Any = self.queue
        answering = AnswerInterruptions(view, self.claims, queue, now)
        self.answers = DirectAnswers(
            answering, InterruptionNotices(notices, view), now, lambda: self.presence.is_away, lambda: self.unfit
        )
        self.unfit = ""
        self.stand_in = StandIn(
            presence=self.presence,
            departures=self.departures,
            view=view,
            notices=notices,
            warnings=Warnings(queue, self.answers),
            why_unfit=lambda: self.unfit,
        )

    async def pause(self, seconds: float) -> None:
        await self.world.pause(min(seconds, 0.5))
        await asyncio.sleep(0)

    def leave(self) -> None:
        """Temporal is away from now on."""
        self.presence.client = None
        self.presence.miss("refused")
        self.seconds += AWAY_AFTER
        self.presence.miss("refused")

    def come_back(self) -> None:
        """It answers, and something runs under the claim's id."""
        self.presence.client = self.temporal  # type: ignore[assignment]
        self.presence._answered()

    def evicted(self) -> list[str]:
        return [line.split()[1] for line in self.world.ledger if line.startswith("evict")]

    def is_tainted(self) -> bool:
        return any(taint.key == names.DISRUPTED_TAINT for taint in self.world.nodes["node-1"].taints)

    def hangs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The cloud takes questions from now on and answers none."""

        async def borne_out(warned: Collection[Warned]) -> frozenset[Warned]:
            self.queue.asked.append(len(warned))
            await asyncio.Event().wait()
            raise AssertionError("it never answers")

        monkeypatch.setattr(self.queue, "borne_out", borne_out)

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not holds():
            assert time.monotonic() < deadline
            await asyncio.sleep(LOOK_SECONDS)


@pytest.fixture
async def stage() -> Any:
    made = Stage()
    made.world.put(a_joined_claim(), a_joined_node(), a_web_pod("web"))
    task = asyncio.create_task(made.stand_in.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def a_message(reason: InterruptionReason = "spot_interrupted", receipt: str = "r1") -> Message:
    return Message(receipt=receipt, interruption=a_warning(reason))


def a_warning(reason: InterruptionReason = "spot_interrupted") -> Interruption:
    return Interruption(id="e1", reason=reason, instances=(INSTANCE,), at=0.0)


async def test_a_warning_is_answered_and_its_node_drained_while_temporal_is_away(stage: Stage) -> None:
    stage.leave()
    stage.queue.waiting.append(a_message())

    await stage.until(lambda: not stage.world.pods)

    assert stage.is_tainted() and stage.evicted() == ["web"]
    assert stage.world.claims["pool-1"].deleting_since is not None, "durable without Temporal"
    assert stage.queue.acknowledged == ["r1"] and stage.queue.learnt[:1] == ["spot_interrupted"]
    assert "terminate aws:///zone/i-1" not in stage.world.ledger, "the rest is its workflow's"
    assert {"SpotInterrupted", "TerminatingOnInterruption"} <= stage.world.said()


async def test_a_message_whose_claim_cannot_be_deleted_is_not_acknowledged(stage: Stage) -> None:
    """It comes again: nothing but the claim's deletion holds what it said."""

    async def delete(name: str, uid: str) -> int:
        raise Unreachable("NodeClaim/pool-1", "no answer")

    stage.claims.delete = delete  # type: ignore[method-assign]
    stage.world.put(a_joined_claim("pool-2", uid="uid-pool-2", provider_id="aws:///zone/i-2", node_name="node-2"))
    stage.world.put(
        a_joined_node("node-2", uid="uid-node-2", provider_id="aws:///zone/i-2"), a_web_pod("db", node_name="node-2")
    )
    stage.world.claims["pool-2"] = replace(stage.world.claims["pool-2"], deleting_since=1000.0)
    stage.answers.remember((a_warning(),))
    stage.leave()
    stage.queue.waiting.append(a_message())

    await stage.until(lambda: len(stage.queue.learnt) >= 3 and stage.evicted() == ["db"])

    assert stage.queue.acknowledged == []


def stopped(instance: str = INSTANCE) -> Interruption:
    return Interruption(id="e2", reason="instance_stopped", instances=(instance,), at=1000.0)


async def test_a_message_that_the_cloud_does_not_bear_out_yet_comes_again(stage: Stage) -> None:
    """AWS-191."""
    stage.queue.bears_out = False
    stage.leave()
    stage.queue.waiting.append(Message(receipt="r1", interruption=stopped()))
    await stage.until(lambda: len(stage.queue.asked) >= 2)
    assert (stage.queue.acknowledged, stage.evicted()) == ([], [])

    stage.queue.bears_out = True
    await stage.until(lambda: stage.queue.acknowledged == ["r1"])

    assert stage.world.claims["pool-1"].deleting_since is not None


async def test_what_was_begun_and_cannot_be_answered_yet_holds_up_no_other(stage: Stage) -> None:
    stage.queue.bears_out = False
    stage.world.put(a_joined_claim("pool-2", uid="uid-pool-2", provider_id="aws:///zone/i-2", node_name="node-2"))
    spot = replace(stage.world.claims["pool-1"], labels={names.CAPACITY_TYPE: names.CAPACITY_SPOT})
    stage.world.put(spot)
    stage.answers.remember((stopped("i-2"),))
    stage.answers.remember((replace(a_warning(), at=1000.0),))
    stage.leave()

    await stage.until(lambda: stage.world.claims["pool-1"].deleting_since is not None)

    assert stage.world.claims["pool-2"].deleting_since is None


async def test_a_cloud_that_hangs_holds_up_no_warning_that_is_believed_and_no_drain(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had to confirm, coming again and again, took all the hands that answer messages."""
    monkeypatch.setattr("dovetail.activities.interruptions.answer_interruptions.CONFIRM_SECONDS", 0.01)

    stage.hangs(monkeypatch)
    monkeypatch.setitem(globals(), "VISIBLE_AGAIN", 0.0)
    spot = replace(stage.world.claims["pool-1"], labels={names.CAPACITY_TYPE: names.CAPACITY_SPOT})
    stage.world.put(spot, a_joined_claim("pool-2", uid="uid-pool-2", provider_id="aws:///zone/i-2", node_name="node-2"))
    stage.answers.remember((stopped("i-2"),))
    stage.queue.waiting.append(Message(receipt="r2", interruption=stopped("i-2")))
    stage.leave()
    await stage.until(lambda: len(stage.queue.asked) > BATCHES_AT_ONCE + 1)

    stage.queue.waiting = [Message(receipt="r1", interruption=replace(a_warning(), at=1000.0))]
    await stage.until(lambda: stage.queue.acknowledged == ["r1"] and not stage.world.pods)

    assert stage.world.claims["pool-2"].deleting_since is None


async def test_while_what_was_begun_waits_for_the_cloud_nodes_are_drained(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer that was begun takes its time with a cloud that hangs, one after the other."""
    monkeypatch.setattr("dovetail.activities.interruptions.answer_interruptions.CONFIRM_SECONDS", 3600.0)
    stage.hangs(monkeypatch)
    stage.world.put(
        a_joined_claim("pool-2", uid="uid-pool-2", provider_id="aws:///zone/i-2", node_name="node-2"),
        a_joined_claim(deleting_since=1000.0),
    )
    stage.answers.remember((stopped("i-2"),))
    stage.leave()

    await stage.until(lambda: bool(stage.queue.asked) and not stage.world.pods)

    assert stage.evicted() == ["web"]


async def test_nothing_is_done_while_temporal_answers(stage: Stage) -> None:
    stage.come_back()
    stage.world.put(a_joined_claim(deleting_since=1000.0))
    stage.queue.waiting.append(a_message())
    await asyncio.sleep(0.2)
    assert (stage.evicted(), stage.queue.acknowledged, stage.departures.in_hand) == ([], [], 0)


async def test_a_pod_that_a_budget_protects_stays_until_its_workflow_takes_over(stage: Stage) -> None:
    stage.pods.answers["uid-web"] = "blocked"
    stage.world.put(a_joined_claim(deleting_since=1000.0))
    stage.leave()
    await stage.until(lambda: len(stage.evicted()) >= 2)
    assert stage.world.pods and stage.departures.in_hand == 1

    stage.temporal.running = LAUNCH_NODE
    stage.come_back()
    asked = len(stage.evicted())
    await stage.until(lambda: len(stage.evicted()) > asked)  # nobody else drains it yet
    assert stage.departures.in_hand == 1

    stage.temporal.running = TERMINATE_NODE
    await stage.until(lambda: stage.departures.in_hand == 0)
    asked = len(stage.evicted())
    await asyncio.sleep(0.2)
    assert len(stage.evicted()) == asked, "from now on it is the workflow's"


async def test_a_drain_whose_step_still_runs_here_is_left_to_it(stage: Stage) -> None:
    stage.here.add(("drain_node", "c/claim/pool-1"))
    stage.world.put(a_joined_claim(deleting_since=1000.0))
    stage.leave()
    await asyncio.sleep(0.2)
    assert stage.evicted() == []

    stage.here.clear()
    await stage.until(lambda: not stage.world.pods)
    assert stage.evicted() == ["web"]


async def test_a_worker_that_may_not_act_stands_aside_here_too(stage: Stage) -> None:
    """A Karpenter that was started meanwhile has the cluster."""
    stage.pods.answers["uid-web"] = "blocked"
    stage.world.put(a_joined_claim(deleting_since=1000.0))
    stage.leave()
    await stage.until(lambda: len(stage.evicted()) >= 1)

    stage.unfit = "a Karpenter runs in the cluster"
    await stage.until(lambda: stage.departures.in_hand == 0)
    stage.queue.waiting.append(a_message(receipt="r2"))
    asked = len(stage.evicted())
    await asyncio.sleep(0.2)
    assert len(stage.evicted()) == asked and "r2" not in stage.queue.acknowledged


async def test_two_workers_that_drain_one_node_take_each_pod_off_once() -> None:
    world = World()
    one, two = Stage(world), Stage(world)
    for number in range(5):
        world.put(a_web_pod(f"web-{number}"))
    world.put(a_joined_claim(deleting_since=1000.0), a_joined_node())

    one.departures.take_up()
    two.departures.take_up()
    await one.until(lambda: not world.pods and not one.departures.in_hand + two.departures.in_hand)

    answered = [line for line in world.ledger if line.startswith("evict")]
    assert {line.split()[1] for line in answered} == {f"web-{number}" for number in range(5)}
    assert [line for line in world.ledger if line.startswith(("terminate", "force"))] == []
    await one.departures.stop()
    await two.departures.stop()


async def test_the_step_that_reads_answers_nothing_itself_where_it_may_take_no_step() -> None:
    """It is not guarded as a step that begins now: it may have begun an hour ago."""
    stage = Stage()
    stage.world.put(a_joined_claim(), a_joined_node())
    stage.temporal.start = lambda: RPCError("unavailable", RPCStatusCode.UNAVAILABLE, b"")
    stage.come_back()
    stage.unfit = "a Karpenter runs in the cluster"
    reading = asyncio.create_task(read_once(stage))
    await stage.until(lambda: "r1" in stage.queue.shown)
    await asyncio.sleep(0.1)
    assert (stage.world.claims["pool-1"].deleting_since, stage.queue.acknowledged) == (None, [])

    stage.unfit = ""
    await reading
    assert stage.queue.acknowledged == ["r1"]


@pytest.mark.parametrize(
    "start",
    [lambda: RPCError("unavailable", RPCStatusCode.UNAVAILABLE, b""), lambda: "hangs"],
    ids=["refused", "hangs"],
)
async def test_the_step_that_reads_answers_itself_what_no_workflow_can_be_started_for(
    start: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS-127: acknowledged once the claim's deletion is on the API server."""
    monkeypatch.setattr("dovetail.activities.interruptions.watch_interruptions.START_SECONDS", 0.05)
    stage = Stage()
    stage.world.put(a_joined_claim(), a_joined_node())
    stage.temporal.start = start
    stage.come_back()

    await read_once(stage)

    assert stage.world.claims["pool-1"].deleting_since is not None
    assert stage.queue.acknowledged == ["r1"] and stage.temporal.started == []


async def read_once(stage: Stage) -> None:
    """The step takes one message and comes to its end."""
    queue: Any = stage.queue
    queue.waiting.append(a_message())
    client: Any = stage.temporal
    step = WatchInterruptions(
        "c", queue, lambda: 1e9 if stage.queue.acknowledged else 0.0, stage.answers, client=activity.client
    )
    async with asyncio.timeout(30):  # a look that nothing wakes comes after a minute
        await ActivityEnvironment(client=client).run(step.watch_interruptions)


async def test_an_answer_that_a_workflow_was_to_give_when_temporal_left_is_given_here(stage: Stage) -> None:
    """It was started and acknowledged, and nobody carries it out."""
    stage.come_back()
    await read_once(stage)
    assert len(stage.temporal.started) == 1 and stage.world.claims["pool-1"].deleting_since is None

    stage.leave()

    await stage.until(lambda: not stage.world.pods)
    assert stage.is_tainted()


async def test_an_old_warning_is_not_answered_again(stage: Stage) -> None:
    stage.come_back()
    await read_once(stage)
    stage.world.clock += REMEMBERED_SECONDS + 1
    stage.leave()
    await asyncio.sleep(0.2)
    assert stage.world.claims["pool-1"].deleting_since is None
