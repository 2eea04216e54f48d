"""The previous version, taken from git and installed into an environment of its own.

Which one it is stands in previous.toml. Its wheel is built from the commit alone, so that nothing of the working folder
slips in. What it depends on comes from its own lock file; where that is the same as ours, our packages are used. The
environment is kept in .dovetail/previous and built anew when Python or a lock file changes.
"""

import fcntl
import hashlib
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = Path(__file__).with_name("previous.toml")
KEPT = ROOT / ".dovetail" / "previous"
LOCK = "requirements.lock"


class Unbuildable(Exception):
    """The previous version cannot be built; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """Which version that is."""

    version: str
    commit: str


def named(file: Path = NAMED) -> Previous:
    """As the file says it."""
    try:
        return Previous(**tomllib.loads(file.read_text()))
    except (TypeError, tomllib.TOMLDecodeError) as error:
        raise Unbuildable(f"{file}: version and commit are to be named there: {error}") from None


def installed(previous: Previous, repository: Path = ROOT, kept: Path = KEPT) -> Path:
    """The Python of an environment in which that version is installed; run it with -I."""
    archive = _archive(repository, previous)
    folder = kept / previous.commit[:12]
    made_of = _made_of(archive, repository)
    with _alone(kept / f"{folder.name}.lock"):
        note = folder / "made-of"
        if not note.exists() or note.read_text() != made_of:
            shutil.rmtree(folder, ignore_errors=True)
            _build(archive, repository, folder)
            note.write_text(made_of)
    return folder / "environment" / "bin" / "python"


def _archive(repository: Path, previous: Previous) -> bytes:
    """The commit's tree as a tar."""
    done = subprocess.run(["git", "archive", previous.commit], cwd=repository, capture_output=True, check=False)
    if done.returncode != 0:
        raise Unbuildable(
            f"version {previous.version} is commit {previous.commit}, and {repository} does not have it: this clone "
            "has no full history (git fetch --unshallow), or tests/upgrade/previous.toml names a commit that was never "
            f"pushed ({done.stderr.decode(errors='replace').strip()})"
        )
    return done.stdout


def _made_of(archive: bytes, repository: Path) -> str:
    """What the environment depends on."""
    ours = (repository / LOCK).read_bytes()
    return hashlib.sha256(archive + ours + sys.version.encode() + sysconfig.get_path("purelib").encode()).hexdigest()


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """One process at a time; the others wait."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(archive: bytes, repository: Path, folder: Path) -> None:
    source, wheels, environment = folder / "source", folder / "wheels", folder / "environment"
    source.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        # Pythons before 3.11.4 have no filters; the archive is git's own.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(source)
    wheel_of = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", wheels, ".")
    _done(*wheel_of, cwd=source)
    [wheel] = wheels.glob("*.whl")
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    into = _packages_of(python, folder)
    if (source / LOCK).read_bytes() == (repository / LOCK).read_bytes():
        # A line of a .pth file adds a folder, but not that folder's own .pth files: our editable install stays outside.
        (into / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    else:
        _install(python, "--require-hashes", "-r", source / LOCK, cwd=folder)
    _install(python, wheel, cwd=folder)


def _packages_of(python: Path, folder: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([python, "-I", "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def _install(python: Path, *what: str | Path, cwd: Path) -> None:
    """As `make setup` does: what an earlier environment had is linked from its cache."""
    index = os.environ.get("PIP_INDEX_URL")
    where = ("--default-index", index) if index else ()
    uv = Path(sys.executable).with_name("uv")
    _done(uv, "pip", "install", "--quiet", "--python", python, "--no-deps", *where, *what, cwd=cwd)


def _done(*command: str | Path, cwd: Path) -> None:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unbuildable(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
