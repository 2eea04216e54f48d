"""The base of the image: a few packages of Debian, each pinned by version and checksum in `debian.lock`.

What a Python of Debian needs to run, without a shell, a package manager or anything that installs. Packages are fetched
with apt-get from the mirrors of the machine that builds, and unpacked with dpkg-deb; none of their scripts is run, so
that the base of another processor is unpacked as well. The lists of packages are kept beside them, apart from the
machine's own.
"""

import hashlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.image.architectures import ARCHITECTURES

LOCK: Final = Path(__file__).with_name("debian.lock")
NAMES: Final = (
    "base-files",  # names the distribution, which scanners look for
    "ca-certificates",
    "gcc-12-base",  # the licence of libgcc
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libsqlite3-0",
    "libssl3",
    "libstdc++6",
    "libuuid1",
    "python3.11-minimal",
    "tzdata",
    "zlib1g",
)


class BuildError(Exception):
    """The image cannot be built here. The text is one line for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One package at one version."""

    name: str
    version: str
    checksum: str  # sha256 of its file

    @property
    def wanted(self) -> str:
        """As apt-get is asked for it."""
        return f"{self.name}={self.version}"


def locked_packages(architecture: str) -> list[Package]:
    """What `debian.lock` names for that processor."""
    lines = [line.split() for line in LOCK.read_text().splitlines() if line.startswith(f"{architecture} ")]
    found = [Package(name=name, version=version, checksum=checksum) for _, name, version, checksum in lines]
    if [package.name for package in found] != sorted(NAMES):
        raise BuildError(f"{LOCK.name}: does not name exactly the packages of the base; write it with `lock`")
    return found


def unpack(packages: list[Package], architecture: str, cache: Path, root: Path) -> None:
    """Fetch what the cache lacks, compare checksums, unpack."""
    for package, file in zip(packages, _fetched(packages, architecture, cache), strict=True):
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != package.checksum:
            raise BuildError(f"{package.wanted}: the checksum is {found}, not that of {LOCK.name}")
        _run("dpkg-deb", "-x", str(file), str(root))


def write_lock(cache: Path) -> None:
    """Pin the versions that the mirrors have now."""
    lines = ["# The base of the image: Debian 12, by processor. Written by `python -m deploy.image.build lock`."]
    for architecture in ARCHITECTURES:
        _update(architecture, cache)
        versions = dict(_candidates(_run("apt-cache", *_apart(architecture, cache), "policy", *NAMES)))
        packages = [Package(name=name, version=versions[name], checksum="") for name in sorted(NAMES)]
        for package, file in zip(packages, _fetched(packages, architecture, cache), strict=True):
            checksum = hashlib.sha256(file.read_bytes()).hexdigest()
            lines.append(f"{architecture} {package.name} {package.version} {checksum}")
    LOCK.write_text("\n".join(lines) + "\n")


def _candidates(shown: str) -> Iterator[tuple[str, str]]:
    name = ""
    for line in shown.splitlines():
        if not line.startswith(" "):
            name = line.rstrip(":")
        elif line.strip().startswith("Candidate:"):
            yield name, line.split()[1]


def _fetched(packages: list[Package], architecture: str, cache: Path) -> list[Path]:
    cache.mkdir(parents=True, exist_ok=True)
    missing = [package.wanted for package in packages if _file_of(package, architecture, cache) is None]
    if missing:
        _update(architecture, cache)
        _run("apt-get", *_apart(architecture, cache), "download", "-qq", *missing, cwd=cache)
    files = [_file_of(package, architecture, cache) for package in packages]
    if None in files:
        raise BuildError(f"{packages[files.index(None)].wanted}: apt-get did not fetch it for {architecture}")
    return [file for file in files if file is not None]


def _file_of(package: Package, architecture: str, cache: Path) -> Path | None:
    version = package.version.replace(":", "%3a")
    names = (f"{package.name}_{version}_{built_for}.deb" for built_for in (architecture, "all"))
    return next((cache / name for name in names if (cache / name).exists()), None)


def _apart(architecture: str, cache: Path) -> list[str]:
    """Options with which apt knows that processor alone, and touches nothing of the machine's."""
    options = {
        "APT::Architecture": architecture,
        "APT::Architectures::": architecture,
        "APT::Sandbox::User": "",
        "Dir::State::lists": str(cache / "lists" / architecture),
        "Dir::Cache": str(cache / "apt" / architecture),
    }
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _update(architecture: str, cache: Path) -> None:
    """Ask the mirrors which packages they have for that processor."""
    for folder in (cache / "lists" / architecture, cache / "apt" / architecture / "archives"):
        (folder / "partial").mkdir(parents=True, exist_ok=True)
    _run("apt-get", *_apart(architecture, cache), "update", "-qq")


def _run(*command: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildError(f"{command[0]}: not here; the image is built on Debian or in its container") from None
    if done.returncode != 0:
        raise BuildError(f"{command[0]} {command[-1]}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return done.stdout
