"""A backup of etcd, and an API server restored from it: everything written since is forgotten.

The copy is made while etcd is stopped, so it is complete; the API server refuses for that second. Restoring follows the
guide of Kubernetes: the API server and its controllers stop, etcd starts from the older data, all start again. Versions
then continue from the older number, and clients that knew later ones meet objects and versions that look old to them.
"""

import asyncio
import shutil
from pathlib import Path

from testbed.plane.binaries import Binaries
from testbed.plane.plane import ControlPlane

READERS = (
    "kwok",
    "kube-scheduler",
    "kube-controller-manager",
    "kube-apiserver",
)  # outermost first


async def back_up(folder: Path, binaries: Binaries) -> None:
    """Keep what etcd of that plane holds now; an earlier backup is replaced."""
    plane = ControlPlane(folder, binaries)
    await plane.stop_part("etcd")
    try:
        await asyncio.to_thread(_copy, folder / "etcd", _backup(folder))
    finally:
        await plane.start_part("etcd")


async def restore(folder: Path, binaries: Binaries) -> None:
    """Restore the plane as it was at the backup."""
    if not _backup(folder).exists():
        raise FileNotFoundError(f"{folder} has no backup of etcd")
    plane = ControlPlane(folder, binaries)
    for part in (*READERS, "etcd"):
        await plane.stop_part(part)
    await asyncio.to_thread(_copy, _backup(folder), folder / "etcd")
    await plane.start_part("etcd", *reversed(READERS))


def _backup(folder: Path) -> Path:
    return folder / "etcd-backup"


def _copy(origin: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(origin, target)
