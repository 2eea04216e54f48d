"""`python -m deploy.release.site BUILT PUBLISHED VERSION`: puts a built site beside those of other versions.

PUBLISHED is what is served: a folder for each version, `latest` as a copy of the newest, `versions.json` that the
theme's menu of versions reads, and a first page that leads to `latest`.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Final

LATEST: Final = "latest"
_FIRST_PAGE: Final = (
    '<!doctype html><meta charset="utf-8"><title>Dovetail</title><meta http-equiv="refresh" content="0; url=latest/">\n'
)


def publish(built: Path, published: Path, version: str) -> None:
    """Put it there; a version that is there is replaced."""
    published.mkdir(parents=True, exist_ok=True)
    for name in (version, *([LATEST] if _is_newest(published, version) else [])):
        shutil.rmtree(published / name, ignore_errors=True)
        shutil.copytree(built, published / name)
    known = sorted((found.name for found in published.iterdir() if _key(found.name)), key=_key, reverse=True)
    entries = [{"version": name, "title": name, "aliases": [LATEST] if name == known[0] else []} for name in known]
    (published / "versions.json").write_text(json.dumps(entries, indent=1) + "\n")
    (published / "index.html").write_text(_FIRST_PAGE)


def _is_newest(published: Path, version: str) -> bool:
    return all(_key(found.name) <= _key(version) for found in published.iterdir())


def _key(name: str) -> tuple[Any, ...]:
    """Of its place among versions, a pre-release before its release; empty for what is none."""
    numbers, _, early = name.partition("-")
    parts = numbers.split(".")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        return ()
    return (*map(int, parts), early == "", early)


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
