"""`python -m deploy.release.packages OUT`: the sdist, the wheel made of it, and the archive and manifest for krew.

All of what git knows and nothing of the working folder; the wheel is built from the sdist, so that an sdist which lacks
something does not pass.
"""

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from deploy.release.names import filled
from deploy.release.version import ROOT, ReleaseError, found

_SDIST: Final = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
PLUGIN: Final = "kubectl-dovetail"


def build(out: Path) -> tuple[Path, Path]:
    """The sdist and the wheel."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as source:
        _run(["git", "checkout-index", "--all", f"--prefix={source}/"], ROOT)
        _run([sys.executable, "-c", _SDIST, str(out.resolve())], Path(source))
    [sdist] = out.glob("dovetail-*.tar.gz")
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    _run([*wheel, str(out), str(sdist)], ROOT)
    [built] = out.glob("dovetail-*.whl")
    return sdist, built


def krew(out: Path, version: str) -> Path:
    """The plugin's archive, the same at every build, and the manifest that names its sum."""
    content = filled(PLUGIN, {"version": version}).encode()
    member = tarfile.TarInfo(PLUGIN)
    member.size, member.mode = len(content), 0o755
    archive = out / f"{PLUGIN}.tar.gz"
    with (
        archive.open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as written,
    ):
        written.addfile(member, io.BytesIO(content))
    sum_of = hashlib.sha256(archive.read_bytes()).hexdigest()
    manifest = out / "dovetail.krew.yaml"
    manifest.write_text(filled("krew.yaml", {"version": version, "sha256": sum_of}))
    return manifest


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"{command[0]} {command[1]}: {done.stderr.strip()[-2000:]}")


def main(out: Path) -> None:
    """All of it."""
    for made in (*build(out), krew(out, dict(found(ROOT))["pyproject.toml"])):
        print(made)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
