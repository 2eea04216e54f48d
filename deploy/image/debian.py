"""The base of the image: a few packages of Debian, each pinned by version and checksum in `debian.lock`.

What a Python of Debian needs to run, without a shell, a package manager or anything that installs. Packages are fetched
with apt-get from the mirrors of the machine that builds, and unpacked with dpkg-deb; none of their scripts is run.
"""

import hashlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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


def locked_packages() -> list[Package]:
    """What `debian.lock` names."""
    lines = [line.split() for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]
    found = [Package(name=name, version=version, checksum=checksum) for name, version, checksum in lines]
    if [package.name for package in found] != sorted(NAMES):
        raise BuildError(f"{LOCK.name}: does not name exactly the packages of the base; write it with `lock`")
    return found


def unpack(packages: list[Package], cache: Path, root: Path) -> None:
    """Fetch what the cache lacks, compare checksums, unpack."""
    for package, file in zip(packages, _fetched(packages, cache), strict=True):
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != package.checksum:
            raise BuildError(f"{package.wanted}: the checksum is {found}, not that of {LOCK.name}")
        _run("dpkg-deb", "-x", str(file), str(root))


def write_lock(cache: Path) -> None:
    """Pin the versions that the mirrors have now."""
    shown = subprocess.run(["apt-cache", "policy", *NAMES], capture_output=True, text=True, check=True).stdout
    versions = dict(_candidates(shown))
    packages = [Package(name=name, version=versions[name], checksum="") for name in sorted(NAMES)]
    lines = ["# The base of the image: Debian 12, amd64. Written by `python -m deploy.image.build lock`."]
    for package, file in zip(packages, _fetched(packages, cache), strict=True):
        lines.append(f"{package.name} {package.version} {hashlib.sha256(file.read_bytes()).hexdigest()}")
    LOCK.write_text("\n".join(lines) + "\n")


def _candidates(shown: str) -> Iterator[tuple[str, str]]:
    name = ""
    for line in shown.splitlines():
        if not line.startswith(" "):
            name = line.rstrip(":")
        elif line.strip().startswith("Candidate:"):
            yield name, line.split()[1]


def _fetched(packages: list[Package], cache: Path) -> list[Path]:
    cache.mkdir(parents=True, exist_ok=True)
    missing = [package.wanted for package in packages if _file_of(package, cache) is None]
    if missing:
        _run("apt-get", "download", "-qq", *missing, cwd=cache)
    files = [_file_of(package, cache) for package in packages]
    if None in files:
        raise BuildError(f"{packages[files.index(None)].wanted}: apt-get did not fetch it")
    return [file for file in files if file is not None]


def _file_of(package: Package, cache: Path) -> Path | None:
    version = package.version.replace(":", "%3a")
    return next(iter(cache.glob(f"{package.name}_{version}_*.deb")), None)


def _run(*command: str, cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildError(f"{command[0]}: not here; the image is built on Debian or in its container") from None
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command[:3])}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
