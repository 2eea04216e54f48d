"""Finds helm, which renders the charts in the tests: named by the environment, in the cache, or built now.

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
from testbed.plane.building import HELM, SOURCES, build_targets

ENVIRONMENT_VARIABLE: Final = "DOVETAIL_HELM"


def find_helm(say: Say) -> Path:
    """The program, built if need be; TestbedUnavailable where that cannot be."""
    if named := os.environ.get(ENVIRONMENT_VARIABLE):
        if not os.access(named, os.X_OK):
            raise TestbedUnavailable(f"{ENVIRONMENT_VARIABLE} names {named}, which cannot be run")
        return Path(named)
    folder = cache_folder() / f"helm-{_key()}"
    built_once(folder, lambda: (folder / "helm").exists(), lambda unfinished: build_targets((HELM,), unfinished, say))
    return folder / "helm"


def _key() -> str:
    """Changes with helm's pins and sums, the build's flags and the machine's kind."""
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()} {HELM!r}".encode())
    for name in ("go.mod", "go.sum"):
        digest.update((SOURCES / HELM.module / name).read_bytes())
    return digest.hexdigest()[:16]
