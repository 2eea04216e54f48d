"""`make node` as a person meets it, and what it leaves on the machine: nothing."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.node.nodes import tag_of
from testbed.node.programs import cannot_run, find_programs
from testbed.plane import TestbedUnavailable, find_binaries
from testbed.plane.processes import identify
from testbed.up import ROOT
from tests.unavailable import no_control_plane, no_nodes

SECONDS = 300.0


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    if why := cannot_run(tmp_path):
        no_nodes(why)
    try:
        find_binaries(lambda _line: None)
        find_programs(lambda _line: None)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    yield tmp_path
    _module(tmp_path, "testbed.up", "stop")


def _module(folder: Path, module: str, command: str, *more: str) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", module, command, "--name", "real", *more]
    environment = {**os.environ, "DOVETAIL_TESTBED_FOLDER": str(folder)}
    return subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def _typed(line: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["/bin/bash", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout


def _said(*words: str) -> list[str]:
    return sorted(subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines())


def traces(folder: Path) -> dict[str, list[str]]:
    """What of the set can be seen on the machine, by where one looks, and what it could have changed there."""
    tag = tag_of(folder / "real")
    groups = Path("/sys/fs/cgroup").glob(f"**/dovetail-{tag}")
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
    commands = Path("/proc").glob("[0-9]*/cmdline")
    return {
        "namespaces": [each.name for each in Path("/run/netns").glob(f"dovetail-{tag}-*")],
        "groups": [str(group) for group in groups],
        "mounts": mounts,
        "processes": [str(each) for each in commands if str(folder) in _command(each)],
        "links": [line.split(":")[1] for line in _said("ip", "-o", "link")],
        "rules": [line for line in _said("iptables-save") if line.startswith("-A KUBE-")],
        "folders": [name for name in ("/var/lib/kubelet", "/etc/cni", "/run/containerd") if Path(name).exists()],
        "settings": [Path("/proc/sys", name).read_text() for name in ("vm/overcommit_memory", "kernel/panic")],
    }


def _command(file: Path) -> str:
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.cluster
def test_make_node_runs_a_container_behind_a_service_and_make_down_leaves_nothing(folder: Path) -> None:
    before = traces(folder)

    done = _module(folder, "testbed.node", "start")

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    lines = [line.strip() for line in done.stderr.splitlines() if line.startswith("    ") and line.strip()][1:]
    assert lines[0] == "source .venv/bin/activate" and lines[-1] == "dovetail top"
    assert f"KUBECONFIG={report['kubeconfig']}" in lines[1]
    person = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": report["kubeconfig"]}
    kubectl = report["kubectl"]
    _typed(f"{kubectl} create deployment web --image=web:1 --replicas=2", person)
    _typed(f"{kubectl} expose deployment web --port=80 --target-port=8080", person)
    _typed(f"{kubectl} rollout status deployment web --timeout=120s", person)
    assert "ready" in _typed(f"{kubectl} logs deployment/web", person)
    inside = "/api/v1/namespaces/default/services/web:80/proxy/"
    deadline = time.monotonic() + SECONDS
    answered: set[str] = set()
    while len(answered) < 2:
        answered.add(_typed(f"{kubectl} get --raw {inside}", person).strip())
        assert time.monotonic() < deadline, answered
    pods = json.loads(_typed(f"{kubectl} get pods -o json", person))["items"]
    assert answered == {pod["metadata"]["name"] for pod in pods}, "each of the containers, through the API server"
    assert {pod["spec"]["nodeName"] for pod in pods} == set(report["nodes"]) == {"node-1"}
    assert traces(folder)["namespaces"] and traces(folder)["groups"], "else what follows would see nothing"

    assert _module(folder, "testbed.up", "stop").stdout.strip() == "stopped"
    assert [name for name, pid in report["pids"].items() if identify(pid)] == []
    assert traces(folder) == before


def test_elsewhere_it_is_one_line_that_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cannot_run(tmp_path) == "real nodes need root on Linux"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cannot_run(tmp_path) == "real nodes need root on Linux"


def test_a_machine_without_runc_is_told_which_packages_bring_what_is_lacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cannot_run(tmp_path) == (
        "real nodes need what these packages bring: runc, iptables, iproute2, util-linux, procps"
    )
