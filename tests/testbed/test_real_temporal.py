"""`make temporal` and `make down`: what is started answers to whoever has a certificate, and nothing stays behind."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.temporal.programs import SERVER
from testbed.temporal.services import SERVICES

pytestmark = pytest.mark.soak


def run(folder: Path, *command: str, **more: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
    environment |= {"DOVETAIL_TESTBED_FOLDER": str(folder), **more}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)


def test_it_answers_to_who_has_a_certificate_and_leaves_nothing_behind(tmp_path: Path) -> None:
    python = (sys.executable, "-m")
    started = run(tmp_path, *python, "testbed.temporal", "start", "--name", "t")
    assert started.returncode == 0, started.stderr
    report: dict[str, Any] = json.loads(started.stdout)
    health = (report["temporal_binary"], "operator", "cluster", "health")

    known = run(tmp_path, *health, **report["environment"])
    authority = "TEMPORAL_TLS_SERVER_CA_CERT_PATH"
    where = {name: report["environment"][name] for name in ("TEMPORAL_ADDRESS", authority)}
    stranger = run(tmp_path, *health, **where)
    namespaces = run(tmp_path, report["temporal_binary"], "operator", "namespace", "list", **report["environment"])
    stopped = run(tmp_path, *python, "testbed.up", "stop", "--name", "t")

    assert known.stdout.strip() == "SERVING", known.stderr
    assert stranger.returncode != 0 and "client certificate" in stranger.stderr
    assert "default" in namespaces.stdout.split()
    assert stopped.stdout.strip() == "stopped"
    assert set(report["pids"]) == set(SERVICES)
    assert not [pid for pid in report["pids"].values() if SERVER in program_of(pid)]
    assert not (tmp_path / "t" / "temporal.json").exists()


def program_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except FileNotFoundError:
        return ""
