"""drain_node while requests wait for the pace that all drains share, or for an answer of a slow API server."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.messages.outcomes import DrainOutcome
from dovetail.model import names
from dovetail.model.own.drain_rules import DrainRules
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.pods import Pod
from dovetail.ports.failures import NotReadable
from dovetail.ports.objects import Eviction
from dovetail.termination import timing
from tests.activities.test_draining import START, Stage, new_stage
from tests.lifecycle.objects import a_web_pod
from worlds.fakes import (
    FakeLookups,
    FakePods,
    drain_ports,
    holds,
    unlimited,
)


class SlowPods(FakePods):
    """An API server that does not answer to the eviction of some pods, or to their deletion, while the test runs."""

    silent: frozenset[str] = frozenset()

    async def evict(self, pod: Pod) -> Eviction:
        if pod.name in self.silent:
            await asyncio.sleep(3600)
        return await super().evict(pod)

    async def delete(self, pod: Pod, grace_seconds: int) -> None:
        if pod.name in self.silent:
            await asyncio.sleep(3600)
        await super().delete(pod, grace_seconds)


class Pauses:
    """Nothing is paused."""

    def pause_on(self, pool: str, activity: Activity) -> Pause | None:
        return None


class NoRules:
    """No policy says anything of drains."""

    def drain_rules(self, pool: str) -> tuple[DrainRules, ...]:
        return ()


class Queue:
    """The evictions of others that come first, until it is opened."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()

    async def pause(self, seconds: float) -> None:
        await self.opened.wait()


def a_stage(queue: Queue | None = None, silent: frozenset[str] = frozenset()) -> Stage:
    made = new_stage()
    world, pods = made.world, SlowPods(made.world)
    pods.silent = silent
    pauses: Any = Pauses()
    ports = drain_ports(
        world, pods=pods, pauses=pauses, holds=holds(world, pods=pods, lookups=NoRules(), pauses=pauses)
    )
    pace = EvictionPace(world.now, queue.pause if queue else world.pause, burst=0.0 if queue else 200.0)

    async def pause(seconds: float) -> None:
        await world.pause(seconds)
        for _ in range(10):
            await asyncio.sleep(0)  # requests go on meanwhile

    return replace(made, pods=pods, drain=DrainNode(ports, unlimited(pace), world.now, pause))


@pytest.fixture(autouse=True)
def _no_look_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of these tests stands still while a look waits for answers."""
    monkeypatch.setattr(timing, "ANSWERS", 0.001)


async def until_forced(stage: Stage, name: str, deadline: float) -> int:
    """The grace with which that pod was deleted."""
    drain = asyncio.create_task(stage.run(deadline=deadline))
    while not any(pod == name for pod, _ in stage.forced()):
        assert not drain.done() and stage.world.clock < deadline
        await asyncio.sleep(0)
    # What was sent and is not answered is waited for: the server may have counted it against a PDB.
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    return dict(stage.forced())[name]


async def test_an_eviction_that_is_not_answered_takes_no_grace_of_other_pods() -> None:
    """TRM-14, TRM-27: `web` is asked first, and its deletion comes to be due while that hangs."""
    stage = a_stage(silent=frozenset({"web"}))
    stage.pods.answers["uid-db"] = "blocked"
    stage.holds(a_web_pod("db", grace_seconds=10), a_web_pod("web", grace_seconds=1))

    assert await until_forced(stage, "db", START + 60.0) >= 9


async def test_a_deletion_that_is_not_answered_takes_no_grace_of_other_pods() -> None:
    """TRM-27."""
    stage = a_stage(silent=frozenset({"web"}))
    stage.pods.answers["uid-db"] = "blocked"
    stage.holds(a_web_pod("db", grace_seconds=10), a_web_pod("web", grace_seconds=3600))

    assert await until_forced(stage, "db", START + 60.0) >= 9


async def test_a_pod_whose_request_waits_for_the_pace_keeps_its_own_grace() -> None:
    """TRM-14, TRM-27: thousands of others are evicted first; a deadline does not wait for them."""
    stage = a_stage(Queue())
    stage.holds(a_web_pod("db", grace_seconds=10))

    assert await stage.run(deadline=START + 60.0) == DrainOutcome(message="drained")

    [(name, grace)] = stage.forced()
    assert (name, stage.evictions()) == ("db", []) and grace >= 9


async def test_a_pod_is_asked_once_however_many_looks_its_request_lasts() -> None:
    queue = Queue()
    stage = a_stage(queue)
    stage.holds(a_web_pod("db"))
    stage.world.at(START + 30.0, queue.opened.set)

    assert await stage.run() == DrainOutcome(message="drained")

    assert stage.evictions() == ["db"]


def _protect(stage: Stage, protected: bool) -> None:
    pod = stage.world.pods["uid-db"]
    stage.world.put(replace(pod, do_not_disrupt="true" if protected else None))


def _pause(stage: Stage, paused: bool) -> None:
    said = Pause(pool="pool", what=frozenset({Activity.DRAINS})) if paused else None
    stage.drain.pauses.pause_on = lambda pool, activity: said  # type: ignore[method-assign]


def _hook(stage: Stage, hooked: bool) -> None:
    claim = stage.world.claims["pool-1"]
    stage.world.put(replace(claim, annotations={names.PRE_DRAIN_HOOK + "mesh": ""} if hooked else {}))


def _make_unreadable(stage: Stage, unreadable: bool) -> None:
    """Another pod of the node."""
    readable = FakeLookups(stage.world).pods_on

    def pods_on(node: str) -> tuple[Pod, ...]:
        raise NotReadable("Pod/apps/odd", "spec.tolerations: not a list")

    stage.drain.lookups.pods_on = pods_on if unreadable else readable  # type: ignore[method-assign]


def _hide_claim(stage: Stage, hidden: bool) -> None:
    (stage.world.unreadable.add if hidden else stage.world.unreadable.discard)("pool-1")


@pytest.mark.parametrize("say", [_protect, _pause, _hook, _make_unreadable, _hide_claim])
async def test_what_is_said_while_a_request_waits_for_the_pace_counts(say: Callable[[Stage, bool], None]) -> None:
    """Said in the moment in which its turn comes, and taken back later; no look comes in between."""
    queue = Queue()
    stage = a_stage(queue)
    stage.holds(a_web_pod("db"))

    def said() -> None:
        say(stage, True)
        queue.opened.set()

    stage.world.at(START + 5.0, said)
    stage.world.at(START + 60.0, lambda: say(stage, False))

    assert await stage.run() == DrainOutcome(message="drained")

    [asked] = [float(line.split()[2]) for line in stage.world.ledger if line.startswith("evict")]
    assert asked >= START + 60.0
