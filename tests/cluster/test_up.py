"""`make up` as a person meets it: the lines that it prints are typed, with its kubeconfig and nothing else."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.plane import TestbedUnavailable, find_binaries
from testbed.plane.processes import identify
from testbed.up import ROOT
from tests.unavailable import no_control_plane

pytestmark = pytest.mark.cluster

SECONDS = 300.0


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    try:
        find_binaries(lambda _line: None)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    yield tmp_path
    up(tmp_path, "stop")


def up(folder: Path, command: str) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "testbed.up", command, "--name", "up"]
    environment = {**os.environ, "DOVETAIL_TESTBED_FOLDER": str(folder)}
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=True)


def types(line: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["/bin/bash", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout


def test_the_lines_of_make_up_bring_a_node_and_show_it_by_the_kubeconfig_alone(folder: Path) -> None:
    done = up(folder, "start")

    report = json.loads(done.stdout)
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip() and line.startswith("    ")][1:]
    assert lines[0] == "source .venv/bin/activate" and lines[-1] == "dovetail top --web"
    name, _, kubeconfig = lines[1].removeprefix("export ").partition("=")
    assert (name, kubeconfig) == ("KUBECONFIG", report["kubeconfig"]), "nothing else is exported"
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    person = {"PATH": programs, "HOME": str(folder), "LOGNAME": "alice", "KUBECONFIG": kubeconfig}
    for line in lines[2:-2]:
        types(line, person)

    deadline = time.monotonic() + SECONDS
    while '"ready"' not in types("dovetail nodes -o json", person):
        assert time.monotonic() < deadline, types("dovetail status", person)
        time.sleep(1)
    assert "2 nodes (1 not ours)" in types("dovetail top --once", person)

    assert up(folder, "stop").stdout.strip() == "stopped"
    assert [name for name, pid in report["pids"].items() if identify(pid)] == [], "the Service's network too"
