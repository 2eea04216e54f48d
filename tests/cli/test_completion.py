"""Completion reads the very parser that reads the line; names come from workers."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dovetail.cli.commands.version import VERSION
from dovetail.cli.completion.commands import SCRIPTS
from dovetail.cli.completion.words import completions, names_of_workers
from dovetail.cli.main import parser
from dovetail.cli.remote import workers
from dovetail.cli.remote.workers import Where

ROOT = Path(__file__).parents[2]
KNOWN = {
    "nodes": ("ip-1", "ip-2"),
    "claims": ("web-1",),
    "pools": ("default", "gpu"),
    "pods": ("ml/train-1",),
    "decisions": ("2026-05-28_disruption",),
}


def completed(*words: str) -> list[str]:
    def names(where: Where, kind: str) -> tuple[str, ...]:
        return KNOWN[kind]

    return [line.partition("\t")[0] for line in completions(parser(), words, names)]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("sta",), ["status"]),
        (("explain", ""), ["node", "pod"]),
        (("explain", "node", "ip"), ["ip-1", "ip-2"]),
        (("explain", "pod", ""), ["ml/train-1"]),
        (("cancel", ""), ["ip-1", "ip-2", "web-1"]),
        (("cancel", "ip-1", "--rea"), ["--reason"]),
        (("history", "web"), ["web-1"]),
        (("pause", "--pool", "g"), ["gpu"]),
        (("pause", "dis"), ["disruption"]),
        (("status", "-o", "wi"), ["wide"]),
        (("nodes", "--pool", ""), ["default", "gpu"]),
        (("nodes", "--sort", "p"), ["price", "pods", "pool"]),
        (("top", "--sort", "p"), ["price", "pods", "pool"]),
        (("nodes", "x", ""), []),
        (("replace", "ip-1", "ip"), ["ip-1", "ip-2"]),
        (("replay", ""), ["2026-05-28_disruption"]),
        (("log", "--pod", ""), ["ml/train-1"]),
        (("status", "-n", ""), ["dovetail", "kube-system"]),
        (("nodes", "-l", "po"), ["pool="]),
        (("plan", "-f", ""), []),
    ],
)
def test_what_may_stand_next(words: tuple[str, ...], wanted: list[str]) -> None:
    assert completed(*words) == wanted


def test_contexts_are_completed_from_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("contexts: [{name: blue}, {name: green}]")

    assert completed("status", "--kubeconfig", str(tmp_path / "config"), "--context", "") == ["blue", "green"]
    assert completed("status", "--kubeconfig", str(tmp_path / "none"), "--context", "") == []


def test_each_shell_asks_the_program_and_bash_takes_its_script() -> None:
    assert all("dovetail __complete" in script for script in SCRIPTS.values())
    assert subprocess.run(["bash", "-n"], input=SCRIPTS["bash"], text=True, check=False).returncode == 0


def test_shells_offer_files_where_the_program_knows_no_word() -> None:
    typed = SCRIPTS["bash"] + "complete -p dovetail"
    printed = subprocess.run(["bash"], input=typed, text=True, capture_output=True, check=True).stdout
    assert "-o default" in printed and "-F _dovetail" in printed
    assert "_files" in SCRIPTS["zsh"] and "__fish_complete_path" in SCRIPTS["fish"]


def test_decisions_are_named_by_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Known:
        def __init__(self, *_: object) -> None: ...

        def document(self, path: str) -> dict[str, object]:
            asked.append(path)
            return {"flights": [{"id": "one"}, {"id": "two"}]}

        def close(self) -> None: ...

    monkeypatch.setattr(workers, "Workers", Known)
    assert names_of_workers(Where(), "decisions") == ("one", "two")
    assert asked == ["replay"]


def test_the_version_is_the_packages() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """`dovetail … | head`: no traceback, and the exit code of a program that SIGPIPE has ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dovetail.cli.main", "completion", "bash"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 141
