"""`dovetail decide`: what is written where, and what is refused because nobody would answer it."""

from pathlib import Path

import pytest

from dovetail.cli.main import main
from dovetail.model import names
from dovetail.model.own.drain_rules import Blocker, Level
from testbed.simulated_world import SimulatedWorld
from tests.cli.test_explain_node import a_managed_node
from tests.cli.test_pauses import target
from tests.cli.worlds import CLUSTER, a_ready_pool, a_world
from worlds.holds import held

LONG_AGO = "2020-01-01T00:00:00Z"
IN_2030 = 1_893_456_000.0
HELD = held(IN_2030)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedWorld:
    """Two nodes: one that a disruption has marked and whose drain is held, and one that stays."""
    monkeypatch.setenv("LOGNAME", "alice")
    leaving, staying = a_managed_node("n1"), a_managed_node("n2")
    claim = next(each for each in leaving if each["kind"] == "NodeClaim")
    claim["metadata"]["annotations"] = {**claim["metadata"].get("annotations", {}), **HELD}
    condition = {"type": names.DISRUPTION_REASON, "status": "True", "reason": "Drifted", "lastTransitionTime": LONG_AGO}
    claim["status"]["conditions"] = [*claim["status"].get("conditions", []), condition]
    return a_world(tmp_path, a_ready_pool(), *leaving, *staying)


def typed(world: SimulatedWorld, *words: str) -> int:
    return main(["decide", *words, "--cluster", CLUSTER, "--world", str(world.file)])


def decided(world: SimulatedWorld) -> dict[str, tuple[str, str]]:
    """What is written, and by whom."""
    found = {c["metadata"]["name"]: c["metadata"].get("annotations") or {} for c in world.objects("NodeClaim")}
    return {n: (a[names.DECISION], a[names.DECISION_BY]) for n, a in found.items() if names.DECISION in a}


@pytest.mark.parametrize("words", [("force",), ("wait", "6h"), ("cancel",)])
def test_a_decision_is_recorded_with_its_author(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert typed(world, "claim-n1", *words) == 0

    assert decided(world) == {"claim-n1": (" ".join(words), "alice")}
    [line, *reach, which] = capsys.readouterr().out.splitlines()
    assert line.startswith(f"claim-n1: {' '.join(words)}: recorded on NodeClaim claim-n1") and which == target(world)
    assert bool(reach) == ("force" in words)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ([], "hooks and attached volumes are waited for"),
        (["HookWaits"], "attached volumes are waited for; hooks are not waited for any longer"),
        (["HookWaits", "VolumesAttached"], "hooks and attached volumes are not waited for any longer"),
    ],
)
def test_a_force_says_what_it_is_meant_for(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str], more: list[str], says: str
) -> None:
    """TRM-50."""
    assert typed(world, "claim-n1", "force", *more) == 0

    assert decided(world)["claim-n1"][0] == " ".join(["force", *more])
    words = "It is meant for a PDB, which holds the drain: its pods leave, each with its own grace period; "
    assert words + says in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("claim-n2", "force"), "there is nothing to decide"),
        (("claim-n1", "wait"), "wait and for how long"),
        (("claim-n1", "wait", "1y"), "wait and for how long"),
        (("claim-n1", "force", "6h"), "wait and for how long"),
        (("claim-n1", "force", "DoNotDisrupt"), "wait and for how long"),
        (("n9", "force"), "there is no such Node or NodeClaim"),
    ],
)
def test_what_nobody_would_answer_is_not_written(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    assert typed(world, *words) != 0

    assert says in capsys.readouterr().err
    assert decided(world) == {}


@pytest.mark.parametrize(
    ("levels", "more", "says"),
    [
        ((), [], "about which nobody was asked yet: `force HookWaits` is meant for that"),
        ((Level.ASK,), [], "hooks of the instance's end and attached volumes are waited for"),
        ((), ["HookWaits"], "attached volumes are waited for; hooks are not waited for any longer"),
    ],
)
def test_a_force_of_a_hook_says_which_hooks_it_is_meant_for(
    world: SimulatedWorld,
    capsys: pytest.CaptureFixture[str],
    levels: tuple[Level, ...],
    more: list[str],
    says: str,
) -> None:
    """TRM-50. Before anybody was asked about it, an answer is about something else."""
    world.patch("NodeClaim", "claim-n1", {"metadata": {"annotations": held(IN_2030, Blocker.HOOK_WAITS, *levels)}})

    code = typed(world, "claim-n1", "force", *more)

    told = capsys.readouterr()
    assert says in told.out + told.err
    assert bool(decided(world)) is (code == 0) is (bool(levels) or bool(more))
