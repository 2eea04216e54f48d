"""The image of this commit, built once for what it is built from: its file tree, and its layout."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from deploy.image.architectures import of_this_machine
from deploy.image.build import LOCK, OWN, build_tree, default_cache
from deploy.image.debian import LOCK as DEBIAN
from deploy.image.layout import write_layout

ROOT: Final = Path(__file__).resolve().parents[1]
VARIABLE = "DOVETAIL_IMAGE_TREE"  # a tree that is there
FOLDERS = ("dovetail", "workflows", "activities", "worker", "deploy/image")


def image_tree(architecture: str = "amd64") -> Path:
    """What `python -m deploy.image.build tree` makes of this commit; built anew when what it is made of has changed."""
    if (named := os.environ.get(VARIABLE)) and architecture == "amd64":
        return Path(named)
    return _kept(architecture, lambda folder: build_tree(folder, default_cache(), architecture))


def image_layout() -> Path:
    """The same of `layout`, for this machine's processor."""
    architecture = of_this_machine()

    def build(folder: Path) -> None:
        write_layout(folder, image_tree(architecture), OWN, architecture)

    return _kept(f"layout-{architecture}", build)


def image_archive(name: str, write: Callable[[Path, str, Path], None]) -> Path:
    """The same as one file, under that name."""

    def build(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / "image.tar", name, image_layout())

    return _kept("archive", build) / "image.tar"


def _kept(name: str, build: Callable[[Path], None]) -> Path:
    kept = ROOT / ".dovetail" / "images" / name
    found = kept / _digest()
    if found.exists():
        return found
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # lanes of tests side by side build it once
        if not found.exists():
            for earlier in filter(Path.is_dir, kept.iterdir()):
                shutil.rmtree(earlier)
            unfinished = kept / "unfinished"
            build(unfinished)
            unfinished.rename(found)
    return found


def _digest() -> str:
    digest = hashlib.sha256(LOCK.read_bytes() + DEBIAN.read_bytes())
    for name in FOLDERS:
        for file in sorted((ROOT / name).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
