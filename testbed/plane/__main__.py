"""`python -m testbed.plane start|stop|status|build --name NAME`: a control plane from the command line.

Each plane has a folder of its own, `.dovetail/NAME/plane`, so several run side by side; DOVETAIL_TESTBED_FOLDER puts
them elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from testbed.plane import (
    ControlPlane,
    PlaneError,
    PlaneState,
    TestbedUnavailable,
    find_binaries,
    read_state,
    stop_plane,
)
from testbed.plane.helm import find_actionlint, find_helm

FOLDER_VARIABLE = "DOVETAIL_TESTBED_FOLDER"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed.plane", description="A real control plane on loopback.")
    commands: dict[str, Callable[[Path], int]] = {"start": start, "stop": stop, "status": status, "build": build}
    parser.add_argument("command", choices=commands)
    parser.add_argument("--name", default="default", help="planes of different names run side by side")
    asked = parser.parse_args()
    try:
        return commands[asked.command](plane_folder(asked.name))
    except (PlaneError, TestbedUnavailable) as error:
        print(f"control plane: {error}", file=sys.stderr)
        return 1


def plane_folder(name: str) -> Path:
    return Path(os.environ.get(FOLDER_VARIABLE, ".dovetail")).resolve() / name / "plane"


def start(folder: Path) -> int:
    found = read_state(folder)
    if found is not None and found.is_running():
        print(f"control plane: already running in {folder}")
        _print_how_to_use(found)
        return 0
    binaries = find_binaries(_say)
    begun = time.monotonic()
    state = asyncio.run(ControlPlane(folder, binaries).start())
    print(f"control plane: ready after {time.monotonic() - begun:.1f} s at {state.server}")
    _print_how_to_use(state)
    return 0


def stop(folder: Path) -> int:
    stopped = asyncio.run(stop_plane(folder))
    print("control plane: stopped" if stopped else f"control plane: none was running in {folder}")
    return 0


def status(folder: Path) -> int:
    state = read_state(folder)
    if state is None:
        print(f"control plane: none in {folder}")
        return 1
    print(state.as_json())
    if missing := state.missing_parts():
        print(f"control plane: ended: {', '.join(missing)}", file=sys.stderr)
    return 0 if state.is_running() else 1


def build(folder: Path) -> int:
    print(f"control plane: binaries in {find_binaries(_say).folder}")
    print(f"helm: {find_helm(_say)}")
    print(f"actionlint: {find_actionlint(_say)}")
    return 0


def _print_how_to_use(state: PlaneState) -> None:
    print(f"kubeconfig: {state.kubeconfig}")
    print(f"try: {state.kubectl} get nodes    (or: export KUBECONFIG={state.kubeconfig})")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
