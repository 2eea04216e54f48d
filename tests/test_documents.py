"""docs/behaviour.md says what shows each rule; this checks that what it names is there.

The document is an acceptance list: a line that names a test which was renamed, or never written, promises what nobody
shows. Tests are named in four ways, one for each of its parts; a name that ends in … stands for all that begin so.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "behaviour.md").read_text()

SENTENCES = {
    "properties": "tests/properties/test_placement.py",
    "placing": "tests/placement/test_placing.py",
    "waiting": "tests/placement/test_waiting_pods.py",
    "order": "tests/placement/test_proposal_order.py",
}


@cache
def names_of(file: Path) -> frozenset[str]:
    """The names of its tests, without `test_`."""
    tree = ast.parse(file.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return frozenset(one.name.removeprefix("test_") for one in functions if one.name.startswith("test_"))


@cache
def files_named(module: str) -> tuple[Path, ...]:
    return tuple(sorted((ROOT / "tests").rglob(f"{module}.py")))


def exists(files: tuple[Path, ...], name: str) -> bool:
    """A test of that name, or one that begins so."""
    names = {one for file in files for one in names_of(file)}
    wanted = name.removeprefix("test_")
    return any(one.startswith(wanted[:-1]) for one in names) if wanted.endswith("…") else wanted in names


def test_behaviour_names_only_tests_that_exist_by_their_path() -> None:
    """`tests/x.py::test_y` and `tests/x.py`."""
    named = re.findall(r"`(tests/[\w/]+(?:\.py)?)(::(\w+))?`", TEXT)
    missing = []
    for path, _, name in named:
        if not (ROOT / path).exists() or (name and not exists((ROOT / path,), name)):
            missing.append(f"{path}::{name}")

    assert (len(named) > 50, missing) == (True, [])


def _by_module() -> Iterator[tuple[str, str]]:
    """`test_module: name`, and the names that follow it in the same cell."""
    for line in TEXT.splitlines():
        module = ""
        for quoted in re.findall(r"`([^`]+)`", line.rpartition("|")[0].rpartition("|")[2]):
            found = re.fullmatch(r"(test_\w+): ([\w…]+)", quoted)
            if found:
                module = found.group(1)
                yield module, found.group(2)
            elif re.fullmatch(r"test_\w+", quoted):
                module = quoted
                yield module, "…"
            elif module and re.fullmatch(r"[a-z]\w*_\w*_[\w…]+", quoted):
                yield module, quoted


def test_behaviour_names_only_tests_that_exist_by_their_module() -> None:
    named = list(_by_module())

    missing = [f"{module}: {name}" for module, name in named if not exists(files_named(module), name)]
    assert (len(named) > 150, missing) == (True, [])


def test_behaviour_names_only_tests_that_exist_by_their_sentence() -> None:
    """`placing: the heaviest pool wins whatever the price`."""
    missing, checked = [], 0
    for line in TEXT.splitlines():
        cell = line.rpartition("|")[0].rpartition("|")[2]
        for part in cell.split("; "):
            module, mark, sentences = part.strip().partition(": ")
            if not mark or module not in SENTENCES:
                continue
            for sentence in sentences.split(", "):
                checked += 1
                name = re.sub(r"[^\w…]+", "_", sentence.strip()).replace("_…", "…")
                if not exists((ROOT / SENTENCES[module],), name):
                    missing.append(sentence)

    assert (checked > 30, missing) == (True, [])


def test_behaviour_names_only_files_that_exist() -> None:
    """`activities/x.py`, wherever a module stands in a test's place."""
    named = re.findall(r"`((?:core|activities|adapters|workflows|worker|ports|api|cli)/[\w/]+\.py)`", TEXT)

    assert [path for path in named if not (ROOT / path).exists()] == []
