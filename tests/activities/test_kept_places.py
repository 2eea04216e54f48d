"""The pods of a claim are nominated for its node, until they are bound or the claim leaves (PLQ-36)."""

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from dovetail.activities.launch import kept_places
from dovetail.activities.launch.await_registered_and_initialized import AwaitRegisteredAndInitialized
from dovetail.activities.launch.kept_places import KeptPlaces, Nominated
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.messages.outcomes import JoinOutcome
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.pods import Owner, Pod
from dovetail.ports.failures import Forbidden, Unreachable
from tests.activities.test_joining import NOT_READY, REF, a_launched_claim
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod
from tests.waiting import until
from worlds.disruption import a_node
from worlds.fakes import (
    FakeClaims,
    FakeLookups,
    FakeNodes,
    FakeNotices,
    FakePods,
    World,
    departure_ports,
    join_ports,
)


def waiting(name: str, **fields: Any) -> Pod:
    given = {"node_name": "", "phase": "Pending", "started": None, "unschedulable": True, "resource_version": "1"}
    return a_web_pod(name, **{**given, **fields})


def made_for(claim: NodeClaim, *pods: Pod, keeps: bool = True) -> NodeClaim:
    marks = with_memory({}, keeps_places=keeps)
    planned = {names.PLANNED_PODS: ",".join(pod.uid for pod in pods)}
    return replace(claim, annotations={**claim.annotations, **planned, **marks})


class Changes:
    """The view's news."""

    def __init__(self) -> None:
        self.number, self.rung = 0, asyncio.Event()

    def revision(self) -> int:
        return self.number

    async def changed(self, after: int) -> int:
        while self.number <= after:
            self.rung.clear()
            await self.rung.wait()
        return self.number

    def ring(self) -> None:
        self.number += 1
        self.rung.set()


@dataclass(slots=True)
class Stage:
    world: World
    pods: FakePods
    joining: AwaitRegisteredAndInitialized
    departing: BeginAndEndDeparture

    async def join(self) -> JoinOutcome:
        return await self.joining.await_joined(REF)

    def writes(self) -> list[str]:
        return [line for line in self.world.ledger if line.startswith(("patch", "nominate"))]

    def nominated(self) -> dict[str, str]:
        return {pod.name: pod.nominated_node for pod in self.world.pods.values()}

    def bind(self, *names_of_pods: str) -> None:
        for pod in list(self.world.pods.values()):
            if pod.name in names_of_pods:
                self.change(pod.name, node_name="node-1", nominated_node="")

    def change(self, name: str, **fields: Any) -> None:
        found = next(pod for pod in self.world.pods.values() if pod.name == name)
        self.world.put(replace(found, resource_version=self.world.version(), **fields))


@pytest.fixture
def stage() -> Stage:
    world = World(clock=1010.0)
    pods, claims, nodes = FakePods(world), FakeClaims(world), FakeNodes(world)
    lookups = FakeLookups(world)
    places = KeptPlaces(lookups, pods, FakeNotices(world), world.now, cast(Any, lookups))
    joining = AwaitRegisteredAndInitialized(
        join_ports(world, lookups=lookups, claims=claims, nodes=nodes, places=places), world.now, world.pause
    )
    departing = BeginAndEndDeparture(
        departure_ports(world, known=KnownClaims(lookups, claims), nodes=nodes, places=places),
        world.now,
    )
    return Stage(world, pods, joining, departing)


async def test_pods_are_nominated_before_their_node_is_open_for_pods(stage: Stage) -> None:
    pods = [waiting("a"), waiting("b")]
    stage.world.put(made_for(a_launched_claim(), *pods), a_node(), *pods, waiting("stranger"))
    stage.world.at(1012.0, lambda: stage.bind("a", "b"))

    outcome = await stage.join()

    assert outcome.kind == "done"
    assert stage.writes() == ["nominate a node-1", "nominate b node-1", "patch node node-1", "patch status pool-1"]
    assert stage.nominated()["stranger"] == ""
    assert stage.world.clock < 1013.0  # it ends with the last pod that is bound


@pytest.mark.parametrize(
    ("first", "second", "opened_at"),
    [
        ((0.0, 9.0), (9.0, 9.0), 5.0),  # one is never seen: the node is opened all the same
        ((0.0, 9.0), (2.0, 9.0), 2.0),  # a busy API server needs seconds
        ((0.0, 0.1), (0.1, 9.0), 0.3),  # one is taken away before the other is seen
    ],
)
async def test_a_node_is_opened_once_its_nominations_have_been_seen_and_waits_for_them_a_moment_only(
    stage: Stage, first: tuple[float, float], second: tuple[float, float], opened_at: float
) -> None:
    """Each pod is seen nominated between its two moments. Opened before, the node gives its room to anybody."""
    pods = [waiting("a"), waiting("b")]
    stage.world.put(made_for(a_launched_claim(), *pods), a_node(), *pods)
    lookups, opened, patch = FakeLookups(stage.world), list[float](), stage.joining.nodes.patch
    assert stage.joining.places is not None
    stage.joining.places.lookups = lookups
    began, shown = stage.world.clock, {pods[0].uid: first, pods[1].uid: second}

    def as_seen(uid: str) -> Pod | None:
        since, until = shown[uid]
        seen = since <= stage.world.clock - began + 1e-6 < until
        return stage.world.pods[uid] if seen else replace(stage.world.pods[uid], nominated_node="")

    async def open_node(*given: Any) -> Any:
        opened.append(stage.world.clock)
        return await patch(*given)

    lookups.pod = as_seen  # type: ignore[method-assign]
    stage.joining.nodes.patch = open_node  # type: ignore[method-assign,assignment]

    await stage.join()

    assert stage.writes()[:3] == ["nominate a node-1", "nominate b node-1", "patch node node-1"]
    assert opened[0] - began == pytest.approx(opened_at, abs=0.05)


async def test_a_claim_that_keeps_no_places_writes_nothing_on_pods_and_waits_for_none(stage: Stage) -> None:
    pod = waiting("a")
    stage.world.put(made_for(a_launched_claim(), pod, keeps=False), a_node(), pod)

    await stage.join()

    assert stage.writes() == ["patch node node-1", "patch status pool-1"]
    assert stage.world.clock < 1011.0


async def test_what_the_kube_scheduler_takes_away_is_written_again_until_it_has_had_its_chance(stage: Stage) -> None:
    """While the node is not ready each try is in vain; and for ten seconds from when it is."""
    pod = waiting("a")
    stage.world.put(made_for(a_launched_claim(), pod), a_node(conditions=NOT_READY), pod)
    for moment in (1012.0, 1014.0, 1022.0):
        stage.world.at(moment, lambda: stage.change("a", nominated_node=""))
    stage.world.at(
        1020.0, lambda: stage.world.put(replace(stage.world.nodes["node-1"], conditions=a_node().conditions))
    )

    outcome = await stage.join()

    assert (outcome.kind, stage.nominated()) == ("done", {"a": "node-1"})
    assert stage.writes().count("nominate a node-1") == 4
    assert 1030.0 <= stage.world.clock < 1032.0


async def test_a_pod_that_is_tried_in_vain_all_the_time_is_nominated_a_bounded_number_of_times(stage: Stage) -> None:
    pod = waiting("a")
    stage.world.put(made_for(a_launched_claim(), pod), a_node(conditions=NOT_READY), pod)

    def take_away() -> None:
        stage.change("a", nominated_node="")
        if stage.world.clock < 1600.0:
            stage.world.at(stage.world.clock + 0.1, take_away)

    stage.world.at(1011.0, take_away)
    stage.world.at(
        1700.0, lambda: stage.world.put(replace(stage.world.nodes["node-1"], conditions=a_node().conditions))
    )

    assert (await stage.join()).kind == "done"
    # Twenty before the node is registered and initialised, each half a second or more after the one before.
    assert stage.writes().count("nominate a node-1") <= 2 * kept_places.MOST_TIMES


async def test_pods_that_are_bound_ended_or_nominated_by_others_are_left_alone(stage: Stage) -> None:
    pods = [
        waiting("bound", node_name="node-9"),
        waiting("deleted", deleting_since=1009.0),
        waiting("preempting", nominated_node="node-9"),
        waiting("gone"),
    ]
    stage.world.put(made_for(a_launched_claim(), *pods), a_node(), *pods[:-1])

    await stage.join()

    assert [line for line in stage.world.ledger if line.startswith("nominate")] == []


async def test_a_place_that_an_earlier_claim_of_ours_kept_is_given_up_for_the_newer_one(stage: Stage) -> None:
    pod = waiting("a", nominated_node="node-0")
    older = made_for(a_joined_claim("pool-0", node_name="node-0", provider_id="aws:///zone/i-0", created=900.0), pod)
    owner = Owner(api_version="karpenter.sh/v1", kind="NodeClaim", name="pool-0", uid=older.uid)
    node = a_joined_node("node-0", provider_id="aws:///zone/i-0", owners=(owner,))
    stage.world.put(older, node, made_for(a_launched_claim(), pod), a_node(), pod)

    await stage.join()

    assert stage.nominated() == {"a": "node-1"}


async def test_a_version_that_is_old_is_read_anew_and_a_pod_that_was_bound_meanwhile_is_no_error(stage: Stage) -> None:
    pods = [waiting("a"), waiting("b")]
    stage.world.put(made_for(a_launched_claim(), *pods), a_node(), *pods)
    nominate = stage.pods.nominate

    async def meet_others(pod: Pod, node: str) -> None:
        if stage.world.pods[pod.uid].resource_version == "1":
            stage.change(pod.name, **({"node_name": "node-9"} if pod.name == "b" else {"priority": 1}))
        await nominate(pod, node)

    stage.pods.nominate = meet_others  # type: ignore[method-assign]

    assert (await stage.join()).kind == "done"
    assert stage.nominated() == {"a": "node-1", "b": ""}
    assert stage.world.pods[pods[1].uid].node_name == "node-9"


async def test_a_right_that_is_missing_is_said_once_and_the_node_joins_all_the_same(stage: Stage) -> None:
    pods = [waiting("a"), waiting("b")]
    stage.world.put(made_for(a_launched_claim(), *pods), a_node(), *pods)
    stage.pods.fails = {pod.uid: Forbidden(pod.key, "cannot patch pods/status") for pod in pods}

    outcome = await stage.join()

    assert outcome.kind == "done"
    [notice] = stage.world.notices
    assert (notice.kind, notice.name, notice.reason) == ("NodePool", "pool", "PlacesNotKept")
    assert "cannot patch pods/status" in notice.message and "DOVETAIL_COST_KEEP_PLACES" in notice.message
    assert len([line for line in stage.world.ledger if line.startswith("nominate")]) <= len(pods)


async def test_an_api_server_that_does_not_answer_holds_no_node_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_places, "LONGEST_SECONDS", 0.05)
    pods = [waiting("a"), waiting("b")]
    stage.world.put(made_for(a_launched_claim(), *pods), a_node(), *pods)
    stage.pods.fails = {pods[0].uid: Unreachable(pods[0].key, "no answer")}

    async def hang(pod: Pod, node: str) -> None:
        stage.world.ledger.append(f"nominate {pod.name} {node}")
        await asyncio.sleep(60)

    stage.pods.nominate = hang  # type: ignore[method-assign]

    assert (await stage.join()).kind == "done"
    assert "patch node node-1" in stage.writes()


async def test_a_claim_that_leaves_takes_its_nominations_away_and_no_others(stage: Stage) -> None:
    pods = [waiting("a", nominated_node="node-1"), waiting("b", nominated_node="node-9"), waiting("c")]
    claim = made_for(a_joined_claim(deleting_since=1005.0), *pods)
    stranger = waiting("stranger", nominated_node="node-1")
    stage.world.put(claim, a_joined_node(), *pods, stranger)

    await stage.departing.begin_departure(REF)

    assert stage.nominated() == {"a": "", "b": "node-9", "c": "", "stranger": "node-1"}
    writes = stage.writes()
    assert writes.index("patch node node-1") < writes.index("nominate a nowhere")  # its taint keeps pods off it first


async def test_what_was_nominated_while_the_departure_began_is_taken_away_at_its_end(stage: Stage) -> None:
    pod = waiting("a")
    stage.world.put(made_for(a_joined_claim(deleting_since=1005.0), pod), a_joined_node(), pod)
    departure = await stage.departing.begin_departure(REF)
    stage.change("a", nominated_node="node-1")

    await stage.departing.release_claim(departure)

    assert stage.nominated() == {"a": ""}


async def test_a_step_that_is_tried_again_goes_on_for_what_is_left_of_the_time(stage: Stage) -> None:
    """The worker was killed: the claim says since when its node has been ready."""
    pod = waiting("a")
    stage.world.clock = 1004.0  # initialised at 1000
    stage.world.put(made_for(a_joined_claim(), pod), a_joined_node(), pod)

    assert (await stage.join()).kind == "done"
    assert stage.nominated() == {"a": "node-1"}
    assert 1010.0 <= stage.world.clock < 1011.0
    assert stage.writes() == ["nominate a node-1"]


async def test_what_is_taken_away_is_seen_at_once_and_until_the_step_ends(stage: Stage) -> None:
    """By one task for all steps, which ends with the last of them."""
    pod, changes = waiting("a"), Changes()
    claim = made_for(a_joined_claim(), pod)
    stage.world.put(claim, a_joined_node(), pod)
    places = KeptPlaces(FakeLookups(stage.world), stage.pods, FakeNotices(stage.world), time.time, cast(Any, changes))

    await places.keep(claim, "node-1", Nominated())
    for _ in range(3):
        await asyncio.sleep(kept_places.AGAIN_SECONDS)
        stage.change("a", nominated_node="")
        changes.ring()
        await until(lambda: stage.nominated() == {"a": "node-1"}, words="the pod is nominated again")
    follower = places.follower
    places.leave(claim.name)
    await asyncio.sleep(kept_places.AGAIN_SECONDS)
    stage.change("a", nominated_node="")
    changes.ring()
    await asyncio.wait({cast(Any, follower)}, timeout=60)

    assert follower is not None and follower.cancelled() and stage.nominated() == {"a": ""}


async def test_a_claim_that_is_deleted_while_its_pods_are_awaited_ends_the_wait(stage: Stage) -> None:
    pod = waiting("a")
    stage.world.put(made_for(a_launched_claim(), pod), a_node(), pod)

    def delete() -> None:
        stage.world.put(replace(stage.world.claims["pool-1"], deleting_since=stage.world.clock))

    stage.world.at(1012.0, delete)

    assert (await stage.join()).kind == "deleting"
