"""Finds the programs of the control plane: named by the environment, in the cache, or built now.

One printed line says where they were found. The cache lies outside the repository and is keyed by what goes into the
build, so a second run costs nothing and a changed pin never meets an old binary. Two runs that find the cache empty at
once wait for one build (a lock file), and a build that dies half-way leaves no folder that looks complete: it is
renamed into place at the end.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.plane.building import SOURCES, TARGETS, Target, build_targets
from testbed.plane.unavailable import TestbedUnavailable

ENVIRONMENT_VARIABLE = "DOVETAIL_TESTBED_BINARIES"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl")
Say = Callable[[str], None]

__all__ = ["ENVIRONMENT_VARIABLE", "PROGRAMS", "Binaries", "Say", "TestbedUnavailable", "cache_folder", "find_binaries"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """A folder that holds all six programs."""

    folder: Path

    def path(self, program: str) -> Path:
        return self.folder / program


def find_binaries(say: Say) -> Binaries:
    """The programs, built if need be; TestbedUnavailable where that cannot be."""
    if named := os.environ.get(ENVIRONMENT_VARIABLE):
        return _named_by_environment(Path(named), say)
    cached = cache_folder() / key_of(TARGETS)
    if not _missing(cached):
        say(f"control plane: binaries from the cache ({cached})")
        return Binaries(folder=cached)

    def build(unfinished: Path) -> None:
        say(f"control plane: no {ENVIRONMENT_VARIABLE}, nothing in the cache, so the binaries are built now")
        build_targets(TARGETS, unfinished, say)

    built_once(cached, lambda: not _missing(cached), build)
    return Binaries(folder=cached)


def built_once(folder: Path, is_there: Callable[[], bool], build: Callable[[Path], None]) -> None:
    """Build this folder of the cache unless it is there; another run may have done so while this one waited."""
    if is_there():
        return
    with _one_builder(cache_folder()):
        if not is_there():
            _build_into(folder, build)


def built_alone(target: Target, say: Say) -> Path:
    """A program outside the control plane, in its own folder: a changed pin rebuilds only one of the two."""
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()} {target!r}".encode())
    sources = SOURCES / target.module
    for file in (sources / "go.mod", sources / "go.sum", *sorted(sources.glob("*.go"))):
        digest.update(file.read_bytes())
    folder = cache_folder() / f"{target.output}-{digest.hexdigest()[:16]}"
    built_once(
        folder, lambda: (folder / target.output).exists(), lambda unfinished: build_targets((target,), unfinished, say)
    )
    return folder / target.output


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dovetail" / "testbed"


def _named_by_environment(folder: Path, say: Say) -> Binaries:
    if missing := _missing(folder):
        raise TestbedUnavailable(f"{ENVIRONMENT_VARIABLE} names {folder}, which lacks {', '.join(missing)}")
    say(f"control plane: binaries from {ENVIRONMENT_VARIABLE} ({folder})")
    return Binaries(folder=folder.resolve())


def _missing(folder: Path) -> list[str]:
    return [program for program in PROGRAMS if not os.access(folder / program, os.X_OK)]


def key_of(targets: tuple[Target, ...]) -> str:
    """Changes with everything that changes the result: pins, sums, our mains, the build's flags, the machine's kind."""
    tags = "".join(target.tags for target in targets)
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()} {targets!r}{tags}".encode())
    modules = {target.module for target in targets}
    for source in sorted(file for module in modules for file in (SOURCES / module).rglob("*")):
        if source.name in {"go.mod", "go.sum"} or source.suffix == ".go":
            digest.update(source.relative_to(SOURCES).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def _build_into(folder: Path, build: Callable[[Path], None]) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        build(unfinished)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _one_builder(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / "lock").open("w")
    except OSError as error:
        raise TestbedUnavailable(f"the cache {folder} cannot be written: {error.strerror}") from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(
                f"waiting for another build of the test bed, which holds {folder / 'lock'}", file=sys.stderr, flush=True
            )
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
