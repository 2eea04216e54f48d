"""What holds a drain is waited for, said, asked about and at last forced, each once and at its time, over kills."""

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.activities.interruptions.answer_interruptions import AnswerInterruptions
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.termination.await_detached import AwaitDetached
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.holds import HoldMemory, HoldPorts, Holds, LeavingClaim
from dovetail.activities.termination.mover import Mover, NoMoves
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.adapters.kubernetes_json.parsing.policies import parse_policy
from dovetail.messages.interruptions import Interruption, InterruptionReason
from dovetail.messages.subjects import Departure
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.workloads import VolumeAttachment
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.own.drain_rules import Blocker, DrainRules, Escalation, HookRules, Level
from dovetail.model.own.held_drains import NOT_HELD
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time
from dovetail.ports.failures import Forbidden, NotReadable, NotSeenYet, Postponed
from dovetail.ports.objects import MetadataChange
from dovetail.ports.view import PauseLookups
from dovetail.termination.forced import forced_of
from dovetail.termination.hold_clocks import clock_of
from dovetail.termination.ladder import DrainHold
from tests.activities.test_departing import an_instance
from tests.activities.test_draining import DEPARTURE, DRAINING, START, attached
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod, is_now
from worlds.fakes import (
    FakeClaims,
    FakeCloud,
    FakeLookups,
    FakeNotices,
    FakePods,
    PodsMadeAnew,
    World,
    departure_ports,
    detach_ports,
    drain_ports,
    unlimited,
)
from worlds.holds import held, levels_of

NOTIFIED, ASKED, FORCED = 300.0, 1200.0, 3600.0
NEARLY = 15.0  # seconds that a level may come after its time
EVERY = frozenset(Blocker)
LADDER = DrainRules(
    escalation=(
        Escalation(after=NOTIFIED, do=Level.NOTIFY),
        Escalation(after=ASKED, do=Level.ASK),
        Escalation(after=FORCED, do=Level.FORCE, blockers=EVERY),
    )
)
PRE_DRAIN = f"{names.PRE_DRAIN_HOOK}mesh"
PRE_TERMINATE = f"{names.PRE_TERMINATE_HOOK}backup"


class Killed(BaseException):
    """The worker is gone."""


@dataclass(slots=True)
class Rules:
    """The policies of the pool."""

    rules: tuple[DrainRules, ...] = (LADDER,)
    failure: Exception | None = None

    def drain_rules(self, pool: str) -> tuple[DrainRules, ...]:
        if self.failure is not None:
            raise self.failure
        return self.rules


@dataclass(slots=True)
class Paused:
    """A person has paused drains."""

    world: World
    until: float

    def pause_on(self, pool: str, activity: Activity) -> Pause | None:
        return Pause(pool="", what=frozenset({Activity.DRAINS})) if self.world.clock < self.until else None


@dataclass(slots=True)
class Stage:
    """A node that leaves, and workers that are killed at these moments."""

    world: World
    pods: FakePods
    rules: Rules
    kills: list[float] = field(default_factory=list)
    ends: float = START + FORCED + 600.0
    pauses: PauseLookups = field(default_factory=lambda: FakeLookups(World()))
    mover: Mover | NoMoves = field(default_factory=NoMoves)
    writes: Callable[[World], FakeClaims] = FakeClaims  # by whom NodeClaims are written
    shortest: float = 5.0  # seconds of a pause at least: what happens in between is the same in each second
    away: float = 0.0  # seconds until another worker goes on after a kill
    killed: list[float] = field(default_factory=list)

    async def pause(self, seconds: float) -> None:
        await self.world.pause(max(seconds, self.shortest))
        if self.world.clock >= self.ends:
            raise Killed
        if self.kills and self.world.clock >= self.kills[0]:
            self.kills.pop(0)
            raise Killed

    def holds(self) -> Holds:
        notices = FakeNotices(self.world)
        ports = HoldPorts(
            claims=self.writes(self.world), pods=self.pods, notices=notices, lookups=self.rules, pauses=self.pauses
        )
        return Holds(ports, self.world.now)

    def drain(self) -> DrainNode:
        world = self.world
        ports = drain_ports(
            world,
            pods=self.pods,
            pauses=self.pauses,
            detaching=self.detach(),
            mover=self.mover,
            holds=self.holds(),
        )
        return DrainNode(ports, unlimited(EvictionPace(world.now, world.pause)), world.now, self.pause)

    def detach(self) -> AwaitDetached:
        world = self.world
        ports = detach_ports(world, holds=self.holds())
        return AwaitDetached(ports, world.now, self.pause)

    def terminate(self) -> TerminateInstance:
        world = self.world
        known = KnownClaims(FakeLookups(world), FakeClaims(world))
        ports = departure_ports(world, holds=self.holds())
        departing = BeginAndEndDeparture(ports, world.now)
        return TerminateInstance(known, FakeCloud(world), world.now, departing, self.pause)

    async def through(self, step: Callable[[], Any]) -> str:
        """A step over all kills, each by a worker that knows nothing; what it answers, or nothing at the end."""
        while self.world.clock < self.ends:
            try:
                return str((await step()(self.departure())).message)
            except Killed:
                self.killed.append(self.world.clock)
                await self.world.pause(self.away)
        return ""

    def departure(self) -> Departure:
        claim = self.world.claims["pool-1"]
        return replace(DEPARTURE, is_final=claim.deleting_since is not None, tainted=START)

    async def drained(self) -> str:
        return await self.through(lambda: self.drain().drain_node)

    def claim(self) -> NodeClaim:
        return self.world.claims["pool-1"]

    def write(self, annotations: Mapping[str, str | None]) -> None:
        claim = self.claim()
        merged = {**claim.annotations, **annotations}
        self.world.put(replace(claim, annotations={k: v for k, v in merged.items() if v is not None}))

    def said(self, reason: str) -> list[str]:
        return [notice.kind for notice in self.world.notices if notice.reason == reason]

    def clock(self) -> tuple[str, float]:
        return clock_of_the(self.claim())


def clock_of_the(claim: NodeClaim) -> tuple[str, float]:
    """What holds the node, and since when."""
    clock = clock_of(claim, 0.0)
    assert clock is not None
    return clock.blocker, clock.since


@dataclass(slots=True)
class Levels:
    """When each level came onto the claim."""

    stage: Stage
    came: dict[str, float] = field(default_factory=dict)
    clocks: set[tuple[str, float]] = field(default_factory=set)  # what has held the node since when, as the claim said

    def watch(self) -> None:
        def look() -> None:
            claim = self.stage.world.claims.get("pool-1")
            if claim and clock_of(claim, 0.0) is not None:
                self.clocks.add(clock_of_the(claim))
            for level in levels_of(claim) if claim else ():
                self.came.setdefault(level, self.stage.world.clock)
            self.stage.world.at(self.stage.world.clock + 1.0, look)

        self.stage.world.at(START, look)


def new_stage(**fields: Any) -> Stage:
    world = World(clock=START)
    conditions = (*a_joined_claim().conditions, DRAINING, is_now(names.DISRUPTION_REASON, reason="Drifted"))
    world.put(
        a_joined_claim(deleting_since=START, conditions=conditions, finalizers=(names.TERMINATION_FINALIZER,)),
        a_joined_node(deleting_since=START),
    )
    world.instances = {"aws:///zone/i-1": an_instance()}
    return Stage(world, FakePods(world), Rules(), **fields)


@pytest.fixture
def stage() -> Stage:
    return new_stage()


def the_times(since: float) -> dict[str, float]:
    return {"Notify": since + NOTIFIED, "Ask": since + ASKED, "Force": since + FORCED}


@pytest.mark.parametrize("blocker", [each for each in Blocker if each is not Blocker.PAUSED])
async def test_every_blocker_reaches_each_level_once_at_its_time_over_kills_and_other_workers(
    stage: Stage, blocker: Blocker
) -> None:
    """TRM-48, TRM-49. A worker that knows nothing goes on where another stopped, and says nothing twice."""
    world, came = stage.world, dict[str, float]()
    pod = a_web_pod()
    hold = DrainHold(blockers=frozenset({blocker}), reason="Drifted", held=(pod,))
    looks = 0
    while world.clock < START + FORCED + 600:
        if looks % 37 == 0 and (world.clock >= START + 65 or looks == 0):  # a kill, some every three minutes
            holds, memory = stage.holds(), HoldMemory()
        held = LeavingClaim(claim=stage.claim(), began=START, nodes=(world.nodes["node-1"],), hold=hold)
        await holds.look(held, memory)
        for level in levels_of(stage.claim()):
            came.setdefault(level, world.clock)
        looks += 1
        await world.pause(5.0)

    kind, since = stage.clock()
    assert (kind, since) == (blocker, START)
    assert came.keys() == set(Level)
    for each, moment in the_times(since).items():
        assert moment <= came[each] <= moment + NEARLY
    assert (stage.said("DrainHeld"), stage.said("DrainAsks")) == (["Node", "Pod", "ReplicaSet"], ["Node"])
    assert stage.said("DrainForced") == ["Node"]
    assert len([line for line in world.ledger if line == "patch claim pool-1"]) == 4


def a_pdb(stage: Stage) -> None:
    stage.world.put(a_web_pod())
    stage.pods.answers["uid-web-1"] = "blocked"


def a_protected_pod(stage: Stage) -> None:
    stage.world.put(a_web_pod(do_not_disrupt="true"))


def a_hook(stage: Stage) -> None:
    stage.world.put(a_web_pod())
    stage.write({PRE_DRAIN: "mesh-team"})


async def test_volumes_that_stay_attached_are_forced_only_where_the_policy_names_them(stage: Stage) -> None:
    """TRM-49. Data is not to be lost for a blanket word."""
    stage.world.attachments["a"] = attached()
    levels = Levels(stage)
    levels.watch()

    assert "deadline passed" in await stage.through(lambda: stage.detach().await_detached)
    assert levels.came["Force"] >= START + FORCED

    other = new_stage()
    other.rules.rules = (DrainRules(escalation=(Escalation(after=FORCED, do=Level.FORCE),)),)
    other.world.attachments["a"] = attached()
    assert await other.through(lambda: other.detach().await_detached) == ""
    assert forced_of(other.claim()) is None


async def test_a_protected_pod_is_never_forced_by_a_word_that_does_not_name_it(stage: Stage) -> None:
    """TRM-49. Nor is a pod beside it, because a deadline is the whole node's."""
    stage.rules.rules = (
        DrainRules(escalation=(Escalation(after=300.0, do=Level.FORCE),)),
        DrainRules(escalation=(Escalation(after=300.0, do=Level.FORCE, blockers=frozenset({Blocker.PDB_BLOCKS})),)),
    )
    a_pdb(stage)
    stage.world.put(a_web_pod("job", do_not_disrupt="true", priority=2 * 10**9))  # of a tier that is not asked yet

    assert await stage.drained() == ""
    assert forced_of(stage.claim()) is None
    assert not [line for line in stage.world.ledger if line.startswith("force")]


async def test_without_a_policy_nothing_is_written_for_a_pod_that_holds_a_drain(stage: Stage) -> None:
    """TRM-48. As it was before there were ladders."""
    stage.rules.rules = ()
    a_pdb(stage)

    assert await stage.drained() == ""
    assert [line for line in stage.world.ledger if "claim" in line] == []


async def test_a_policy_that_cannot_be_seen_forces_nothing(stage: Stage) -> None:
    a_pdb(stage)
    stage.rules.failure = NotSeenYet("cluster view", "the watch is broken")

    assert await stage.drained() == ""
    assert memory_of(stage.claim().annotations).held == NOT_HELD


async def test_a_hook_holds_the_first_eviction_and_the_drain_goes_on_when_its_owner_is_back(stage: Stage) -> None:
    """TRM-47. Its controller is away for half an hour."""
    a_hook(stage)
    back = START + 1800.0
    stage.world.at(back, lambda: stage.write({PRE_DRAIN: None}))
    stage.kills = [START + 100 + 190 * n for n in range(9)]

    assert await stage.drained() == "drained, volumes are off"

    evicted = [float(line.split()[2]) for line in stage.world.ledger if line.startswith("evict")]
    assert evicted and back <= evicted[0] <= back + 5.0 + 1.0


def unreadable(stage: Stage, begins: float, ends: float) -> None:
    """Somebody has written something into the NodeClaim that no parser understands, and takes it off again."""
    stage.world.at(begins, lambda: stage.world.unreadable.add("pool-1"))
    stage.world.at(ends, stage.world.unreadable.clear)


async def test_a_claim_that_cannot_be_read_has_hooks_until_it_can(stage: Stage) -> None:
    """TRM-47. Neither an eviction nor the force of its deadline comes meanwhile; a person is told."""
    a_hook(stage)
    stage.write({names.TERMINATION_DEADLINE: format_time(START + 500.0)})
    unreadable(stage, START + 20.0, START + 900.0)

    assert await stage.drained() == "drained, volumes are off"

    left = [line.split() for line in stage.world.ledger if line.startswith(("evict", "force"))]
    assert left and all(float(line[-1]) >= START + 900.0 for line in left)
    told = [notice.message for notice in stage.world.notices if notice.reason == "FailedDraining"]
    assert any("NodeClaim/pool-1: spec.requirements" in message for message in told)


@pytest.mark.parametrize("hook", ["", "backup-team"])
async def test_the_instance_of_a_claim_that_cannot_be_read_is_not_ended(stage: Stage, hook: str) -> None:
    """TRM-47. The cache lacks it, and what it said before is no proof that it asks for nothing now."""
    stage.write({PRE_TERMINATE: hook or None})
    stage.world.unreadable.add("pool-1")

    with pytest.raises(NotReadable):
        await stage.terminate().terminate_instance(stage.departure())
    assert not [line for line in stage.world.ledger if line.startswith("terminate")]


async def test_a_claim_that_the_cache_lacks_is_read_live_for_its_hooks(stage: Stage) -> None:
    """TRM-47. It has not seen it yet, as in a burst of launches."""
    a_hook(stage)
    stage.world.hidden.add("pool-1")
    stage.world.at(START + 300.0, lambda: stage.write({PRE_DRAIN: None}))

    assert await stage.drained() == "drained, volumes are off"

    evicted = [float(line.split()[2]) for line in stage.world.ledger if line.startswith("evict")]
    assert evicted and evicted[0] >= START + 300.0


async def test_what_this_process_was_told_before_does_not_end_an_instance(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRM-47. The cache lacks the claim, which has got a hook since the last answer: a live read decides."""
    before = stage.claim()
    monkeypatch.setattr(FakeClaims, "answered", lambda self, name: before)
    stage.world.hidden.add("pool-1")
    stage.write({PRE_TERMINATE: "backup-team"})
    stage.world.at(START + 300.0, lambda: stage.write({PRE_TERMINATE: None}))

    assert "is gone" in await stage.through(lambda: stage.terminate().terminate_instance)
    assert stage.world.clock >= START + 300.0


async def test_a_node_without_pods_waits_for_its_hooks_too(stage: Stage) -> None:
    """TRM-47."""
    stage.write({PRE_DRAIN: "mesh-team"})
    stage.world.at(START + 600.0, lambda: stage.write({PRE_DRAIN: None}))

    assert await stage.drained() == "drained, volumes are off"
    assert stage.world.clock >= START + 600.0


async def test_a_hook_that_is_waited_for_in_vain_is_for_a_person_to_judge(stage: Stage) -> None:
    """TRM-47. Without any policy: it holds, and a person is asked after an hour."""
    stage.rules.rules = ()
    stage.ends = START + 6 * 3600.0
    a_hook(stage)
    levels = Levels(stage)
    levels.watch()

    assert await stage.drained() == ""
    assert START + 3600.0 <= levels.came["Ask"] <= START + 3600.0 + NEARLY
    assert stage.said("DrainAsks") == ["Node"]
    assert not [line for line in stage.world.ledger if line.startswith(("evict", "force"))]


@pytest.mark.parametrize("others", [(), (DrainRules(hooks=HookRules(timeout=600.0)),)])
async def test_a_hook_is_passed_after_its_time_where_every_policy_says_so(
    stage: Stage, others: tuple[DrainRules, ...]
) -> None:
    """TRM-47."""
    stage.rules.rules = (DrainRules(hooks=HookRules(timeout=1200.0, proceeds=True)), *others)
    a_hook(stage)

    assert await stage.drained() == ("" if others else "drained, volumes are off")
    assert others or stage.world.clock >= START + 1200.0


async def test_the_deadline_of_the_node_wins_over_hooks(stage: Stage) -> None:
    """TRM-47."""
    a_hook(stage)
    stage.write({names.TERMINATION_DEADLINE: format_time(START + 600.0)})

    assert await stage.drained() == "drained, volumes are off"
    assert START + 570.0 <= stage.world.clock <= START + 620.0


@pytest.mark.parametrize("annotation", [names.INTERRUPTED, names.ENDED_BECAUSE])
async def test_an_interrupted_node_waits_for_hooks_for_a_minute_at_most(stage: Stage, annotation: str) -> None:
    """TRM-47."""
    a_hook(stage)
    stage.write({annotation: format_time(START) if annotation == names.INTERRUPTED else "SpotInterrupted"})

    assert await stage.drained() == "drained, volumes are off"
    assert START + 60.0 <= stage.world.clock <= START + 80.0


async def test_a_pre_terminate_hook_holds_the_end_of_the_instance(stage: Stage) -> None:
    """TRM-47. Over kills; its own time counts from when the node was empty."""
    stage.write({PRE_TERMINATE: "backup-team"})
    stage.world.at(START + 1000.0, lambda: stage.write({PRE_TERMINATE: None}))
    stage.kills = [START + 150 * n for n in range(1, 6)]
    levels = Levels(stage)
    levels.watch()

    assert "is gone" in await stage.through(lambda: stage.terminate().terminate_instance)

    assert stage.world.clock >= START + 1000.0
    assert START + NOTIFIED <= levels.came["Notify"] <= START + NOTIFIED + NEARLY


async def test_while_a_hook_holds_the_end_of_the_instance_the_claim_says_that_its_node_is_drained(stage: Stage) -> None:
    """The drain leaves that to this step, and the hook's time counts from it."""
    stage.write({PRE_TERMINATE: "backup-team"})
    claim = stage.claim()
    stage.world.put(replace(claim, conditions=tuple(c for c in claim.conditions if c.type != names.DRAINED)))
    said: list[bool] = []
    stage.world.at(START + 100.0, lambda: said.append(stage.claim().is_true(names.DRAINED)))
    stage.world.at(START + 200.0, lambda: stage.write({PRE_TERMINATE: None}))

    await stage.terminate().terminate_instance(replace(stage.departure(), emptied=True))

    assert said == [True]
    assert stage.world.clock >= START + 200.0


@pytest.mark.parametrize("volume", [False, True])
async def test_a_hook_of_the_instances_end_has_its_whole_time_after_a_drain_that_took_longer(volume: bool) -> None:
    """TRM-47. A PDB has held the pods for twice as long as a hook is waited for. Where no volume is left either, the
    end of the instance writes on the claim that its node is empty."""
    stage = new_stage(ends=START + 20_000.0)
    stage.rules.rules = (DrainRules(hooks=HookRules(timeout=3600.0, proceeds=True)),)
    a_pdb(stage)
    stage.write({PRE_TERMINATE: "backup-team"})
    stage.world.at(START + 7200.0, stage.pods.answers.clear)
    if volume:
        stage.world.attachments["a"] = attached()
        stage.world.at(START + 7300.0, stage.world.attachments.clear)
    departure, drain = stage.departure(), stage.drain()
    drain.detaching = stage.detach()
    drained = await drain.drain_node(replace(departure, hands_over=True))
    assert drained.unwritten is not volume
    if volume:
        await stage.detach().await_detached(departure)
    empty = stage.world.clock
    stage.kills = [empty + 1000.0, empty + 2000.0]

    ended = await stage.through(lambda: _terminate(stage, emptied=drained.unwritten))

    assert "is gone" in ended
    assert empty + 3600.0 <= stage.world.clock <= empty + 3700.0


def _terminate(stage: Stage, *, emptied: bool) -> Callable[[Departure], Any]:
    """The step as the workflow asks for it after the drain."""
    return lambda departure: stage.terminate().terminate_instance(replace(departure, emptied=emptied))


async def test_an_instance_that_has_never_joined_waits_for_no_hook(stage: Stage) -> None:
    """TRM-47."""
    stage.write({PRE_TERMINATE: "backup-team"})
    claim = stage.claim()
    kept = tuple(each for each in claim.conditions if each.type != names.REGISTERED_CONDITION)
    stage.world.put(replace(claim, conditions=kept))

    assert "is gone" in await stage.through(lambda: stage.terminate().terminate_instance)
    assert stage.world.clock < START + 60.0


async def test_a_hook_that_denies_what_is_deleted_already_is_an_event(stage: Stage) -> None:
    """TRM-47."""
    stage.write({PRE_DRAIN: "deny: a backup runs"})
    stage.ends = START + 120.0

    await stage.drained()
    assert "HookDeniesTooLate" in stage.world.said()


async def test_another_kind_of_blocker_starts_the_clock_anew(stage: Stage) -> None:
    """TRM-48."""
    a_pdb(stage)
    stage.ends = START + 1000.0
    moment = START + 500.0
    stage.world.at(moment, lambda: stage.world.put(a_web_pod(do_not_disrupt="true")))

    await stage.drained()

    kind, since = stage.clock()
    assert kind == Blocker.DO_NOT_DISRUPT and moment <= since <= moment + 10
    first = clock_of(stage.claim(), 0.0)
    assert first is not None and first.levels == {Level.NOTIFY}


async def test_while_a_person_has_paused_drains_the_ladder_stands(stage: Stage) -> None:
    """TRM-49."""
    a_pdb(stage)
    stage.pauses = Paused(stage.world, START + 4000.0)
    stage.ends = START + 4000.0

    await stage.drained()
    assert levels_of(stage.claim()) == set()


async def decided(stage: Stage, decision: str, moment: float = START + 400.0) -> None:
    stage.world.at(moment, lambda: stage.write({names.DECISION: decision, names.DECISION_BY: "maria"}))
    await stage.drained()


async def test_a_person_forces_a_drain(stage: Stage) -> None:
    """TRM-50. With the pods' own grace."""
    a_pdb(stage)
    await decided(stage, "force")

    assert START + 430.0 - 5 <= stage.world.clock <= START + 450.0
    [line] = [line.split() for line in stage.world.ledger if line.startswith("force")]
    assert int(line[2]) >= 20
    assert names.DECISION not in stage.claim().annotations and stage.said("DrainDecided") == ["NodeClaim"]
    assert stage.said("DrainForced") == []


@pytest.mark.parametrize("lasts", [1.0, 20.0])
async def test_a_person_forces_a_drain_whose_pods_are_made_anew_on_the_node(stage: Stage, lasts: float) -> None:
    """TRM-13, TRM-50. Those that were there have their own grace."""
    stage.pods = PodsMadeAnew(stage.world, until=START + 900.0)
    stage.pods.lasts = lasts
    stage.world.put(a_web_pod("web"), a_web_pod("api"))
    await decided(stage, "force")

    assert stage.said("DrainDecided") == ["NodeClaim"]
    assert START + 430.0 - 5 <= stage.world.clock <= START + 475.0 and stage.world.pods


async def test_a_person_does_not_force_a_pod_that_asks_not_to_be_disrupted(stage: Stage) -> None:
    """TRM-50."""
    a_protected_pod(stage)
    stage.ends = START + 900.0
    await decided(stage, "force")

    assert forced_of(stage.claim()) is None
    assert names.DECISION not in stage.claim().annotations and "DecisionRefused" in stage.world.said()


async def test_a_person_asks_to_wait_and_is_asked_again_after_it(stage: Stage) -> None:
    """TRM-50. Nothing comes in between."""
    a_pdb(stage)
    stage.ends = START + 9000.0
    await decided(stage, "wait 2h", START + ASKED + 100.0)

    assert stage.said("DrainAsks") == ["Node", "Node"]
    assert stage.world.clock >= START + ASKED + 100.0 + 7200.0
    assert stage.said("DrainForced") == ["Node"]


async def test_a_cancel_is_too_late_after_the_delete(stage: Stage) -> None:
    """TRM-50."""
    a_pdb(stage)
    stage.ends = START + 900.0
    await decided(stage, "cancel")

    assert "DisruptionCancelTooLate" in stage.world.said()
    assert not {names.DECISION, names.CANCEL} & stage.claim().annotations.keys()


async def test_a_cancel_goes_the_way_of_every_cancel_before_the_delete(stage: Stage) -> None:
    """TRM-50."""
    stage.world.put(replace(stage.claim(), deleting_since=None, annotations=held(START + 5)))
    stage.write({names.DECISION: "cancel", names.DECISION_BY: "maria"})
    await stage.holds().look(LeavingClaim(claim=stage.claim(), began=START), HoldMemory())

    assert stage.claim().annotations[names.CANCEL_BY] == "maria" and names.CANCEL in stage.claim().annotations
    assert names.DECISION not in stage.claim().annotations


async def test_a_decision_that_cannot_be_understood_is_refused_with_words(stage: Stage) -> None:
    """TRM-50."""
    a_pdb(stage)
    stage.ends = START + 900.0
    await decided(stage, "kill it")

    assert "DecisionRefused" in stage.world.said() and names.DECISION not in stage.claim().annotations


async def test_an_answer_from_before_the_question_answers_nothing(stage: Stage) -> None:
    """TRM-50. It may be a year old."""
    a_pdb(stage)
    stage.write({names.DECISION: "force"})
    stage.ends = START + 900.0

    await stage.drained()
    assert forced_of(stage.claim()) is None
    assert names.DECISION not in stage.claim().annotations


async def test_a_clock_of_an_earlier_departure_counts_for_nothing(stage: Stage) -> None:
    """TRM-48. A disruption was called off a week ago, or somebody wrote it."""
    a_pdb(stage)
    stage.write(held(START - 86_400.0, Blocker.PDB_BLOCKS, Level.NOTIFY))
    stage.ends = START + 200.0

    await stage.drained()
    assert stage.clock()[1] >= START and levels_of(stage.claim()) == set()


async def test_a_drain_goes_on_where_its_clock_cannot_be_written(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """TRM-48."""
    a_pdb(stage)
    stage.world.at(START + 500.0, stage.pods.answers.clear)

    async def refuse(self: FakeClaims, claim: NodeClaim, change: MetadataChange) -> NodeClaim:
        raise Forbidden("NodeClaim/pool-1", "no right")

    monkeypatch.setattr(FakeClaims, "patch", refuse)
    assert await stage.drained() == "drained, volumes are off"


def of(pod: Pod) -> DrainHold:
    return DrainHold(blockers=frozenset({Blocker.PDB_BLOCKS}), reason="Drifted", held=(pod,))


@pytest.mark.slow
async def test_a_thousand_held_drains_write_next_to_nothing() -> None:
    """TRM-48. Over a day with a ladder of all levels: less than one write in five seconds, Events included. Fifty are
    played, each for itself."""
    stage, drains = new_stage(), 50
    stage.rules.rules = (
        DrainRules(
            escalation=(
                Escalation(after=900.0, do=Level.NOTIFY),
                Escalation(after=4 * 3600.0, do=Level.ASK),
                Escalation(after=20 * 3600.0, do=Level.FORCE),
            )
        ),
    )
    holds, memories = stage.holds(), [HoldMemory() for _ in range(drains)]
    for number in range(drains):
        stage.world.put(replace(stage.claim(), name=f"claim-{number}", uid=f"uid-{number}"))
    hold, node = of(a_web_pod()), stage.world.nodes["node-1"]
    while stage.world.clock < START + 86_400.0:
        for number, memory in enumerate(memories):
            claim = stage.world.claims[f"claim-{number}"]
            await holds.look(LeavingClaim(claim=claim, began=START, nodes=(node,), hold=hold), memory)
        await stage.world.pause(900.0)

    writes = len([line for line in stage.world.ledger if line.startswith("patch")]) + len(stage.world.notices)
    assert writes == 9 * drains  # four on the claim, five Events
    assert 1000 / drains * writes / 86_400.0 <= 0.2


async def test_the_ladder_of_the_guide_is_as_it_is_told() -> None:
    """A PDB that never allows, a node that drifted, a worker that is killed every three hours: a day."""
    guide = (Path(__file__).parents[2] / "docs/guides/blocked-drains.md").read_text()
    told = guide.partition("## The ladder")[2].partition("```yaml")[2].partition("```")[0]
    drain = parse_policy(yaml.safe_load(told)).drain
    assert drain is not None
    stage, came, memory = new_stage(), dict[str, float](), HoldMemory()
    stage.rules.rules = (drain,)
    holds = stage.holds()
    for minute in range(25 * 60):
        if minute % 180 == 90:
            holds, memory = stage.holds(), HoldMemory()
        await holds.look(LeavingClaim(claim=stage.claim(), began=START, hold=of(a_web_pod())), memory)
        for level in levels_of(stage.claim()):
            came.setdefault(level, stage.world.clock - START)
        await stage.world.pause(60.0)

    assert (came["Notify"], came["Ask"], came["Force"]) == (15 * 60.0, 4 * 3600.0, 24 * 3600.0)


@pytest.mark.parametrize("lacking", ["hidden", "unreadable"])
async def test_a_node_that_the_cache_lacks_keeps_its_pods_and_volumes(lacking: str) -> None:
    """TRM-13, TRM-31. Somebody has written something into the Node that no parser understands, or the cache does not
    show it: its pods are behind a PDB, and its volume is attached."""
    stage = new_stage(ends=START + 3600.0)
    stage.rules.rules = ()
    a_pdb(stage)
    stage.world.attachments["a"] = attached()
    names_lacking: set[str] = getattr(stage.world, lacking)
    stage.world.at(START + 300.0, lambda: names_lacking.add("node-1"))
    stage.world.at(START + 900.0, names_lacking.clear)
    stage.world.at(START + 1200.0, stage.pods.answers.clear)
    stage.world.at(START + 1500.0, lambda: names_lacking.add("node-1"))
    stage.world.at(START + 1800.0, names_lacking.clear)
    stage.world.at(START + 2400.0, stage.world.attachments.clear)

    assert await stage.drained() == "drained"
    assert START + 1200.0 <= stage.world.clock <= START + 1300.0 and not stage.world.pods
    while stage.world.clock < START + 2400.0:
        try:
            over = await stage.through(lambda: stage.detach().await_detached)
        except NotReadable:  # Temporal tries the step again
            await stage.world.pause(5.0)
        else:
            assert over == "volumes are off" and stage.world.clock >= START + 2400.0


@dataclass(slots=True)
class Warned:
    """The view and the cloud, as the answer to a warning asks them."""

    world: World

    def snapshot(self, reads: object = None) -> Snapshot:
        return replace(Snapshot(now=self.world.clock), claims=dict(self.world.claims))

    async def learn_from(self, interruption: Interruption, claim: NodeClaim) -> None:
        self.world.ledger.append(f"short {claim.name}")

    async def borne_out(self, warned: Collection[object]) -> frozenset[object]:
        return frozenset()


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize(
    ("reason", "capacity", "waits"),
    [
        ("spot_interrupted", names.CAPACITY_SPOT, False),
        ("scheduled_change", names.CAPACITY_SPOT, True),
        ("spot_interrupted", names.CAPACITY_ON_DEMAND, True),
    ],
)
async def test_hooks_hold_a_node_that_leaves_already_for_a_minute_from_the_warning_that_takes_it(
    reason: InterruptionReason, capacity: str, waits: bool, marked: bool
) -> None:
    """TRM-47. A disruption has marked it, or a person has deleted it. A scheduled change is days away, and nothing
    takes capacity back that is not spot: such a warning alone ends no hook, which the cloud does not confirm."""
    stage = new_stage(ends=START + 3000.0)
    stage.rules.rules = ()
    leaving = stage.claim()
    conditions = leaving.conditions if marked else a_joined_claim().conditions
    stage.world.put(replace(leaving, conditions=conditions, labels={**leaving.labels, names.CAPACITY_TYPE: capacity}))
    a_hook(stage)
    stage.world.clock = START + 600.0
    port: Any = Warned(stage.world)
    warning = Interruption(id="e1", reason=reason, instances=("i-1",), at=stage.world.clock)
    step = AnswerInterruptions(port, FakeClaims(stage.world), port, stage.world.now)

    with pytest.raises(Postponed) if marked and waits and reason == "spot_interrupted" else nullcontext():
        await step.answer_interruptions((warning,))
    drained = await stage.drained()

    assert drained == ("" if waits else "drained, volumes are off")
    assert waits or START + 660.0 < stage.world.clock < START + 700.0


class OnePodUnreadable(FakeLookups):
    """The cache, where one pod of the node is understood by no parser."""

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        raise NotReadable("Pod/apps/bad", "spec.containers: not a list")


async def test_a_deadline_is_kept_beside_a_pod_that_cannot_be_read() -> None:
    """TRM-14, TRM-34. The other pods have their grace before the instance ends, and so it does, although nobody can say
    whose volume it is. Before the deadline none leaves."""
    stage = new_stage(ends=START + 3000.0)
    stage.world.put(a_web_pod(grace_seconds=60))
    stage.world.attachments["a"] = attached()
    stage.write({names.TERMINATION_DEADLINE: format_time(START + 600.0)})
    drain, detach = stage.drain(), stage.detach()
    drain.lookups = detach.lookups = OnePodUnreadable(stage.world)

    drained = await drain.drain_node(stage.departure())
    detached = await detach.await_detached(stage.departure())

    [(_, name, grace, moment)] = [line.split() for line in stage.world.ledger if line.startswith("force")]
    assert name == "web-1" and 50 <= int(grace) <= 60 and START + 540.0 <= float(moment) <= START + 550.0
    assert "one pod could not be read" in drained.message and "deadline passed" in detached.message


class NoVolumesReadable(FakeLookups):
    """The cache, where a volume of the node is understood by no parser."""

    def attachments_on(self, node: str) -> tuple[VolumeAttachment, ...]:
        raise NotReadable("VolumeAttachment/a", "spec.source: not a map")


async def test_a_volume_that_cannot_be_read_holds_its_node_until_the_deadline_and_no_longer() -> None:
    """TRM-34. The drain ends, so that the wait for volumes begins, which the deadline ends."""
    stage = new_stage()
    stage.world.put(a_web_pod())
    stage.write({names.TERMINATION_DEADLINE: format_time(START + 600.0)})
    drain, detach = stage.drain(), stage.detach()
    drain.detaching, detach.lookups = detach, NoVolumesReadable(stage.world)

    drained = await drain.drain_node(stage.departure())
    assert drained.message == "drained" and not drained.detached
    with pytest.raises(NotReadable):
        await detach.await_detached(stage.departure())
    stage.world.clock = START + 601.0
    assert "deadline passed" in (await detach.await_detached(stage.departure())).message


@pytest.mark.parametrize("gone", [True, False])
async def test_a_volume_keeps_no_node_whose_instance_is_gone(gone: bool) -> None:
    """TRM-5. A spot instance was taken while its volume was waited for: no kubelet says any more that it is off, and
    until the Node goes it may stay attached. A silent kubelet alone is no proof."""
    stage = new_stage(ends=START + 3000.0)
    stage.rules.rules = ()
    stage.world.attachments["a"] = attached()
    stage.world.at(START + 600.0, lambda: fail(stage, gone=gone))

    over = await stage.through(lambda: stage.detach().await_detached)

    assert ("the instance is gone" in over) is gone
    assert not gone or START + 600.0 <= stage.world.clock <= START + 620.0
    assert gone or "a" in stage.world.attachments


def fail(stage: Stage, *, gone: bool) -> None:
    """The kubelet falls silent; the instance is gone, or not."""
    node = stage.world.nodes["node-1"]
    silent = [replace(each, status="Unknown") if each.type == names.READY else each for each in node.conditions]
    stage.world.put(replace(node, conditions=tuple(silent)))
    if gone:
        stage.world.instances.clear()


@pytest.mark.parametrize("gone", [True, False])
async def test_a_hook_keeps_no_node_whose_instance_is_gone(gone: bool) -> None:
    """TRM-5, TRM-47. It has failed while its backup was waited for; until its Node goes, a StatefulSet makes no other
    pod. A silent kubelet alone is no proof."""
    stage = new_stage(ends=START + 3000.0)
    stage.write({PRE_TERMINATE: "backup-team"})
    stage.world.at(START + 600.0, lambda: fail(stage, gone=gone))
    ended = await stage.through(lambda: stage.terminate().terminate_instance)

    assert ("is gone" in ended) is gone
    assert not gone or START + 600.0 <= stage.world.clock <= START + 620.0


async def test_the_step_says_when_the_instance_was_told_to_end_and_when_it_ended(stage: Stage) -> None:
    """TRM-36, TRM-47. For the record of what it has cost: a hook may hold it for hours, and EC2 takes a minute."""
    held = 1800.0
    stage.write({PRE_TERMINATE: "backup-team"})
    stage.world.at(START + held, lambda: stage.write({PRE_TERMINATE: None}))
    step = stage.terminate()
    assert isinstance(step.cloud, FakeCloud)
    step.cloud.lingers = 8

    outcome = await step.terminate_instance(stage.departure())

    assert outcome.asked is not None and START + held <= outcome.asked <= START + held + 10.0
    looks = [outcome.asked + 5.0 * number for number in range(9)]
    assert outcome.gone == pytest.approx((looks[-2] + looks[-1]) / 2)
