"""Whatever holds a departure, the step that waits brings each level at its time, whenever its worker is killed.

The real steps find out themselves what holds them. Workers die at any moment, before a write and after it; the next one
knows nothing but what stands in the cluster.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.mover import Mover
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.workloads import Begun
from dovetail.model.own.drain_rules import Blocker
from dovetail.ports.failures import Unreachable
from dovetail.ports.objects import MetadataChange
from tests.activities.test_draining import START, attached
from tests.activities.test_holds import (
    FORCED,
    PRE_TERMINATE,
    Killed,
    Levels,
    Stage,
    a_hook,
    a_pdb,
    a_protected_pod,
    new_stage,
    the_times,
)
from tests.activities.test_moving import Controller
from tests.lifecycle.objects import a_web_pod
from tests.model.move_worlds import NODE, a_moved_pod, a_roll_out
from worlds.fakes import FakeClaims, FakeNotices, World

KILLS: Final = 12  # in the hour and ten minutes of a play, at moments of no pattern
AWAY: Final = 14.0  # seconds until another worker goes on: a missed heartbeat and the next try
ONE_LOOK: Final = 1.0
STRIKES: Final = 6  # more of them at writes of the claim
SETTLED: Final = START + 70.0  # before that the clock is not on the claim, and no worker tells the next since when
SEEDS: Final = 20  # the soak has all of them


@dataclass(slots=True)
class Strikes:
    """At some writes of the claim the worker is killed, before the API server has the write or after it."""

    world: World
    chosen: random.Random
    left: int = STRIKES

    def claims(self, world: World) -> FakeClaims:
        return StruckClaims(world, self)

    def strike(self) -> None:
        if self.left and self.world.clock >= SETTLED and self.chosen.random() < 0.4:
            self.left -= 1
            raise Killed


class StruckClaims(FakeClaims):
    """The port of NodeClaims of such a worker."""

    def __init__(self, world: World, strikes: Strikes) -> None:
        super().__init__(world)
        self.strikes = strikes

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        self.strikes.strike()
        found = await super().patch(claim, change)
        self.strikes.strike()
        return found


def several_pdbs(stage: Stage) -> None:
    stage.world.put(a_web_pod())
    stage.pods.answers["uid-web-1"] = "unsupported"


def a_failure(stage: Stage) -> None:
    stage.world.put(a_web_pod())
    stage.pods.fails["uid-web-1"] = Unreachable("api server", "no answer")


def a_held_move(stage: Stage, **fields: Any) -> None:
    """The owner of a Deployment of one replica says that its pod is not to be moved."""
    stage.world.put(a_moved_pod(ready=True))
    controller = Controller(stage.world, a_roll_out(**(fields or {"wish": "hold"})))
    pace = EvictionPace(stage.world.now, stage.world.pause)
    stage.mover = Mover(controller, controller, FakeNotices(stage.world), pace, stage.world.now)


def a_note_of_no_move(stage: Stage) -> None:
    """It says that its pod is being moved, at a generation that never comes, and outlasts the pod."""
    a_held_move(stage, begun=Begun(node=NODE, former="", generation=999999, since=START), paused=True, settled=False)


def a_pod_that_ends_slowly(stage: Stage) -> None:
    """It has been asked to leave, and takes its whole grace, which is longer than the ladder: that is its own."""
    grace = int(FORCED + 500.0)
    pod = a_web_pod(deleting_since=START + grace, grace_seconds=grace)
    stage.world.put(pod)
    stage.world.at(START + grace, lambda: stage.world.kill(pod))


def an_attached_volume(stage: Stage) -> None:
    stage.world.attachments["a"] = attached()


def a_hook_of_the_end(stage: Stage) -> None:
    stage.write({PRE_TERMINATE: "backup-team"})


async def drained(stage: Stage) -> str:
    return await stage.drained()


async def detached(stage: Stage) -> str:
    return await stage.through(lambda: stage.detach().await_detached)


async def terminated(stage: Stage) -> str:
    return await stage.through(lambda: stage.terminate().terminate_instance)


CASES: Final[dict[str, tuple[Blocker, Callable[[Stage], None], Callable[[Stage], Awaitable[str]], str]]] = {
    "PdbBlocks": (Blocker.PDB_BLOCKS, a_pdb, drained, "drained"),
    "SeveralPdbs": (Blocker.SEVERAL_PDBS, several_pdbs, drained, "drained"),
    "DoNotDisrupt": (Blocker.DO_NOT_DISRUPT, a_protected_pod, drained, "drained"),
    "HookWaits": (Blocker.HOOK_WAITS, a_hook, drained, "drained"),
    "EvictionFails": (Blocker.EVICTION_FAILS, a_failure, drained, "drained"),
    "MoveHeld": (Blocker.MOVE_HELD, a_held_move, drained, "drained"),
    "MoveHeld by a note": (Blocker.MOVE_HELD, a_note_of_no_move, drained, "drained"),
    "PodTerminates": (Blocker.POD_TERMINATES, a_pod_that_ends_slowly, drained, "drained"),
    "VolumesAttached": (Blocker.VOLUMES_ATTACHED, an_attached_volume, detached, "deadline passed"),
    "HookWaits at the end": (Blocker.HOOK_WAITS, a_hook_of_the_end, terminated, "is gone"),
}


BY_FORCE: Final[dict[str, set[str]]] = {
    "MoveHeld": {"ledger-1"},
    "MoveHeld by a note": {"ledger-1"},
    "PodTerminates": set(),
    "VolumesAttached": set(),
    "HookWaits at the end": set(),
}


def test_everything_that_may_hold_a_drain_for_long_has_a_case() -> None:
    """Not a pause, during which the ladder stands, and not the wait for a turn, which ends after a minute."""
    held = {blocker for blocker, *_ in CASES.values()}

    assert held == set(Blocker) - {Blocker.PAUSED, Blocker.TURN_WAITS}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, SEEDS))])
@pytest.mark.parametrize("case", CASES)
async def test_each_level_comes_once_at_its_time_however_often_workers_are_killed(case: str, seed: int) -> None:
    """TRM-48, TRM-49. Another worker goes on after 14 s; without a kill in between a level is a second late at most."""
    blocker, hold, run, ending = CASES[case]
    chosen = random.Random(f"{case} {seed}")
    stage = new_stage(kills=sorted(chosen.uniform(SETTLED - START, FORCED + 300.0) + START for _ in range(KILLS)))
    stage.shortest, stage.away = 1.0, AWAY
    stage.writes = Strikes(stage.world, chosen).claims
    hold(stage)
    levels = Levels(stage)
    levels.watch()

    assert ending in await run(stage)

    [(kind, since)] = levels.clocks
    assert kind == blocker and START <= since <= START + 10.0
    assert len(stage.killed) > KILLS / 2
    for level, moment in the_times(since).items():
        came = levels.came[level]
        meanwhile = [each for each in stage.killed if moment - AWAY <= each <= came]
        assert moment <= came <= moment + ONE_LOOK + AWAY * len(meanwhile), (level, came - moment, meanwhile)
    for reason in ("DrainHeld", "DrainAsks", "DrainForced"):
        said = stage.said(reason)
        assert len(said) == len(set(said)), said
    forced = [line.split() for line in stage.world.ledger if line.startswith("force")]
    assert {line[1] for line in forced} == BY_FORCE.get(case, {"web-1"})
    assert all(float(line[3]) >= since + FORCED for line in forced)
