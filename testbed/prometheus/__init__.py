"""Prometheus and promtool, built once from their Go module, for the tests of metrics, alerts and dashboards.

`DOVETAIL_PROMETHEUS_BINARIES` names a folder that has them. Else they are built into the cache, with the toolchain of
the control plane and without the means to discover targets, which no test needs: 10 minutes on two cores.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from testbed.plane.binaries import cache_folder
from testbed.plane.toolchain import find_toolchain
from testbed.plane.unavailable import TestbedUnavailable

ENVIRONMENT_VARIABLE = "DOVETAIL_PROMETHEUS_BINARIES"
MODULE = Path(__file__).parent
NEEDED_GO = (1, 26, 7)


def find_program(name: str, say: Callable[[str], None]) -> Path:
    """promtool or prometheus; TestbedUnavailable with the reason where it cannot be built."""
    if named := os.environ.get(ENVIRONMENT_VARIABLE):
        return _usable(Path(named) / name)
    pins = b"".join((MODULE / file).read_bytes() for file in ("go.mod", "go.sum"))
    folder = cache_folder() / f"prometheus-{hashlib.sha256(pins).hexdigest()[:16]}"
    program = folder / name
    if not program.exists():
        _build(name, program, say)
    return _usable(program)


def _usable(program: Path) -> Path:
    if not os.access(program, os.X_OK):
        raise TestbedUnavailable(f"{program} is not there or cannot be run")
    return program


def _build(name: str, program: Path, say: Callable[[str], None]) -> None:
    toolchain = find_toolchain(NEEDED_GO, cache_folder() / "go-wheel", say)
    say(f"{name} is built from its Go module; this takes some minutes, once")
    program.parent.mkdir(parents=True, exist_ok=True)
    unfinished = program.with_suffix(f".{os.getpid()}")
    command = [str(toolchain.command), "build", "-mod=mod", "-trimpath", "-tags", "remove_all_sd", "-ldflags", "-s -w"]
    command += ["-o", str(unfinished), f"github.com/prometheus/prometheus/cmd/{name}"]
    built = subprocess.run(
        command, cwd=MODULE, env=toolchain.environment(), capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        raise TestbedUnavailable(f"{name} cannot be built here: {built.stderr.strip().splitlines()[-1:]}")
    unfinished.rename(program)
