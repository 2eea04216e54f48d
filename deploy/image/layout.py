"""Writes an image as an OCI layout: layers, configuration, manifest. The same tree gives the same digests.

A layout holds the image for each processor that was written into it; a runtime takes the one for its own.
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

USER: Final = 65532
_MOMENT: Final = 315532800  # 1980, the earliest that a zip file can say: every file's time
_TYPE: Final = "application/vnd.oci.image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer that was written."""

    digest: str  # as it lies there
    size: int
    content: str  # the digest of its tar file


def configuration(layers: Iterable[Layer], architecture: str) -> dict[str, Any]:
    """How the container is run where nobody says otherwise."""
    return {
        "architecture": architecture,
        "os": "linux",
        "created": "1980-01-01T00:00:00Z",
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["/usr/local/bin/dovetail"],
            "Cmd": ["worker"],
            "WorkingDir": "/",
            "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "Labels": {"org.opencontainers.image.title": "dovetail", "org.opencontainers.image.licenses": "Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.content for layer in layers]},
        "history": [{"created": "1980-01-01T00:00:00Z", "created_by": "deploy.image.build"} for _ in layers],
    }


ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
}


def write_layout(folder: Path, root: Path, upper: tuple[Path, ...], architecture: str) -> str:
    """The tree as two layers, so that a new version of Dovetail moves little: what is below `upper` on top, all else
    beneath. The manifest's digest."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    files = sorted(root.rglob("*"))
    on_top = [file for file in files if any(file.relative_to(root).is_relative_to(path) for path in upper)]
    beneath = [file for file in files if file not in set(on_top)]
    layers = [_layer(blobs, root, part) for part in (beneath, on_top)]
    config = _blob(blobs, json.dumps(configuration(layers, architecture), sort_keys=True).encode())
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}.manifest.v1+json",
        "config": {"mediaType": f"{_TYPE}.config.v1+json", "digest": config[0], "size": config[1]},
        "layers": [
            {"mediaType": f"{_TYPE}.layer.v1.tar+gzip", "digest": layer.digest, "size": layer.size} for layer in layers
        ],
    }
    digest, size = _blob(blobs, json.dumps(manifest, sort_keys=True).encode())
    described = {"mediaType": f"{_TYPE}.manifest.v1+json", "digest": digest, "size": size}
    own = {**described, "platform": {"architecture": architecture, "os": "linux"}}
    others = [each for each in _manifests(folder) if each["platform"] != own["platform"]]
    manifests = sorted([*others, own], key=lambda each: str(each["platform"]["architecture"]))
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": manifests}, sort_keys=True))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return digest


def _manifests(folder: Path) -> list[dict[str, Any]]:
    """What the layout holds already."""
    index = folder / "index.json"
    return list(json.loads(index.read_text())["manifests"]) if index.exists() else []


def _layer(blobs: Path, root: Path, files: list[Path]) -> Layer:
    unfinished = blobs / "unfinished"
    with (
        unfinished.open("wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="", compresslevel=6) as zipped,
    ):
        counted = _Counted(zipped)
        with tarfile.open(fileobj=counted, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for file in files:
                _add(archive, file, file.relative_to(root).as_posix())
    digest = hashlib.sha256(unfinished.read_bytes()).hexdigest()
    size = unfinished.stat().st_size
    unfinished.rename(blobs / digest)
    return Layer(digest=f"sha256:{digest}", size=size, content=f"sha256:{counted.digest.hexdigest()}")


class _Counted(io.RawIOBase):
    """A file that knows the digest of all that was written to it."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self.digest = hashlib.sha256()
        self._file = file

    def write(self, data: Any) -> int:
        """Count it, and pass it on."""
        self.digest.update(data)
        return self._file.write(data)


def _add(archive: tarfile.TarFile, file: Path, name: str) -> None:
    entry = archive.gettarinfo(file, name)
    entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = _MOMENT, 0, 0, "", ""
    if entry.isreg():
        with file.open("rb") as content:
            archive.addfile(entry, content)
    else:
        archive.addfile(entry)


def _blob(blobs: Path, content: bytes) -> tuple[str, int]:
    digest = hashlib.sha256(content).hexdigest()
    (blobs / digest).write_bytes(content)
    return f"sha256:{digest}", len(content)
