"""Images of programs that are there, as the archives that containerd takes: no registry is asked.

Each node imports them before its kubelet starts, under the names by which manifests ask for them.
"""

import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from deploy.image.architectures import of_this_machine

_TYPE: Final = "application/vnd.oci.image"
_FOUND: Final = re.compile(r"(/\S+) \(0x")  # a library, as ldd names it


def of_programs(archive: Path, name: str, entry: str, programs: Mapping[str, Path]) -> None:
    """An image of programs by the path where each lies in it, with the libraries that they need; `entry` is started."""
    blobs: dict[str, bytes] = {}
    files = dict(programs)
    for program in programs.values():
        files.update({str(library): library for library in _libraries(program)})
    layer = _blob(blobs, _packed(files), "layer.v1.tar")
    config = {
        "architecture": of_this_machine(),
        "os": "linux",
        "config": {"Entrypoint": [entry], "WorkingDir": "/", "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    described = _blob(blobs, json.dumps(config).encode(), "config.v1+json")
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}.manifest.v1+json",
        "config": described,
        "layers": [layer],
    }
    top = _blob(blobs, json.dumps(manifest).encode(), "manifest.v1+json")
    _write(archive, name, top, blobs.items())


def of_layout(archive: Path, name: str, layout: Path) -> None:
    """An image of our own (deploy/image), as it was written there."""
    [top] = json.loads((layout / "index.json").read_text())["manifests"]
    kept = (layout / "blobs" / "sha256").iterdir()
    _write(archive, name, top, ((file.name, file.read_bytes()) for file in kept))


def _libraries(program: Path) -> list[Path]:
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)  # fails for a static one
    return [Path(found) for found in _FOUND.findall(said.stdout)]


def _blob(blobs: dict[str, bytes], content: bytes, kind: str) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return {"mediaType": f"{_TYPE}.{kind}", "digest": f"sha256:{digest}", "size": len(content)}


def _packed(files: Mapping[str, Path]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as packed:
        scratch = tarfile.TarInfo("tmp")
        scratch.type, scratch.mode = tarfile.DIRTYPE, 0o1777
        packed.addfile(scratch)
        for place, file in sorted(files.items()):
            entry = tarfile.TarInfo(place.lstrip("/"))
            entry.size, entry.mode = file.stat().st_size, 0o755
            with file.open("rb") as content:
                packed.addfile(entry, content)
    return raw.getvalue()


def _write(archive: Path, name: str, top: dict[str, Any], blobs: Iterable[tuple[str, bytes]]) -> None:
    named = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    index = {"schemaVersion": 2, "manifests": [{**top, "annotations": named}]}
    unfinished = archive.with_suffix(".unfinished")
    with tarfile.open(unfinished, "w") as packed:
        _add(packed, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        _add(packed, "index.json", json.dumps(index).encode())
        for digest, content in blobs:
            _add(packed, f"blobs/sha256/{digest}", content)
    shutil.move(unfinished, archive)


def _add(packed: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    packed.addfile(entry, io.BytesIO(content))
