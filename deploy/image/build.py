"""`python -m deploy.image.build tree|layout|lock`: builds the image, without a registry or a container runtime.

`tree FOLDER` lays its files out (what a container sees as `/`), `layout FOLDER` writes an OCI layout besides, which
`skopeo copy --all oci:FOLDER docker://…` or `buildah pull oci:FOLDER` take. `lock` pins Debian's packages again. The
wheels come by requirements-image.lock with their hashes, Debian's packages by debian.lock with theirs: the same commit
gives the same digest. Containerfile runs the same script, for those who have a runtime.

`--architecture amd64 arm64` builds for these processors, whatever this machine's is: nothing of the image is run.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from deploy.image import bill, contents, layout
from deploy.image.architectures import ARCHITECTURES, of_this_machine
from deploy.image.debian import BuildError, locked_packages, unpack, write_lock

LOCK = contents.ROOT / "requirements-image.lock"
MOST_BYTES = 250_000_000
OWN = (contents.LIBRARY / "dovetail", bill.BILL.parent)  # the layer that changes with each version


def build_tree(root: Path, cache: Path, architecture: str) -> None:
    """All files of the image for that processor, into an empty folder."""
    if root.exists() and any(root.iterdir()):
        raise BuildError(f"{root}: not empty")
    root.mkdir(parents=True, exist_ok=True)
    base = locked_packages(architecture)
    unpack(base, architecture, cache, root)
    with tempfile.TemporaryDirectory() as folder:
        wheel = contents.build_wheel(Path(folder))
        contents.install(root, LOCK, wheel, ARCHITECTURES[architecture])
    contents.prune_base(root)
    found = bill.components(root)
    bill.collect_licences(root, found)
    contents.prune_library(root)
    contents.write_surroundings(root)
    bill.write_bill(root, found, base, architecture)
    contents.compile_everything(root)
    if (size := contents.size_of(root)) > MOST_BYTES:
        raise BuildError(f"the image has {size / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f}")


def default_cache() -> Path:
    """Where Debian's packages are kept between builds."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dovetail" / "image"


def main() -> int:
    """Parse and build; what is missing is one line."""
    parser = argparse.ArgumentParser(prog="python -m deploy.image.build", description="Build the container image.")
    parser.add_argument("command", choices=("tree", "layout", "lock"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path("dist/image"))
    parser.add_argument("--architecture", nargs="+", choices=(*ARCHITECTURES,), default=[of_this_machine()])
    given = parser.parse_args()
    begun = time.monotonic()
    try:
        if given.command == "lock":
            write_lock(default_cache())
            return 0
        for name in given.architecture:
            root = given.folder / ("root" if len(given.architecture) == 1 else f"root-{name}")
            shutil.rmtree(root, ignore_errors=True)
            build_tree(root, default_cache(), name)
            took = time.monotonic() - begun
            print(f"image: {name}: {contents.size_of(root) / 1e6:.0f} MB in {root}, {took:.0f} s", flush=True)
            if given.command == "layout":
                digest = layout.write_layout(given.folder / "oci", root, OWN, name)
                print(f"image: {name}: {digest} in {given.folder / 'oci'}", flush=True)
    except BuildError as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
