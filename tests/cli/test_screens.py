"""Every command as it is typed, and what it prints at 80, 120 and 200 columns, held line by line.

The captures stand in tests/cli/golden and on docs/reference/screens.md; `DOVETAIL_GOLDEN=write` writes them anew, to be
looked at before they are committed.
"""

import argparse
import os
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from docs.tools.reference.screens import CAPTURES, FLEETS, NODE, TYPED, WIDTHS
from dovetail.cli.main import main, parser
from dovetail.model import names
from tests.cli.captured import CLUSTER, HELD, Stage, staged
from tests.cli.test_status_text import NOW
from worlds.holds import held

WRITES = {
    "cancel",
    "decide",
    "replace",
    "rollout",
    "pause",
    "resume",
}  # with a kubeconfig alone; here in a world that is a file
FROM_HERE = {"snapshot", "take-over", "doctor-preflight", "doctor-away"}
LEAVES_BEHIND = 4
CODES = {"plan-file": LEAVES_BEHIND, "plan-diff": LEAVES_BEHIND, "plan-markdown": LEAVES_BEHIND, "doctor-away": 1}
COMPLAINTS = {"doctor-away": "dovetail: doctor: 2 checks of 7 failed\n"}
# Not wrapped: for a shell, for a file, one line for scripts and logs.
AS_IT_IS = {*WRITES, "replace-now", "snapshot", "take-over", "completion", "plan-markdown", "plan-diff"}
# Without a screen of one cluster: they serve, prepare or play until they are stopped (docs/pictures has the demo's), or
# show all clusters (tests/cli/test_fleet.py).
NOT_SHOWN = {"worker", "set-up-temporal", "demo", "fleet"}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "alice")
    for name in ("CLUSTER_NAME", "KUBECONFIG", "DOVETAIL_WORLD", "DOVETAIL_CONTEXT", "DOVETAIL_SERVICE"):
        monkeypatch.delenv(name, raising=False)
    with staged(tmp_path, monkeypatch) as found:
        yield found


@pytest.mark.parametrize(
    "width", [pytest.param(each, marks=[] if each == 120 else pytest.mark.slow) for each in WIDTHS]
)
@pytest.mark.parametrize("name", [name for name in TYPED if name not in FLEETS])
def test_what_is_typed_prints_what_was_looked_at(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    first = name.partition("-")[0]
    if first in WRITES or name in FROM_HERE:
        monkeypatch.setenv("DOVETAIL_WORLD", str(stage.world.file))
    else:
        monkeypatch.setenv("KUBECONFIG", str(stage.served.kubeconfig))
    if name in FROM_HERE:
        monkeypatch.setenv("CLUSTER_NAME", CLUSTER)
    if name == "resume":
        paused = {names.PAUSED: "disruption,expiry", names.PAUSED_BY: "alice", names.PAUSED_REASON: "a release"}
        stage.world.patch("NodePool", "default", {"metadata": {"annotations": paused}})

    if name == "decide":
        hold_the_drain(stage)

    with answered(stage) if name == "cancel" else nobody():
        code = main(shlex.split(TYPED[name]))

    told = capsys.readouterr()
    assert (code, told.err) == (CODES.get(name, 0), COMPLAINTS.get(name, ""))
    file = CAPTURES / f"{name}-{width}.txt"
    if os.environ.get("DOVETAIL_GOLDEN") == "write":
        file.write_text(told.out)
    assert told.out == file.read_text()
    if name not in AS_IT_IS:
        assert [line for line in told.out.splitlines() if len(line) > width] == []


def test_every_command_has_its_captures_at_every_width() -> None:
    [commands] = [each for each in parser()._actions if isinstance(each, argparse._SubParsersAction)]
    shown = {typed.split()[0] for typed in TYPED.values()}
    assert shown == set(commands.choices) - NOT_SHOWN
    wanted = {f"{name}-{width}.txt" for name in TYPED for width in WIDTHS}
    assert {file.name for file in CAPTURES.iterdir()} == wanted


def test_the_node_that_is_asked_about_is_one_of_the_cluster() -> None:
    assert NODE == HELD


def hold_the_drain(stage: Stage) -> None:
    """The node is leaving, and something has held it for an hour."""
    [claim] = [each for each in stage.world.objects("NodeClaim") if each["status"]["nodeName"] == NODE]
    name, conditions = claim["metadata"]["name"], claim["status"]["conditions"]
    mark = {"type": names.DISRUPTION_REASON, "status": "True", "reason": "Drifted"}
    conditions = [*conditions, {**mark, "message": "", "lastTransitionTime": "2026-05-28T16:00:00Z"}]
    stage.world.patch("NodeClaim", name, {"status": {"conditions": conditions}}, "status")
    half_past_four = 1_779_985_800.0
    stage.world.patch("NodeClaim", name, {"metadata": {"annotations": held(half_past_four)}})


@contextmanager
def nobody() -> Iterator[None]:
    """Nothing is waited for."""
    yield


@contextmanager
def answered(stage: Stage) -> Iterator[None]:
    """A worker's Caretaker takes the request off and lets the node rest."""
    over = threading.Event()

    def answer() -> None:
        rest = {names.CANCEL: None, names.REST: f"{NOW + 300:.0f}/1/Drifted"}
        while not over.wait(0.02):
            for claim in stage.world.objects("NodeClaim"):
                if names.CANCEL in (claim["metadata"].get("annotations") or {}):
                    stage.world.patch("NodeClaim", claim["metadata"]["name"], {"metadata": {"annotations": rest}})

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
