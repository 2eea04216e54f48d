"""The version: `python -m deploy.release.version bump 0.2.0`, `check v0.2.0`, `notes 0.2.0`.

`bump` writes it wherever it stands and closes the changelog's "Unreleased". `check` refuses a tag that is not the
version of all these places. `notes` prints what a release says of itself: its part of the changelog.
"""

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CHANGELOG: Final = "CHANGELOG.md"
UNRELEASED: Final = "## Unreleased\n"
_VERSION: Final = r"\d+\.\d+\.\d+(?:-[0-9a-z.]+)?"
# A file, and what stands before and behind the version in it.
PLACES: Final = (
    ("pyproject.toml", r'(?m)^(version = ")', r'(")$'),
    ("dovetail/cli/commands/version.py", r'(?m)^(VERSION: Final = ")', r'(")$'),
    *(
        (f"deploy/charts/{chart}/Chart.yaml", *around)
        for chart in ("dovetail", "dovetail-crd")
        for around in ((r"(?m)^(version: )", r"()$"), (r'(?m)^(appVersion: ")', r'(")$'))
    ),
    ("docs/guides/install-eks.md", r"( TAG=)", r"()$"),
    ("docs/guides/from-karpenter.md", r"(--set image\.tag=)", r"( )"),
)


class ReleaseError(Exception):
    """What a release cannot be made with, in one line."""


def found(root: Path) -> Iterator[tuple[str, str]]:
    """Each place and the version that it names."""
    for name, before, behind in PLACES:
        match = re.search(f"{before}({_VERSION}){behind}", (root / name).read_text(), re.MULTILINE)
        if match is None:
            raise ReleaseError(f"{name}: no version stands where one is looked for")
        yield name, match[2]


def check(root: Path, tag: str) -> None:
    """Whether that tag is the version of every place, and the changelog has a part for it."""
    wrong = [f"{name} says {version}" for name, version in found(root) if f"v{version}" != tag]
    if wrong:
        raise ReleaseError(f"{tag}: {', '.join(wrong)}")
    notes(root, tag.removeprefix("v"))


def bump(root: Path, version: str, day: str) -> None:
    """Write it everywhere, and give what is unreleased its heading."""
    if not re.fullmatch(_VERSION, version):
        raise ReleaseError(f"{version}: a version is written as 1.2.3")
    changelog = root / CHANGELOG
    if not _part(changelog.read_text(), UNRELEASED):
        raise ReleaseError(f"{CHANGELOG}: nothing is unreleased")
    for name, before, behind in PLACES:
        file = root / name
        file.write_text(re.sub(f"{before}{_VERSION}{behind}", rf"\g<1>{version}\g<2>", file.read_text(), flags=re.M))
    heading = f"{UNRELEASED}\n## {version} - {day}\n"
    changelog.write_text(changelog.read_text().replace(UNRELEASED, heading, 1))


def notes(root: Path, version: str) -> str:
    """The changelog's part of that version, without its heading."""
    text = (root / CHANGELOG).read_text()
    heading = re.search(rf"(?m)^## {re.escape(version)} - \d{{4}}-\d\d-\d\d\n", text)
    if heading is None or not (part := _part(text, heading[0])):
        raise ReleaseError(f"{CHANGELOG}: no part of {version}")
    return part


def _part(text: str, heading: str) -> str:
    return text.partition(heading)[2].partition("\n## ")[0].strip()


def main(command: str, version: str) -> int:
    """One of the three; what is wrong is one line."""
    try:
        if command == "bump":
            bump(ROOT, version, time.strftime("%Y-%m-%d", time.gmtime()))
        elif command == "check":
            check(ROOT, version)
        else:
            print(notes(ROOT, version))
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
