"""What lies in the image: the base, the packages of requirements-image.lock, Dovetail; and what is left out of each.

The packages are those that run and those of the extras, so that every value of the chart works with it.

What is left out was looked for with the product running: tests/packaging/test_image.py starts it from the tree that
remains. Nothing is changed, files only go.
"""

import compileall
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from deploy.image.architectures import Architecture
from deploy.image.debian import BuildError

ROOT: Final = Path(__file__).parents[2]
LIBRARY: Final = Path("usr/local/lib/python3.11/dist-packages")  # where Debian's Python looks by itself
STANDARD: Final = Path("usr/lib/python3.11")

# Of Debian's packages: documentation but the licences, other languages, and what of Python's own library a server
# has no use for.
BASE_LEFT_OUT: Final = (
    "usr/share/man",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/doc-base",
    "usr/share/python3",
    "usr/share/applications",
    "usr/share/pixmaps",
    "usr/share/binfmts",
    "usr/share/base-files",
    "usr/share/gcc",
    "usr/share/gdb",
    "usr/share/zoneinfo/posix",
    "usr/share/zoneinfo/right",
    "usr/lib/*-linux-gnu/gconv",
    "usr/lib/*-linux-gnu/audit",
    "usr/sbin",
    "var",
    "etc/dpkg",
    "etc/skel",
    "etc/update-motd.d",
    *(
        f"{STANDARD}/{name}"
        for name in ("ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter", "turtle.py")
    ),
)

# Of the Python packages. The models and calls of the Kubernetes client are 126 MB that no line of ours uses: paths and
# JSON are our own (adapters/kube/client.py). Of botocore's descriptions of services those stay that are called; S3 is
# where a record may be kept.
KUBERNETES_MODULES: Final = (
    "models",
    "api",
)  # of kubernetes/aio/client; each keeps its __init__, which loads on demand
KUBERNETES_LEFT_OUT: Final = ("client", "config", "dynamic", "informer", "leaderelection", "stream", "utils", "watch")
SERVICES: Final = ("ec2", "eks", "iam", "pricing", "s3", "sqs", "ssm", "sso", "sso-oidc", "sts")
LIBRARY_LEFT_OUT: Final = (
    "bin",
    "numpy/distutils",
    "numpy/f2py",
    "numpy/testing/tests",
    "numpy/_core/include",
    "numpy/_core/lib",
    "numpy/random/lib",
    "temporalio/bridge/sdk-core",
    "temporalio/bridge/src",
    "google/protobuf/compiler",
    "types_protobuf-*",
    "google-stubs",
)
# Of Dovetail: a worker of a cluster moves no simulated world and plays no story.
OWN_LEFT_OUT: Final = ("dovetail/adapters/simulator", "dovetail/cli/demo")
NOT_RUN: Final = ("tests", "*.pyi", "*.pyx", "*.pxd", "*.c", "*.h", "*.a")


def install(root: Path, lock: Path, wheel: Path, architecture: Architecture) -> None:
    """The packages of the lock as they are for that processor, and Dovetail."""
    library = root / LIBRARY
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
    ]
    pip += ["--root-user-action=ignore", "--only-binary=:all:", "--target", str(library)]
    pip += ["--implementation=cp", "--python-version=3.11", "--abi=cp311", "--abi=abi3", "--abi=none"]
    pip += [f"--platform={platform}" for platform in architecture.wheels]
    _run([*pip, "--require-hashes", "-r", str(lock)])
    _run([*pip, "--no-index", str(wheel)])


def build_wheel(folder: Path) -> Path:
    """Dovetail's wheel, from what git knows, so that nothing of the working folder slips in."""
    source = folder / "source"
    _run(["git", "-C", str(ROOT), "checkout-index", "--all", f"--prefix={source}/"])
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    _run([*pip, "-w", str(folder), str(source)])
    shutil.rmtree(source)
    [wheel] = folder.glob("dovetail-*.whl")
    return wheel


def prune_base(root: Path) -> None:
    """Of Debian's packages."""
    for name in BASE_LEFT_OUT:
        for found in root.glob(name):
            _remove(found)
    for folder in (root / "usr/share/doc").iterdir():
        for file in folder.iterdir():
            if file.name != "copyright":
                _remove(file)
    for config in root.glob(f"{STANDARD}/config-*"):
        _remove(config)


def prune_library(root: Path) -> None:
    """Of the Python packages."""
    library = root / LIBRARY
    kept = {library / "kubernetes/aio/client" / name / "__init__.py" for name in KUBERNETES_MODULES}
    services = (library / "botocore/data").iterdir()
    gone = [
        *(library / "kubernetes" / name for name in KUBERNETES_LEFT_OUT),
        *(file for one in kept for file in one.parent.iterdir() if file not in kept),
        *(service for service in services if service.is_dir() and service.name not in SERVICES),
        *(found for name in LIBRARY_LEFT_OUT for found in library.glob(name)),
        *(library / name for name in OWN_LEFT_OUT),
    ]
    for path in gone:
        _remove(path)
    for name in NOT_RUN:
        for path in sorted(library.rglob(name)):
            _remove(path)


def compile_everything(root: Path) -> None:
    """Modules are compiled here, because nothing can be written where they run; by content, so that no time matters."""
    if sys.version_info[:2] != (3, 11):
        raise BuildError("the image's Python is 3.11: build it with one, or in the Containerfile")
    for folder in (root / STANDARD, root / LIBRARY):
        for old in folder.rglob("__pycache__"):
            _remove(old)
        compileall.compile_dir(
            folder,
            quiet=2,
            force=True,
            stripdir=str(root),
            prependdir="/",
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )


def write_surroundings(root: Path) -> None:
    """Who the process is, where names are looked up, whom TLS trusts, and the command."""
    etc = root / "etc"
    etc.mkdir(exist_ok=True)
    (etc / "passwd").write_text(
        "root:x:0:0:root:/root:/nonexistent\ndovetail:x:65532:65532:dovetail:/nonexistent:/nonexistent\n"
    )
    (etc / "group").write_text("root:x:0:\ndovetail:x:65532:\n")
    (etc / "nsswitch.conf").write_text("hosts: files dns\n")
    authorities = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    (etc / "ssl/certs").mkdir(parents=True, exist_ok=True)
    (etc / "ssl/certs/ca-certificates.crt").write_bytes(b"".join(file.read_bytes() for file in authorities))
    command = root / "usr/local/bin/dovetail"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text("#!/usr/bin/python3.11 -P\nfrom dovetail.cli.main import run\n\nrun()\n")
    command.chmod(0o755)
    for name in ("tmp", "proc", "sys", "dev"):
        (root / name).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)


def size_of(root: Path) -> int:
    """Bytes of all files, each counted once."""
    seen: dict[tuple[int, int], int] = {}
    for file in root.rglob("*"):
        if not file.is_symlink() and file.is_file():
            found = file.stat()
            seen[found.st_dev, found.st_ino] = found.st_size
    return sum(seen.values())


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command[:5])} …: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
