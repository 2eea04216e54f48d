"""Finds what a real node consists of: programs that are built once and cached, and those that Debian has."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from testbed.plane.binaries import Say, TestbedUnavailable, built_once, cache_folder, key_of
from testbed.plane.building import NODE, SOURCES, build_targets
from testbed.plane.toolchain import modules_folder

# By the package of Debian that brings them.
DEBIANS: Final = {
    "runc": ("runc",),
    "iptables": ("iptables", "iptables-save"),
    "iproute2": ("ip",),
    "util-linux": ("nsenter", "unshare"),
    "procps": ("sysctl",),
}
NAMES: Final = (*(name for target in NODE for name in (target.output, *target.also)),)
KWOK: Final = "kwok-manifests"  # what upstream releases of kwok are made of
VARIABLE: Final = "DOVETAIL_NODE_BINARIES"
_TRY: Final = (
    "unshare",
    "--mount",
    "--propagation=private",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "--net",
)


def cannot_run(folder: Path) -> str:
    """Empty, or in a line why no real node can run here with its files in that folder."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "real nodes need root on Linux"
    lacking = [package for package, names in DEBIANS.items() if not all(map(shutil.which, names))]
    if lacking:
        return f"real nodes need what these packages bring: {', '.join(lacking)}"
    folder.mkdir(parents=True, exist_ok=True)
    tried = folder / "tried"
    parts = [tried / name for name in ("lower", "upper", "work", "all")]
    for part in parts:
        part.mkdir(parents=True, exist_ok=True)
    layers = f"lowerdir={parts[0]},upperdir={parts[1]},workdir={parts[2]}"
    try:
        done = subprocess.run(
            [*_TRY, "mount", "-t", "overlay", "overlay", "-o", layers, str(parts[3])],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(tried, ignore_errors=True)
    return f"no namespaces or no overlays for a real node: {done.stderr.strip()}" if done.returncode else ""


def find_programs(say: Say) -> Path:
    """The folder that has them, built if need be; TestbedUnavailable where that cannot be."""
    if named := os.environ.get(VARIABLE):
        folder = Path(named).resolve()
        if lacking := _lacking(folder):
            raise TestbedUnavailable(f"{VARIABLE} names {folder}, which lacks {', '.join(lacking)}")
        return folder
    folder = cache_folder() / f"node-{key_of(NODE)}"
    built_once(folder, lambda: not _lacking(folder), lambda unfinished: _build(unfinished, say))
    return folder


def _lacking(folder: Path) -> list[str]:
    return [name for name in (*NAMES, KWOK) if not (folder / name).exists()]


def _build(folder: Path, say: Say) -> None:
    build_targets(NODE, folder, say)
    shutil.copytree(
        modules_folder(SOURCES / "kwok", "sigs.k8s.io/kwok", folder.parent, say) / "kustomize", folder / KWOK
    )
