"""A drain moves the one pod of a Deployment by a roll-out: once, watched, taken back where it fails."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.termination.begin_and_end_departure import FORCEFUL
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.mover import Mover
from dovetail.messages.outcomes import DrainOutcome
from dovetail.messages.requests import UnmarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.objects.workloads import Begun, Deployment, Namespace, RollOut
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.places.move_changes import MoveChange, read_move
from dovetail.model.places.moved_pods import OfSnapshot
from dovetail.model.places.moves import Moves
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Conflict, Failure, Forbidden, Refused
from dovetail.termination import timing
from dovetail.termination.leaving import LEAVING_TAINT
from tests.activities.test_departing import an_instance
from tests.activities.test_draining import DEPARTURE, DRAINING, START, say_on_claim
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod
from tests.model.move_worlds import NODE, a_moved_pod, a_roll_out, a_world
from worlds.fakes import (
    FakeNotices,
    FakePods,
    World,
    drain_ports,
    mark_ports,
    unlimited,
)

STARTS = 5.0  # seconds that a new pod takes until it is available


@dataclass(slots=True)
class Controller:
    """The Deployment `ledger` with its controller: a changed template makes a new pod, which takes the old one's place
    once it is available; the former template takes the new pod away again."""

    world: World
    roll_out: RollOut
    works: bool = True  # whether new pods become available
    failure: Failure | None = None
    snapshot: Snapshot = field(default_factory=lambda: a_world(None))
    hidden: RollOut | None = None  # what the cache still shows
    changes: list[MoveChange] = field(default_factory=list)
    reads: int = 0
    version: int = 7

    def now_is(self, **fields: Any) -> None:
        self.roll_out = replace(self.roll_out, **fields)
        self.version += 1

    def deployment(self, roll_out: RollOut, version: int) -> Deployment:
        return Deployment(
            name="ledger", namespace="apps", uid="uid-ledger", resource_version=str(version), roll_out=roll_out
        )

    def cached(self) -> Deployment:
        if self.hidden is not None:
            return self.deployment(self.hidden, 7)
        return self.deployment(self.roll_out, self.version)

    def moves(self) -> Moves:
        world = replace(self.snapshot, now=self.world.clock, deployments={"apps/ledger": self.cached()})
        return Moves(OfSnapshot(world), self.world.clock)

    def moves_from(self, node: str) -> tuple[Deployment, ...]:
        begun = self.cached().roll_out.begun  # type: ignore[union-attr]
        return (self.cached(),) if begun is not None and begun.node == node else ()

    async def read(self, deployment: Deployment) -> Deployment | None:
        self.reads += 1
        return self.deployment(self.roll_out, self.version)

    async def annotate(self, deployment: Deployment, change: MoveChange) -> Deployment | None:
        if self.failure is not None:
            raise self.failure
        if deployment.resource_version != str(self.version):
            raise Conflict("Deployment/ledger", "the object has been modified")
        self.changes.append(change)
        move = read_move(change.annotations[names.MOVES] or "")
        self.now_is(begun=move.begun, failed=move.failed)
        if change.template is not None:
            value = change.template[names.MOVED] or ""
            self.now_is(moved=value, generation=self.roll_out.generation + 1, settled=False)
            self.world.at(self.world.clock + STARTS, lambda: self._started(value))
        return self.cached()

    def _started(self, value: str) -> None:
        """A pod of that template is available, or is the old one."""
        if self.roll_out.moved != value:
            return
        if self.works and "uid-ledger-1" in self.world.pods and value:
            self.world.kill(self.world.pods["uid-ledger-1"])
        if self.works or not value:
            self.now_is(settled=True)


@dataclass(slots=True)
class Stage:
    world: World
    controller: Controller
    pods: FakePods
    make: Callable[..., DrainNode]

    async def run(
        self, drain: DrainNode | None = None, deadline: float | None = None, reason: str = "Drifted", **fields: Any
    ) -> DrainOutcome:
        say_on_claim(self.world, deadline, reason)
        return await (drain or self.make()).drain_node(replace(DEPARTURE, **fields))

    def evicted(self) -> list[str]:
        return [line.split()[1] for line in self.world.ledger if line.startswith("evict")]

    def begun(self) -> int:
        return sum(change.template is not None for change in self.controller.changes)

    def mover(self) -> Mover:
        pace = EvictionPace(self.world.now, self.world.pause)
        return Mover(self.controller, self.controller, FakeNotices(self.world), pace, self.world.now)


@pytest.fixture
def stage() -> Stage:
    world = World(clock=START)
    world.put(
        a_joined_claim(deleting_since=START, conditions=(*a_joined_claim().conditions, DRAINING)),
        replace(a_joined_node(deleting_since=START), taints=(LEAVING_TAINT,)),
        a_moved_pod(ready=True),
    )
    world.instances = {"aws:///zone/i-1": an_instance()}
    controller, pods = Controller(world, a_roll_out()), FakePods(world)
    pods.answers["uid-ledger-1"] = "blocked"  # a PDB that never allows

    def make(**fields: Any) -> DrainNode:
        ports = drain_ports(
            world,
            pods=pods,
            mover=made.mover(),
            **fields,
        )
        pace = EvictionPace(world.now, world.pause)
        return DrainNode(ports, unlimited(pace), world.now, world.pause)

    made = Stage(world, controller, pods, make)
    return made


async def test_one_replica_under_a_pdb_is_rolled_out_and_never_evicted(stage: Stage) -> None:
    """TRM-41. Two writes: one begins, one ends."""
    assert await stage.run() == DrainOutcome(message="drained")

    assert stage.evicted() == []
    assert [change.template for change in stage.controller.changes] == [{names.MOVED: "a"}, None]
    assert stage.controller.roll_out.begun is None and stage.controller.roll_out.moved == "a"
    assert {"MoveBegun", "Moved"} <= stage.world.said()


async def test_other_pods_of_the_node_are_evicted_meanwhile(stage: Stage) -> None:
    stage.world.put(a_web_pod("web-1"))

    await stage.run()

    assert stage.evicted() == ["web-1"]


async def test_a_cache_that_lags_begins_no_second_move(stage: Stage) -> None:
    """TRM-41: the version that it was decided on is gone."""
    stage.controller.hidden = stage.controller.roll_out
    stage.world.at(START + 4.0, lambda: setattr(stage.controller, "hidden", None))

    await stage.run()

    assert stage.begun() == 1


async def test_a_worker_that_comes_back_goes_on_where_another_stopped(stage: Stage) -> None:
    """TRM-41. It finds the move on the Deployment, and ends it also where the old pod is gone already."""
    first = stage.mover()
    await first._begin(stage.controller.cached(), stage.world.nodes["node-1"])
    await stage.world.pause(STARTS + 1)
    assert "uid-ledger-1" not in stage.world.pods

    assert await stage.run() == DrainOutcome(message="drained")
    assert (stage.begun(), stage.controller.roll_out.begun) == (1, None)


@pytest.mark.parametrize("leaves", [None, 60.0])
async def test_a_note_alone_keeps_no_node(stage: Stage, leaves: float | None) -> None:
    """TRM-41. Anybody may write one on a Deployment of their own, whether or not a pod of it was ever there."""
    note = Begun(node=NODE, former="", generation=999999, since=START)
    stage.controller.now_is(begun=note, paused=True, settled=False)
    stage.world.at(START + 900.0, lambda: stage.controller.now_is(begun=None))
    if leaves is None:
        del stage.world.pods["uid-ledger-1"]
    else:
        stage.world.at(START + leaves, lambda: stage.world.kill(stage.world.pods["uid-ledger-1"]))

    assert await stage.run() == DrainOutcome(message="drained")

    assert stage.world.clock <= START + (leaves or 0.0) + timing.MOVE_END + 5.0 and not stage.controller.changes


async def test_a_move_is_ended_where_its_deployment_says_so_a_moment_after_its_pod_has_gone(stage: Stage) -> None:
    """TRM-41."""
    await stage.mover()._begin(stage.controller.cached(), stage.world.nodes["node-1"])
    stage.controller.works = False
    stage.world.at(START + 7.0, lambda: stage.world.kill(stage.world.pods["uid-ledger-1"]))
    stage.world.at(START + 12.0, lambda: stage.controller.now_is(settled=True))

    await stage.run()

    assert stage.controller.roll_out.begun is None and "Moved" in stage.world.said()


async def test_a_pod_that_does_not_become_available_is_taken_back_and_holds_the_node(stage: Stage) -> None:
    """TRM-42. The template says what it said before, and the old pod is not evicted."""
    stage.controller.works = False
    stage.world.at(START + 30.0, lambda: stage.controller.now_is(timed_out=True))
    ends = START + 900.0
    stage.world.at(ends, lambda: stage.world.kill(stage.world.pods["uid-ledger-1"]))

    await stage.run()

    assert stage.world.clock >= ends and stage.evicted() == []
    begins, back = [change.template for change in stage.controller.changes]
    assert (begins, back) == ({names.MOVED: "a"}, {names.MOVED: None})
    assert stage.controller.roll_out.failed is not None
    assert {"MoveFailed", "FailedDraining"} <= stage.world.said()


async def test_a_move_that_was_taken_back_begins_again_at_once_where_its_deployment_has_changed(stage: Stage) -> None:
    """TRM-42. Nobody else has put its template back."""
    stage.controller.works = False
    stage.world.at(START + 30.0, lambda: stage.controller.now_is(timed_out=True))

    def change() -> None:
        stage.controller.works = True
        stage.controller.now_is(generation=stage.controller.roll_out.generation + 1, timed_out=False)

    stage.world.at(START + 60.0, change)
    await stage.run()

    set_to = [change.template[names.MOVED] for change in stage.controller.changes if change.template is not None]
    assert (set_to, stage.evicted()) == (["a", None, "a"], []) and stage.world.clock < START + 120.0


@pytest.mark.parametrize("drops_notes", [False, True])
async def test_where_somebody_puts_the_template_back_at_once_nothing_has_moved_and_it_is_tried_again_later(
    stage: Stage, drops_notes: bool
) -> None:
    """TRM-42. As an operator, or `kubectl replace`, does: it may drop the note of the move as well."""
    stage.controller.works = False
    ends = START + 1200.0

    def apply() -> None:
        if stage.controller.roll_out.moved:
            stage.controller.now_is(moved="", generation=stage.controller.roll_out.generation + 1, settled=True)
        if drops_notes:
            stage.controller.now_is(begun=None, failed=None)
        if stage.world.clock < ends:
            stage.world.at(stage.world.clock + 2.0, apply)

    stage.world.at(START, apply)
    stage.world.at(ends, lambda: stage.world.kill(stage.world.pods["uid-ledger-1"]))
    await stage.run()

    assert stage.begun() == 2  # 15 minutes apart
    assert "Moved" not in stage.world.said()
    assert drops_notes or "MoveFailed" in stage.world.said()


async def test_a_pod_that_cannot_be_moved_is_evicted_and_it_is_said_once(stage: Stage) -> None:
    """TRM-40."""
    stage.controller.now_is(replicas=2)
    stage.world.at(START + 60.0, lambda: stage.pods.answers.clear())

    await stage.run()

    assert len(stage.evicted()) > 2 and not stage.controller.changes
    said = [notice for notice in stage.world.notices if notice.reason == "MoveImpossible"]
    assert {notice.message for notice in said} == {
        "Evicted, not moved: its Deployment has more than one replica: evictions keep the others"
    }
    assert len(said) == 1


@pytest.mark.parametrize("wish", ["hold", "something else"])
async def test_a_pod_that_its_owner_holds_stays_until_it_is_forced(stage: Stage, wish: str) -> None:
    """TRM-39. As under a PDB that never allows."""
    stage.controller.now_is(wish=wish)
    stage.pods.answers.clear()
    deadline = START + 600.0

    await stage.run(deadline=deadline)

    assert stage.evicted() == [] and not stage.controller.changes
    assert any(line.startswith("force ledger-1") for line in stage.world.ledger)


@pytest.mark.parametrize("case", ["by hand", "interrupted"])
async def test_nobody_waits_for_a_move_where_the_node_is_taken_by_others(stage: Stage, case: str) -> None:
    """TRM-41. Its pods are evicted at once, but for those that their owner holds."""
    stage.pods.answers.clear()
    claim = stage.world.claims["pool-1"]
    if case == "interrupted":
        stage.world.put(replace(claim, annotations={**claim.annotations, names.INTERRUPTED: "2023-11-14T22:13:20Z"}))

    await stage.run(reason=FORCEFUL if case == "by hand" else "Drifted")

    assert stage.evicted() == ["ledger-1"] and not stage.controller.changes


async def test_a_pause_of_drains_begins_no_move_and_ends_those_that_run(stage: Stage) -> None:
    """TRM-41."""

    class Paused:
        def pause_on(self, pool: str, activity: Activity) -> Pause | None:
            return Pause(pool="", what=frozenset({Activity.DRAINS})) if stage.world.clock < START + 60.0 else None

    drain = stage.make(pauses=Paused())
    begins: list[float] = []
    stage.world.at(START + 59.0, lambda: begins.append(stage.begun()))

    await stage.run(drain)

    assert begins == [0] and stage.begun() == 1


async def test_a_node_without_the_taint_begins_no_move(stage: Stage) -> None:
    """Its disruption was called off a moment ago, or its new pod could come to this very node."""
    stage.world.put(replace(stage.world.nodes["node-1"], taints=()))
    stage.world.at(START + 60.0, lambda: stage.world.kill(stage.world.pods["uid-ledger-1"]))

    await stage.run()

    assert not stage.controller.changes


@pytest.mark.parametrize("failure", [Forbidden("Deployment/ledger", "no"), Refused("Deployment/ledger", "a policy")])
async def test_a_refused_move_holds_the_node_with_the_refusal_in_words(stage: Stage, failure: Failure) -> None:
    """What cannot be asked says "not now"."""
    stage.controller.failure = failure
    stage.world.at(START + 60.0, lambda: stage.world.kill(stage.world.pods["uid-ledger-1"]))

    await stage.run()

    assert stage.evicted() == []
    assert any(f"moving pod apps/ledger-1 failed, {failure}" in notice.message for notice in stage.world.notices)


async def cancelled(stage: Stage, **fields: Any) -> None:
    """The disruption of the node is called off."""
    claim, node = stage.world.claims["pool-1"], stage.world.nodes["node-1"]
    stage.world.put(
        replace(claim, deleting_since=None, annotations={**claim.annotations, names.OWNER: "owner"}),
        replace(node, deleting_since=None),
    )
    marking = MarkAndUnmarkNodes(
        mark_ports(stage.world, pods=stage.pods, mover=stage.mover(), **fields), stage.world.now
    )
    await marking.unmark_nodes(
        UnmarkRequest(owner="owner", claims=(ClaimRef(name="pool-1", uid=claim.uid),), rest="cancelled")
    )
    assert names.OWNER not in stage.world.claims["pool-1"].annotations
    assert not stage.world.nodes["node-1"].taints


async def test_a_cancel_takes_the_move_back_although_the_cache_knows_nothing_of_it(stage: Stage) -> None:
    """TRM-42. It is no failure: a later disruption moves it at once."""
    stage.controller.hidden = stage.controller.roll_out
    await stage.mover()._begin(stage.controller.cached(), stage.world.nodes["node-1"])

    await cancelled(stage)

    assert (stage.controller.roll_out.begun, stage.controller.roll_out.failed) == (None, None)
    assert stage.controller.roll_out.moved == "" and "MoveCalledOff" in stage.world.said()


@pytest.mark.parametrize("failure", [Forbidden("Deployment/ledger", "no"), Refused("Deployment/ledger", "a policy")])
async def test_a_node_becomes_free_although_the_right_to_its_deployments_is_gone(
    stage: Stage, failure: Failure
) -> None:
    await stage.mover()._begin(stage.controller.cached(), stage.world.nodes["node-1"])
    stage.controller.failure = failure

    await cancelled(stage)


async def test_a_roll_out_of_somebody_else_is_not_taken_back_by_a_cancel(stage: Stage) -> None:
    """TRM-42."""
    await stage.mover()._begin(stage.controller.cached(), stage.world.nodes["node-1"])
    stage.controller.now_is(generation=9, moved="a")

    await cancelled(stage)

    assert (stage.controller.roll_out.moved, stage.controller.roll_out.begun) == ("a", None)


async def test_a_namespace_may_ask_for_it(stage: Stage) -> None:
    """TRM-39."""
    stage.controller.now_is(wish=None)
    annotated = Namespace(name="apps", annotations={names.MOVE: "restart"})
    stage.controller.snapshot = replace(stage.controller.snapshot, namespaces={"apps": annotated})

    await stage.run()

    assert stage.begun() == 1 and stage.evicted() == []


def test_the_names_of_the_world_agree() -> None:
    pod: Pod = a_moved_pod()
    assert pod.uid == "uid-ledger-1" and a_joined_node().uid == NODE
