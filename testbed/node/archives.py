"""The images that a node has before its kubelet starts, in the cache: nothing is pulled where there is no registry."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import yaml

from dovetail.cli.demo.temporal_server import temporal_binary
from testbed.image import ROOT, image_archive
from testbed.node import images
from testbed.node.configuration import PAUSE
from testbed.plane import Binaries
from testbed.plane.binaries import built_once, cache_folder

DOVETAIL: Final = "docker.io/library/dovetail:kind"  # as docs/guides/try-it-on-kind.md names it
WEB: Final = "docker.io/library/web:1"
KWOK: Final = "registry.k8s.io/kwok/kwok:latest"
_VALUES: Final = ROOT / "deploy" / "charts" / "dovetail" / "values.yaml"
_COREUTILS: Final = ("sleep",)  # of what the chart's hook in Temporal's pod calls


def archives(programs: Path, binaries: Binaries) -> tuple[Path, ...]:
    """All of them, made where they are not there yet."""
    pause, web, kwok, temporal = programs / "pause", programs / "web", binaries.path("kwok"), temporal_binary()
    shell = {f"/bin/{name}": Path(found).resolve() for name in ("sh", *_COREUTILS) if (found := shutil.which(name))}
    named = yaml.safe_load(_VALUES.read_text())["temporal"]["dev"]["image"]
    temporal_name = f"docker.io/{named['repository']}:{named['tag']}"
    bin_temporal = "/usr/local/bin/temporal"
    return (
        _of(PAUSE, "/pause", {"/pause": pause}),
        _of(WEB, "/web", {"/web": web}),
        _of(KWOK, "/usr/local/bin/kwok", {"/usr/local/bin/kwok": kwok}),
        _of(temporal_name, bin_temporal, {bin_temporal: temporal, **shell}),
        image_archive(DOVETAIL, images.of_layout),
    )


def short_name(archive: Path) -> str:
    """`web` of the image docker.io/library/web:1."""
    return archive.parent.name.split("-")[1] if archive.parent.name.startswith("image-") else DOVETAIL


def _of(name: str, entry: str, files: dict[str, Path]) -> Path:
    digest = hashlib.sha256(repr((name, entry, *files)).encode())
    for file in files.values():
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return _made(name, digest.hexdigest(), lambda archive: images.of_programs(archive, name, entry, files))


def _made(name: str, digest: str, make: Callable[[Path], None]) -> Path:
    folder = cache_folder() / f"image-{name.rpartition('/')[2].partition(':')[0]}-{digest[:16]}"
    archive = folder / "image.tar"
    built_once(folder, archive.exists, lambda unfinished: make(unfinished / archive.name))
    return archive
