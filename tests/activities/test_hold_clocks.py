"""Each kind of blocker has a clock of its own: nobody puts a force off by changing for a moment what holds a drain."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from dovetail.activities.termination import drain_requests
from dovetail.model import names
from dovetail.model.own.drain_rules import Blocker, DrainRules, Escalation, HookRules, Level
from dovetail.model.own.pauses import Activity, Pause
from tests.activities.test_draining import START
from tests.activities.test_holds import (
    ASKED,
    FORCED,
    NEARLY,
    NOTIFIED,
    PRE_DRAIN,
    PRE_TERMINATE,
    Levels,
    Stage,
    a_hook,
    a_pdb,
    new_stage,
)
from tests.lifecycle.objects import a_web_pod
from worlds.holds import held

NOTIFY: Final = Escalation(after=NOTIFIED, do=Level.NOTIFY)
ASK: Final = Escalation(after=ASKED, do=Level.ASK)
FOR_PDBS: Final = Escalation(after=FORCED, do=Level.FORCE, blockers=frozenset({Blocker.PDB_BLOCKS}))


def protected(stage: Stage) -> None:
    stage.world.put(a_web_pod(do_not_disrupt="true"))


def several_pdbs(stage: Stage) -> None:
    stage.pods.answers["uid-web-1"] = "unsupported"


def only_the_pdb(stage: Stage) -> None:
    stage.world.put(a_web_pod())
    stage.pods.answers["uid-web-1"] = "blocked"


def toggled(toggle: Callable[[Stage], None], every: float, lasts: float) -> Stage:
    """A PDB holds the drain of a node, and one of its pods is changed for a while again and again."""
    stage = new_stage(ends=START + 12 * FORCED)
    stage.rules.rules = (DrainRules(escalation=(NOTIFY, ASK, FOR_PDBS)),)
    a_pdb(stage)

    def on() -> None:
        if stage.world.pods:
            toggle(stage)
            stage.world.at(stage.world.clock + lasts, off)

    def off() -> None:
        if stage.world.pods:
            only_the_pdb(stage)
            stage.world.at(stage.world.clock + every - lasts, on)

    stage.world.at(START + every - lasts, on)
    return stage


@pytest.mark.parametrize("kills", [False, True])
@pytest.mark.parametrize("toggle", [protected, several_pdbs])
@pytest.mark.parametrize(("every", "lasts"), [(600.0, 120.0), (1500.0, 1200.0), (100.0, 50.0)])
async def test_what_holds_a_drain_for_a_moment_begins_no_other_clock_anew(
    toggle: Callable[[Stage], None], every: float, lasts: float, kills: bool
) -> None:
    """TRM-48. The force comes once the PDB has held it for long enough in all."""
    stage = toggled(toggle, every, lasts)
    if kills:
        stage.kills = [START + 70.0 + 430.0 * n for n in range(1, 100)]

    assert await stage.drained() == "drained, volumes are off"

    share = (every - lasts) / every if lasts >= 60.0 else 0.9
    [left] = [float(line.split()[3]) for line in stage.world.ledger if line.startswith("force")]
    assert START + FORCED <= left <= START + FORCED / share + every + 600.0
    assert stage.said("DrainForced") == ["Node"] and len(stage.said("DrainAsks")) <= 2  # of the PDB and of the other


async def test_a_blocker_that_comes_before_another_one_takes_no_time_from_it() -> None:
    """TRM-48. Another pod asks for nearly an hour not to be disrupted."""
    stage = new_stage()
    stage.rules.rules = (DrainRules(escalation=(NOTIFY, ASK, FOR_PDBS)),)
    a_pdb(stage)
    other = a_web_pod("job", do_not_disrupt="true")
    stage.world.at(START + 120.0, lambda: stage.world.put(other))
    stage.world.at(START + FORCED - 300.0, lambda: stage.world.kill(other))
    levels = Levels(stage)
    levels.watch()

    assert await stage.drained() == "drained, volumes are off"
    assert START + FORCED <= levels.came["Force"] <= START + FORCED + NEARLY


class PausedAgainAndAgain:
    """A person pauses drains for two minutes every fifteen."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def pause_on(self, pool: str, activity: Activity) -> Pause | None:
        is_on = (self.stage.world.clock - START) % 900.0 >= 780.0
        return Pause(pool="", what=frozenset({Activity.DRAINS})) if is_on else None


@pytest.mark.parametrize("kills", [False, True])
@pytest.mark.parametrize("hold", [a_pdb, a_hook])
async def test_a_pause_stops_the_clocks_for_as_long_as_it_lasts(hold: Callable[[Stage], None], kills: bool) -> None:
    """TRM-49. An hour with four pauses of two minutes is held for 52 minutes."""
    stage = new_stage(ends=START + 3 * FORCED)
    stage.pauses = PausedAgainAndAgain(stage)
    hold(stage)
    if kills:
        stage.kills = [START + 70.0 + 430.0 * n for n in range(1, 100)]
    levels = Levels(stage)
    levels.watch()

    assert await stage.drained() == "drained, volumes are off"

    assert START + FORCED + 480.0 <= levels.came["Force"] <= START + FORCED + 480.0 + 120.0 + 60.0
    assert stage.said("DrainHeld")[0] == "Node" and stage.said("DrainAsks") == ["Node"]


@pytest.mark.parametrize(
    "written",
    [
        '{"v":1,"entries":[{"held":{"clocks":[{"blocker":"PdbBlocks","since":"yesterday"}]}}]}',
        '{"v":1,"entries":[{"held":{"clocks":[{"blocker":"Nothing","since":"2023-11-14T22:13:20Z"}]}}]}',
        held(START - 86_400.0, Blocker.PDB_BLOCKS, *Level)[names.REMEMBERED],
    ],
)
async def test_a_clock_that_cannot_be_read_or_is_of_an_earlier_departure_begins_anew(written: str) -> None:
    """TRM-48."""
    stage = new_stage()
    a_pdb(stage)
    stage.write({names.REMEMBERED: written})
    levels = Levels(stage)
    levels.watch()

    assert await stage.drained() == "drained, volumes are off"
    assert START + NOTIFIED <= levels.came["Notify"] <= START + NOTIFIED + NEARLY
    assert START + FORCED <= levels.came["Force"] <= START + FORCED + NEARLY


async def test_a_hook_that_comes_once_another_one_has_gone_has_its_whole_time() -> None:
    """TRM-47. Somebody was asked about that of the first eviction."""
    stage = new_stage(ends=START + 9000.0)
    stage.rules.rules = (DrainRules(escalation=(NOTIFY, ASK)),)
    a_hook(stage)
    only_the_pdb(stage)
    stage.world.at(START + 1500.0, lambda: stage.write({PRE_DRAIN: None}))
    stage.world.at(START + 2000.0, stage.pods.answers.clear)
    assert await stage.drained() == "drained, volumes are off"
    ends, came = stage.world.clock, list[float]()
    stage.write({PRE_TERMINATE: "backup-team"})
    stage.world.at(ends + ASKED - 10.0, lambda: came.append(len(stage.said("DrainAsks"))))
    stage.world.at(ends + ASKED + 100.0, lambda: stage.write({PRE_TERMINATE: None}))

    assert "is gone" in await stage.through(lambda: stage.terminate().terminate_instance)
    assert came == [1.0] and stage.said("DrainAsks") == ["Node", "Node"]


async def test_a_hook_that_has_been_passed_is_not_waited_for_again_once_something_else_holds_the_drain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TRM-47. The drain comes before the delete, so its time counts from its clock."""
    stage = new_stage()
    stage.rules.rules = (DrainRules(escalation=(NOTIFY,), hooks=HookRules(timeout=900.0, proceeds=True)),)
    stage.world.put(replace(stage.claim(), deleting_since=None, annotations={names.OWNER: "its disruption"}))
    monkeypatch.setattr(drain_requests, "asked_by", lambda owner: owner == "its disruption")
    a_hook(stage)
    only_the_pdb(stage)
    stage.world.at(START + 1200.0, stage.pods.answers.clear)

    assert await stage.drained() == "drained"
    assert START + 1200.0 <= stage.world.clock <= START + 1300.0
