"""The groups of processes by which a node's containers are limited and counted, below one of the set's own.

Both layouts of Linux: a tree for each controller (v1), or one for all (v2).
"""

import contextlib
from pathlib import Path
from typing import Final

_MOUNTED: Final = Path("/sys/fs/cgroup")


def group_of(tag: str, name: str = "") -> str:
    """A node's, as the kubelet calls it; without a name that of the whole set."""
    return f"/dovetail-{tag}/{name}".rstrip("/")


def enter(tag: str, name: str) -> None:
    """Make a node's groups, in every tree; this process and what it starts are in one of them."""
    for tree in _trees():
        place = tree
        for part in (*group_of(tag, name).strip("/").split("/"), "system"):
            place = place / part
            place.mkdir(exist_ok=True)
            if tree != _MOUNTED and (place / "cpuset.cpus").exists():  # v1 starts a group with no processor at all
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (place / file).write_text((tree / file).read_text())
        (place / "cgroup.procs").write_text("0")


def remove(tag: str, name: str = "") -> None:
    """All groups below it, the innermost first. Those with processes are not taken away: that is an error."""
    for tree in _trees():
        top = tree / group_of(tag, name).lstrip("/")
        if top.exists():
            for place in sorted((each for each in top.rglob("*") if each.is_dir()), reverse=True):
                place.rmdir()
            top.rmdir()


def processes(tag: str, name: str = "") -> list[int]:
    """All of that node's, or of the set's."""
    found: set[int] = set()
    for tree in _trees():
        for file in (tree / group_of(tag, name).lstrip("/")).rglob("cgroup.procs"):
            with contextlib.suppress(OSError):  # a group that has just been taken away
                found.update(int(line) for line in file.read_text().split())
    return sorted(found)


def _trees() -> list[Path]:
    if (_MOUNTED / "cgroup.controllers").exists():
        return [_MOUNTED]
    return [each for each in sorted(_MOUNTED.iterdir()) if not each.is_symlink() and (each / "cgroup.procs").exists()]
