"""Finds helm, which renders the charts in the tests, and actionlint, which reads the workflows: named by the
environment, in the cache, or built now.

Beside the control plane's programs and not among them, because neither needs the other: a change of helm's pin must
not cost the seven minutes of the control plane.
"""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path
from typing import Final

from testbed.plane.binaries import Say, TestbedUnavailable, built_once, cache_folder
from testbed.plane.building import ACTIONLINT, HELM, SOURCES, Target, build_targets

ENVIRONMENT_VARIABLE: Final = "DOVETAIL_HELM"
ACTIONLINT_VARIABLE: Final = "DOVETAIL_ACTIONLINT"


def find_helm(say: Say) -> Path:
    """The program, built if need be; TestbedUnavailable where that cannot be."""
    return _find(HELM, ENVIRONMENT_VARIABLE, say)


def find_actionlint(say: Say) -> Path:
    """The same of actionlint."""
    return _find(ACTIONLINT, ACTIONLINT_VARIABLE, say)


def _find(target: Target, variable: str, say: Say) -> Path:
    if named := os.environ.get(variable):
        if not os.access(named, os.X_OK):
            raise TestbedUnavailable(f"{variable} names {named}, which cannot be run")
        return Path(named)
    folder = cache_folder() / f"{target.output}-{_key(target)}"
    program = folder / target.output
    built_once(folder, program.exists, lambda unfinished: build_targets((target,), unfinished, say))
    return program


def _key(target: Target) -> str:
    """Changes with the program's pins and sums, the build's flags and the machine's kind."""
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()} {target!r}".encode())
    for name in ("go.mod", "go.sum"):
        digest.update((SOURCES / target.module / name).read_bytes())
    return digest.hexdigest()[:16]
