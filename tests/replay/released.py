"""What was recorded before a release stays as it is: python -m tests.replay.released check, or write VERSION.

`write` notes the fingerprint of every recorded history under a version, when that version is released; it is done once.
`check` compares what is there with every release that was noted, and, where git knows release tags, with what the
newest of them contained: neither a history nor the list may be changed or go.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

from tests.replay.recorded import HISTORIES, recorded_files

LIST = Path(__file__).parent / "released.json"

Release = dict[str, str]  # <type>/<name>.json -> SHA-256


def fingerprint(file: Path) -> str:
    """Of its bytes."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def noted(list_file: Path = LIST) -> dict[str, Release]:
    """By version; a history stands under the version with which it was first released."""
    found: dict[str, Release] = json.loads(list_file.read_text()) if list_file.exists() else {}
    return found


def note(version: str, folder: Path = HISTORIES, list_file: Path = LIST) -> int:
    """Note what is new under this version; how many. A version is noted once."""
    releases = noted(list_file)
    if version in releases:
        raise SystemExit(f"{version} is noted already: what is recorded after it belongs to the next version")
    known = {name for release in releases.values() for name in release}
    names = {f"{file.parent.name}/{file.name}": file for file in recorded_files(folder)}
    releases[version] = {name: fingerprint(file) for name, file in names.items() if name not in known}
    list_file.write_text(json.dumps(releases, indent=1) + "\n")
    return len(releases[version])


def troubles(folder: Path = HISTORIES, list_file: Path = LIST) -> list[str]:
    """What was released and is no longer as it was."""
    found = []
    for version, release in noted(list_file).items():
        for name, known in release.items():
            file = folder / name
            if not file.exists():
                found.append(f"{name}, released with {version}, is gone")
            elif fingerprint(file) != known:
                found.append(f"{name}, released with {version}, was changed")
    return found


def troubles_by_git(root: Path) -> list[str]:
    """The same by the newest release tag; nothing where there is no git or no tag yet."""
    tag = _git(root, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*").strip()
    if not tag:
        return []
    histories, listed = (path.relative_to(Path(__file__).parents[2]) for path in (HISTORIES, LIST))
    changed = _git(root, "diff", "--no-renames", "--diff-filter=DMT", "--name-status", tag, "--", str(histories))
    found = [f"{line.split()[1]}: changed or gone since {tag}" for line in changed.splitlines()]
    before = _git(root, "show", f"{tag}:{listed}")
    now = noted(root / listed)
    for version, release in json.loads(before or "{}").items():
        if now.get(version) != release:
            found.append(f"{listed}: what it says of {version} has changed since {tag}")
    return found


def _git(root: Path, *arguments: str) -> str:
    """What git says; nothing where it cannot say."""
    try:
        ran = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return ran.stdout if ran.returncode == 0 else ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.replay.released")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="whether every released history is as it was")
    commands.add_parser("write", help="note what is new under a version").add_argument("version")
    given = parser.parse_args()
    if given.command == "write":
        print(f"{given.version}: {note(given.version)} histories noted")
        return
    found = [*troubles(), *troubles_by_git(Path(__file__).parents[2])]
    print("\n".join(found) or "every released history is as it was")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
