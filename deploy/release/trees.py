"""`python -m deploy.release.trees TREE ARCHIVE`: whether a container's files are those of the script's tree.

ARCHIVE is what `docker export` writes. Names, kinds, modes and contents are compared; owners and times are not, since a
builder writes its own. What a runtime adds to every container is left out.
"""

import hashlib
import stat
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

OF_THE_RUNTIME: Final = ("dev", "proc", "sys", ".dockerenv", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab")

Files = dict[str, str]


def of_tree(root: Path) -> Files:
    """What each path of a folder is."""
    return dict(_of_tree(root))


def _of_tree(root: Path) -> Iterator[tuple[str, str]]:
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            yield path.relative_to(root).as_posix(), f"link to {path.readlink()}"
        elif stat.S_ISREG(mode):
            yield path.relative_to(root).as_posix(), _file(mode, path.read_bytes())


def of_archive(archive: Path) -> Files:
    """What each path of an exported container is; folders are seen by what lies in them."""
    files: Files = {}
    with tarfile.open(archive) as opened:
        for member in opened:
            name = member.name.removeprefix("./")
            if member.issym():
                files[name] = f"link to {member.linkname}"
            elif member.islnk():
                files[name] = files[member.linkname.removeprefix("./")]
            elif member.isfile():
                content = opened.extractfile(member)
                files[name] = _file(member.mode, content.read() if content else b"")
    return files


def differences(tree: Files, archive: Files) -> list[str]:
    """A line for each path that is not the same in both."""
    paths = sorted(path for path in tree.keys() | archive.keys() if not path.startswith(OF_THE_RUNTIME))
    return [
        f"{path}: {tree.get(path, 'missing')} in the tree, {archive.get(path, 'missing')} in the image"
        for path in paths
        if tree.get(path) != archive.get(path)
    ]


def _file(mode: int, content: bytes) -> str:
    return f"file {stat.S_IMODE(mode):o} {hashlib.sha256(content).hexdigest()[:12]}"


if __name__ == "__main__":
    lines = differences(of_tree(Path(sys.argv[1])), of_archive(Path(sys.argv[2])))
    print("\n".join(lines[:50] or ["the image is the script's tree"]))
    sys.exit(1 if lines else 0)
