"""A drain that is forced: its pods leave with their own grace, and what nobody meant is waited for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.mover import Mover
from dovetail.model import names
from dovetail.model.own.drain_rules import Blocker, DrainRules, Escalation, Level
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.pods import Pod
from dovetail.model.values.time import format_time
from dovetail.ports.failures import Failure, NotReadable
from dovetail.termination.evictions import SYSTEM_PRIORITY
from dovetail.termination.forced import forced_of
from dovetail.termination.leaving import LEAVING_TAINT
from tests.activities.test_draining import START, attached
from tests.activities.test_holds import (
    FORCED,
    PRE_DRAIN,
    PRE_TERMINATE,
    Stage,
    a_pdb,
    new_stage,
)
from tests.activities.test_moving import Controller
from tests.lifecycle.objects import a_web_pod, is_now
from tests.model.move_worlds import a_moved_pod, a_roll_out
from worlds.fakes import FakeNotices, FakePods
from worlds.holds import forced_by, held

BACK = START + FORCED + 7200.0  # by then the volume is off; ten minutes later the owner of the hook is done
ENDS = BACK + 3600.0
ASKS = DrainRules(escalation=(Escalation(after=120.0, do=Level.ASK),))
PDB, HOOK, VOLUMES = Blocker.PDB_BLOCKS, Blocker.HOOK_WAITS, Blocker.VOLUMES_ATTACHED


def forcing(*blockers: Blocker) -> DrainRules:
    return DrainRules(escalation=(Escalation(after=FORCED, do=Level.FORCE, blockers=frozenset(blockers)),))


def a_stage(*rules: DrainRules, **fields: Any) -> Stage:
    stage = new_stage(**{"ends": ENDS, **fields})
    stage.rules.rules = rules
    return stage


def forces(stage: Stage) -> list[tuple[str, int, float]]:
    """Which pod was deleted with which grace, and when."""
    lines = (line.split() for line in stage.world.ledger if line.startswith("force"))
    return [(line[1], int(line[2]), float(line[3])) for line in lines]


async def departed(stage: Stage) -> dict[str, float]:
    """A node with a pod that a PDB holds, a volume and a pre-terminate hook leaves; when each step was over."""
    a_pdb(stage)
    stage.write({PRE_TERMINATE: "backup-team"})
    stage.world.attachments["a"] = attached()
    stage.world.at(BACK, stage.world.attachments.clear)
    stage.world.at(BACK + 600.0, lambda: stage.write({PRE_TERMINATE: None}) if stage.world.claims else None)
    assert await stage.drained() == "drained"
    over = {"pods": stage.world.clock}
    await stage.through(lambda: stage.detach().await_detached)
    over["volumes"] = stage.world.clock
    assert "is gone" in await stage.through(lambda: stage.terminate().terminate_instance)
    return {**over, "instance": stage.world.clock}


def reached(over: Mapping[str, float]) -> tuple[bool, bool]:
    """Whether volumes were not waited for, and whether the hook was not."""
    assert over["pods"] <= START + FORCED + 120.0
    return over["volumes"] < BACK, over["instance"] < over["volumes"] + 300.0


@pytest.mark.parametrize(
    ("rules", "reach"),
    [
        ((forcing(PDB),), (False, False)),
        ((forcing(),), (False, False)),
        ((forcing(PDB, HOOK),), (False, True)),
        ((forcing(PDB, VOLUMES),), (True, False)),
        ((forcing(PDB, VOLUMES, HOOK),), (True, True)),
        ((forcing(PDB, VOLUMES), forcing(PDB, HOOK)), (False, False)),
        ((forcing(PDB, HOOK), forcing()), (False, False)),
    ],
)
async def test_a_policy_ends_the_waits_for_hooks_and_volumes_only_where_it_names_them(
    rules: tuple[DrainRules, ...], reach: tuple[bool, bool]
) -> None:
    """TRM-49. Several policies: where all do. Without names it is for what holds the drain, and nothing after that."""
    assert reached(await departed(a_stage(*rules))) == reach


@pytest.mark.parametrize(
    ("decision", "reach"),
    [
        ("force", (False, False)),
        ("force HookWaits", (False, True)),
        ("force VolumesAttached", (True, False)),
        ("force HookWaits VolumesAttached", (True, True)),
    ],
)
async def test_a_person_ends_the_waits_for_hooks_and_volumes_only_where_they_name_them(
    decision: str, reach: tuple[bool, bool]
) -> None:
    """TRM-50. The Event says which are waited for."""
    stage = a_stage(ASKS)
    stage.world.at(START + 400.0, lambda: stage.write({names.DECISION: decision}))

    assert reached(await departed(stage)) == reach

    [said] = [notice.message for notice in stage.world.notices if notice.reason == "DrainDecided"]
    told = said.partition("grace period")[2].split("; ")
    waited_for = next((words for words in told if words.endswith("are waited for")), "")
    assert ("volumes" not in waited_for, "hooks" not in waited_for) == reach


async def test_a_force_that_is_asked_for_because_of_a_hook_is_meant_for_it() -> None:
    """TRM-50. The person has read what holds the node."""
    stage = a_stage(ASKS)
    stage.write({PRE_TERMINATE: "backup-team"})
    stage.world.at(START + 400.0, lambda: stage.write({names.DECISION: "force"}))

    assert "is gone" in await stage.through(lambda: stage.terminate().terminate_instance)
    assert stage.world.clock <= START + 450.0


async def test_an_answer_about_a_pod_does_not_end_a_wait_for_a_hook_that_has_begun_since() -> None:
    """TRM-50. The pods left in the very moment of the answer, and the backup of the instance begins."""
    stage = a_stage(ASKS)
    stage.write({PRE_TERMINATE: "backup-team", **held(START + 1.0), names.DECISION: "force"})
    stage.world.at(START + 1800.0, lambda: stage.write({PRE_TERMINATE: None}))

    assert "is gone" in await stage.through(lambda: stage.terminate().terminate_instance)

    assert stage.world.clock >= START + 1800.0
    [said] = [notice.message for notice in stage.world.notices if notice.reason == "DecisionRefused"]
    assert "a hook whose owner has not taken it off" in said


@pytest.mark.parametrize("after_the_pods", [PRE_TERMINATE, "volume"])
@pytest.mark.parametrize("decision", ["force", "force HookWaits VolumesAttached"])
async def test_an_answer_about_a_pod_does_not_end_a_wait_about_which_nobody_was_asked(
    decision: str, after_the_pods: str
) -> None:
    """TRM-50. The PDB was asked about, and let its pod go; what is waited for after the pods has its clock, and no
    question yet, when the answer comes."""
    stage = a_stage(ASKS)
    a_pdb(stage)
    if after_the_pods == "volume":
        stage.world.attachments["a"] = attached()
    else:
        stage.write({after_the_pods: "backup-team"})
    stage.world.at(START + 300.0, stage.pods.answers.clear)
    stage.world.at(START + 400.0, lambda: stage.write({names.DECISION: decision}))
    stage.world.at(BACK, stage.world.attachments.clear)
    stage.world.at(BACK, lambda: stage.write({PRE_TERMINATE: None}) if stage.world.claims else None)

    said = "drained" if after_the_pods == "volume" else "drained, volumes are off"
    assert await stage.drained() == said and stage.world.clock < START + 320.0
    await stage.through(lambda: stage.detach().await_detached)
    assert "is gone" in await stage.through(lambda: stage.terminate().terminate_instance)

    named = decision != "force"
    assert (stage.world.clock < START + 450.0) is named
    assert ("DecisionRefused" in stage.world.said()) is not named


@pytest.mark.parametrize(
    ("rules", "decision", "ends"),
    [
        (forcing(HOOK), "", True),
        (ASKS, "force", False),
        (ASKS, "force HookWaits", True),
    ],
)
async def test_a_hook_of_the_first_eviction_that_is_forced_takes_none_of_the_instances_end_with_it(
    rules: DrainRules, decision: str, ends: bool
) -> None:
    """TRM-49, TRM-50. The mesh is forced because it holds the node; the backup is waited for, as long as that was at
    least, unless hooks are named."""
    stage = a_stage(rules)
    stage.world.put(a_web_pod())
    stage.write({PRE_DRAIN: "mesh-team", PRE_TERMINATE: "backup-team"})
    stage.world.at(START + 400.0, lambda: stage.write({names.DECISION: decision or None}))
    stage.world.at(BACK, lambda: stage.write({PRE_TERMINATE: None}) if stage.world.claims else None)

    assert await stage.drained() == "drained, volumes are off" and stage.world.clock < START + FORCED + 120.0
    emptied = stage.world.clock
    assert "is gone" in await stage.through(lambda: stage.terminate().terminate_instance)

    assert (stage.world.clock < emptied + FORCED) is ends
    [said] = [n.message for n in stage.world.notices if n.reason == ("DrainDecided" if decision else "DrainForced")][:1]
    assert ("hooks of the instance's end and attached volumes are waited for" in said) is not ends


@pytest.mark.parametrize(("rules", "ends"), [(forcing(), False), (forcing(HOOK), True)])
async def test_a_policy_that_forces_waits_for_a_hook_that_it_does_not_name(rules: DrainRules, ends: bool) -> None:
    """TRM-50: a backup that takes longer than the time after which the policy forces is finished first."""
    stage = a_stage(rules)
    stage.write({PRE_TERMINATE: "backup-team"})
    finished = START + 3 * FORCED
    stage.world.at(finished, lambda: stage.write({PRE_TERMINATE: None}) if stage.world.claims else None)

    assert "is gone" in await stage.through(lambda: stage.terminate().terminate_instance)

    assert (stage.world.clock < finished) is ends


async def test_a_hook_that_comes_after_the_force_keeps_the_pods() -> None:
    """TRM-47, TRM-49. One pod has a grace of ten minutes, and a critical one leaves after it."""
    stage = a_stage(forcing(PDB))
    a_pdb(stage)
    stage.world.put(a_web_pod(priority=SYSTEM_PRIORITY), a_web_pod("db-0", grace_seconds=600))
    stage.pods.answers["uid-db-0"] = "blocked"
    hooked = START + FORCED + 300.0
    stage.world.at(hooked, lambda: stage.write({PRE_DRAIN: "mesh-team"}))
    stage.world.at(BACK, lambda: stage.write({PRE_DRAIN: None}))

    assert await stage.drained() == "drained, volumes are off"

    [(first, _, _), (second, grace, moment)] = forces(stage)
    assert (first, second, grace) == ("db-0", "web-1", 30)
    assert moment >= BACK


@pytest.mark.parametrize("grace", [600, 2**63 - 1])
async def test_a_pod_with_a_long_grace_postpones_no_other(grace: int) -> None:
    """TRM-49, TRM-50. It ends long before, as most do; a critical pod may be in use until then. Nor are volumes waited
    for so long."""
    stage = a_stage(ASKS, shortest=10.0)
    a_pdb(stage)
    slow, asked = a_web_pod("slow", grace_seconds=grace), START + 400.0
    stage.world.put(slow, a_web_pod("driver", priority=SYSTEM_PRIORITY))
    stage.pods.answers |= {"uid-slow": "blocked", "uid-driver": "blocked"}
    stage.world.attachments["a"] = attached()
    stage.world.at(asked, lambda: stage.write({names.DECISION: "force VolumesAttached"}))
    stage.world.at(asked + 60.0, lambda: stage.world.kill(slow))

    assert await stage.drained() == "drained"
    assert "deadline passed" in await stage.through(lambda: stage.detach().await_detached)

    found = {name: (grace, round((moment - asked) / 60.0)) for name, grace, moment in forces(stage)}
    assert found == {"slow": (grace, 0), "web-1": (30, 0), "driver": (30, 1)}
    assert stage.world.clock <= asked + 3600.0 + 60.0


async def test_a_pod_has_its_own_grace_whatever_the_last_look_knew() -> None:
    """TRM-50. The PDB has just let it go, the watch has not shown that yet, and somebody forces the drain."""
    stage = a_stage(ASKS, shortest=1.0)
    stage.world.put(a_web_pod("db-0", grace_seconds=900))
    stage.pods.answers["uid-db-0"] = "blocked"
    stage.world.at(START + 600.0, lambda: stage.pods.answers.update({"uid-db-0": "gone"}))
    stage.world.at(START + 611.0, lambda: stage.write({names.DECISION: "force"}))

    assert await stage.drained() == "drained, volumes are off"

    [(pod, grace, moment)] = forces(stage)
    assert (pod, grace) == ("db-0", 900) and moment >= START + 611.0
    [said] = [notice.message for notice in stage.world.notices if notice.reason == "DrainDecided"]
    assert format_time(START + 600.0 + 911.0)[:-4] in said


async def test_a_pod_that_is_being_moved_has_its_own_grace() -> None:
    """TRM-50. Nothing holds it meanwhile, of the closed list."""
    stage = a_stage(ASKS)
    moved = replace(a_moved_pod(ready=True), grace_seconds=600)
    controller = Controller(stage.world, a_roll_out(), works=False)
    stage.world.put(moved, replace(stage.world.nodes["node-1"], taints=(LEAVING_TAINT,)))
    pace = EvictionPace(stage.world.now, stage.world.pause)
    stage.mover = Mover(controller, controller, FakeNotices(stage.world), pace, stage.world.now)
    stage.world.at(START + 60.0, lambda: controller.now_is(timed_out=True))
    stage.world.at(START + 200.0, lambda: controller.now_is(timed_out=False, settled=True))
    stage.world.at(START + 1250.0, lambda: stage.write({names.DECISION: "force"}))

    assert await stage.drained() == "drained, volumes are off"

    [(pod, grace, moment)] = forces(stage)
    assert (pod, grace) == ("ledger-1", 600) and moment >= START + 1250.0


async def test_a_worker_that_was_away_takes_no_second_of_a_pods_grace() -> None:
    """TRM-49. It comes back an hour after the pods should have left: nobody has asked them yet."""
    stage = a_stage(forcing(PDB))
    stage.world.put(a_web_pod("db-0", grace_seconds=600))
    stage.pods.answers["uid-db-0"] = "blocked"
    stage.write(held(START + 1.0, PDB, Level.FORCE, forced=forced_by(START + 60.0, PDB)))
    stage.world.clock = START + FORCED

    assert await stage.drained() == "drained, volumes are off"

    assert [grace for _, grace, _ in forces(stage)] == [600]


async def test_a_pod_that_ends_already_is_left_to_its_grace() -> None:
    """TRM-49."""
    stage = a_stage(forcing())
    ending = a_web_pod("db-0", grace_seconds=7200, deleting_since=START + 7200.0)
    stage.world.put(ending)
    stage.world.at(START + 7200.0, lambda: stage.world.kill(ending))

    assert await stage.drained() == "drained, volumes are off"

    assert forces(stage) == [] and stage.world.clock >= START + 7200.0


class LiveAlone(FakePods):
    """What only the API server shows."""

    instead: tuple[Pod, ...] | Failure = ()

    async def list_on(self, node: str) -> tuple[Pod, ...]:
        if isinstance(self.instead, Failure):
            raise self.instead
        return self.instead


@pytest.mark.parametrize("rules", [(forcing(PDB),), (ASKS,)])
@pytest.mark.parametrize(
    "live", [NotReadable("Pod/apps/odd", "spec.tolerations: not a list"), (a_web_pod(do_not_disrupt="true"),)]
)
async def test_a_drain_is_not_forced_where_a_pod_cannot_be_read_or_asks_to_stay(
    rules: tuple[DrainRules, ...], live: tuple[Pod, ...] | Failure
) -> None:
    """TRM-49, TRM-50. By the API server; the cache does not show it yet."""
    stage = a_stage(*rules, ends=START + FORCED + 600.0)
    pods = LiveAlone(stage.world)
    pods.instead, stage.pods = live, pods
    a_pdb(stage)
    stage.world.at(START + 400.0, lambda: stage.write({names.DECISION: "force"}) if rules == (ASKS,) else None)

    assert await stage.drained() == ""

    assert forced_of(stage.claim()) is None and forces(stage) == []
    assert (names.DECISION in stage.claim().annotations) is (rules == (ASKS,) and isinstance(live, Failure))


async def test_the_deadline_of_the_node_ends_everything_also_where_its_drain_is_forced() -> None:
    """TRM-6, TRM-47. It is as with terminationGracePeriod alone."""
    stage = a_stage(forcing(PDB))
    stage.write({names.TERMINATION_DEADLINE: format_time(START + FORCED + 600.0)})

    over = await departed(stage)

    assert START + FORCED + 600.0 <= over["instance"] <= START + FORCED + 700.0


@dataclass(slots=True)
class PausedBetween:
    """A person pauses drains for a while."""

    stage: Stage
    begins: float
    ends: float

    def pause_on(self, pool: str, activity: Activity) -> Pause | None:
        held = self.begins <= self.stage.world.clock < self.ends
        return Pause(pool="", what=frozenset({Activity.DRAINS})) if held else None


async def test_no_pod_of_a_forced_drain_leaves_while_drains_are_paused() -> None:
    """TRM-49. One was asked to leave before the pause; the other leaves after it, with its whole grace."""
    stage = a_stage(forcing(PDB))
    a_pdb(stage)
    stage.world.put(a_web_pod(priority=SYSTEM_PRIORITY), a_web_pod("db-0", grace_seconds=600))
    stage.pods.answers["uid-db-0"] = "blocked"
    pauses: Any = PausedBetween(stage, START + FORCED + 60.0, BACK)
    stage.pauses = pauses

    assert await stage.drained() == "drained, volumes are off"

    [(first, *_), (second, grace, moment)] = forces(stage)
    assert (first, second, grace) == ("db-0", "web-1", 30) and BACK <= moment <= BACK + 15.0


async def test_the_ladder_stands_still_while_drains_are_paused_also_where_volumes_are_waited_for() -> None:
    """TRM-49."""
    stage = a_stage(forcing(VOLUMES))
    stage.world.attachments["a"] = attached()
    pauses: Any = PausedBetween(stage, START + FORCED - 60.0, BACK)
    stage.pauses = pauses

    assert "deadline passed" in await stage.through(lambda: stage.detach().await_detached)
    assert BACK <= stage.world.clock <= BACK + 60.0


async def test_nobody_forces_a_drain_while_drains_are_paused() -> None:
    """TRM-50. The pause is lifted first."""
    stage = a_stage(ASKS, ends=START + 1800.0)
    a_pdb(stage)
    pauses: Any = PausedBetween(stage, START + 200.0, ENDS)
    stage.pauses = pauses
    stage.world.at(START + 230.0, lambda: stage.write({names.DECISION: "force"}))

    assert await stage.drained() == "" and forces(stage) == []

    [said] = [notice.message for notice in stage.world.notices if notice.reason == "DecisionRefused"]
    assert "drains are paused: `dovetail resume drains`" in said


async def test_no_pod_of_a_node_that_a_person_has_deleted_leaves_by_force_while_drains_are_paused() -> None:
    """TRM-49. It was forced before the pause, by when its pod with the longest grace has ended."""
    stage = a_stage(forcing(PDB))
    a_pdb(stage)
    stage.world.put(a_web_pod(priority=SYSTEM_PRIORITY), a_web_pod("db-0", grace_seconds=600))
    stage.pods.answers["uid-db-0"] = "blocked"
    claim = stage.claim()
    kept = tuple(each for each in claim.conditions if each.type != names.DISRUPTION_REASON)
    stage.world.put(replace(claim, conditions=kept))
    pauses: Any = PausedBetween(stage, START + FORCED + 60.0, BACK)
    stage.pauses = pauses

    assert await stage.drained() == "drained, volumes are off"

    [(first, _, _), (last, grace, moment)] = forces(stage)
    assert (first, last, grace) == ("db-0", "web-1", 30)
    assert BACK <= moment <= BACK + 30.0


@pytest.mark.parametrize("decision", ["force VolumesAttached", "force HookWaits"])
async def test_nobody_forces_what_comes_after_the_pods_while_drains_are_paused(decision: str) -> None:
    """TRM-50. The volume is off, and the hook's owner is done, long after the answer."""
    hook = decision == "force HookWaits"
    stage = a_stage(ASKS)
    pauses: Any = PausedBetween(stage, START + 200.0, ENDS)
    stage.pauses = pauses
    if hook:
        stage.write({PRE_TERMINATE: "backup-team"})
        stage.world.at(BACK, lambda: stage.write({PRE_TERMINATE: None}))
    else:
        stage.world.attachments["a"] = attached()
        stage.world.at(BACK, stage.world.attachments.clear)
    stage.world.at(START + 400.0, lambda: stage.write({names.DECISION: decision}))

    await stage.through(lambda: stage.terminate().terminate_instance if hook else stage.detach().await_detached)

    assert stage.world.clock >= BACK
    [said] = [notice.message for notice in stage.world.notices if notice.reason == "DecisionRefused"]
    assert "drains are paused: `dovetail resume drains`" in said


async def test_nobody_forces_a_node_that_a_person_has_deleted_while_drains_are_paused() -> None:
    """TRM-50. Its pods are asked to leave all the same, as their budgets let them."""
    stage = a_stage(ASKS, ends=START + 1800.0)
    a_pdb(stage)
    claim = stage.claim()
    kept = tuple(each for each in claim.conditions if each.type != names.DISRUPTION_REASON)
    stage.world.put(replace(claim, conditions=kept))
    pauses: Any = PausedBetween(stage, START + 200.0, ENDS)
    stage.pauses = pauses
    stage.world.at(START + 400.0, lambda: stage.write({names.DECISION: "force"}))

    assert await stage.drained() == "" and forces(stage) == []

    [said] = [notice.message for notice in stage.world.notices if notice.reason == "DecisionRefused"]
    assert "drains are paused: `dovetail resume drains`" in said


async def test_who_asks_to_wait_is_told_that_a_force_goes_on() -> None:
    """TRM-50. One pod has an hour to end; the other leaves in time for its grace, whatever is said meanwhile."""
    stage = a_stage(forcing(PDB))
    a_pdb(stage)
    stage.world.put(a_web_pod("db-0", grace_seconds=3600))
    stage.pods.answers["uid-db-0"] = "blocked"
    stage.world.at(START + FORCED + 60.0, lambda: stage.write({names.DECISION: "wait 6h"}))

    assert await stage.drained() == "drained, volumes are off" and len(forces(stage)) == 2

    assert "DrainDecided" not in stage.world.said()
    [said] = [notice.message for notice in stage.world.notices if notice.reason == "DecisionRefused"]
    assert "its drain is forced, which is not taken back: all pods will be deleted by" in said


async def test_an_answer_that_comes_before_the_wait_for_a_hook_has_its_clock_is_refused_in_words() -> None:
    """TRM-50. The pods have left since the question, and `dovetail decide` has promised an Event."""
    stage = a_stage(ASKS, ends=START + 900.0)
    stage.write({PRE_TERMINATE: "backup-team", **held(START + 1.0)})
    emptied = is_now(names.DRAINED, changed=START + 400.0)
    others = [each for each in stage.claim().conditions if each.type != names.DRAINED]
    stage.world.put(replace(stage.claim(), conditions=(*others, emptied)))
    stage.world.clock = START + 405.0
    stage.write({names.DECISION: "force HookWaits"})

    assert await stage.through(lambda: stage.terminate().terminate_instance) == ""

    [said] = [notice.message for notice in stage.world.notices if notice.reason == "DecisionRefused"]
    assert "force HookWaits" in said and "decide anew" in said and names.DECISION not in stage.claim().annotations
