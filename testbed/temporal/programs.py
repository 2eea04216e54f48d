"""Finds Temporal's server and the tool of its schema, built once and cached, and Debian's PostgreSQL."""

import shutil
from pathlib import Path
from typing import Final

from testbed.plane.binaries import Say, TestbedUnavailable, built_once, cache_folder, key_of
from testbed.plane.building import TEMPORAL, build_targets

SERVER: Final = "temporal-server"
SCHEMA_TOOL: Final = "temporal-sql-tool"
_DEBIANS: Final = Path("/usr/lib/postgresql")


def find_programs(say: Say) -> Path:
    """The folder that has both; TestbedUnavailable where they cannot be built."""
    folder = cache_folder() / f"temporal-{key_of(TEMPORAL)}"
    built_once(
        folder,
        lambda: all((folder / target.output).exists() for target in TEMPORAL),
        lambda unfinished: build_targets(TEMPORAL, unfinished, say),
    )
    return folder


def find_postgres() -> Path:
    """The folder of PostgreSQL's own programs: on the PATH, or the newest that Debian's packages brought."""
    if beside := shutil.which("initdb"):
        return Path(beside).resolve().parent  # a link may lie beside no other of them
    brought = [folder / "bin" for folder in _DEBIANS.glob("*") if (folder / "bin" / "initdb").exists()]
    if not brought:
        raise TestbedUnavailable("there is no PostgreSQL: the package `postgresql` of Debian brings it")
    return max(brought, key=lambda folder: float(folder.parent.name))
