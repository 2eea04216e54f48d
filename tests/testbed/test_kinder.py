"""Whatever stands in for a real thing has a row in `testbed/kinder.md`, and is found here by what it looks like.

The server finds the fields that answers copy (`test_cloud_answers.py`), the table of refusals the operations that have
none (`test_cloud_refusals.py`).
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from testbed import kinder

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = ("dovetail", "activities", "workflows", "worker")
STANDS_IN: Final = re.compile(r"_?(Fake|Scripted|Stub|Mock|Dummy|Simulated|MadeUp|InMemory|Stored|Recorded)[A-Z]")
RENDERED: Final = re.compile(r"\benvironment\b|\bvariables_of\(")
CLASSES: Final = re.compile(rf"class (\w+\(|{STANDS_IN.pattern})")
SECTIONS: Final = (kinder.COPIED, kinder.UNREFUSED, kinder.STAND_INS, kinder.OVERRIDES, kinder.KINDER)


def trees(having: re.Pattern[str]) -> Iterator[ast.Module]:
    """Of the files whose text has this: reading all of them takes most of a minute where much else runs."""
    for folder in ("tests", "worlds", "testbed", "acceptance"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            if having.search(text):
                yield ast.parse(text)


def stand_ins(tree: ast.Module) -> set[str]:
    """Classes that say by their name that they stand in, and those that are made of a class of the product."""
    ours = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PRODUCT
        for name in node.names
    }
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {
        each.name
        for each in classes
        if STANDS_IN.match(each.name) or {ast.unparse(base).partition("[")[0] for base in each.bases} & ours
    }


def overrides(tree: ast.Module) -> set[str]:
    """Variables that are set over an environment which something has rendered: `{**its.environment, "NAME": …}`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            rendered = False
            for key, value in zip(node.keys, node.values, strict=True):
                rendered |= key is None and RENDERED.search(ast.unparse(value)) is not None
                if rendered and isinstance(key, ast.Constant):
                    found.add(str(key.value))
    return found


def parts() -> set[str]:
    """What the test bed is made of, each of which plays something."""
    return {
        f"testbed/{each.stem}"
        for each in (ROOT / "testbed").iterdir()
        if (each.suffix == ".py" or (each.is_dir() and any(each.glob("*.py")))) and not each.stem.startswith("__")
    }


def test_every_stand_in_has_a_row() -> None:
    found = {name for tree in trees(CLASSES) for name in stand_ins(tree)} | parts()

    assert found == kinder.rows(kinder.STAND_INS).keys()


def test_every_variable_that_is_set_over_what_is_rendered_has_a_row() -> None:
    found = {name for tree in trees(RENDERED) for name in overrides(tree)}

    assert found == kinder.rows(kinder.OVERRIDES).keys()


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("class FakeThing: pass", {"FakeThing"}),
        ("from dovetail.ports.cloud import Cloud\nclass Mine(Cloud): pass", {"Mine"}),
        ("from dovetail.model.pools import Box\nclass Mine(Box[int]): pass", {"Mine"}),
        ("from pathlib import Path\nclass Mine(Path): pass\nclass Faked: pass", set[str]()),
    ],
)
def test_a_stand_in_is_found_by_its_name_and_by_what_it_is_made_of(code: str, names: set[str]) -> None:
    assert stand_ins(ast.parse(code)) == names


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ('run({**stage.environment, "PORT": "1"})', {"PORT"}),
        ('run({"PORT": "1", **stage.environment})', set[str]()),
        ('run({**variables_of(pod), "PORT": "1"})', {"PORT"}),
        ('run({**os.environ, "PORT": "1"})', set[str]()),
    ],
)
def test_a_variable_set_over_rendered_ones_is_found(code: str, names: set[str]) -> None:
    assert overrides(ast.parse(code)) == names


def test_every_row_says_something_and_the_page_has_no_other_tables() -> None:
    text = kinder.REGISTER.read_text(encoding="utf-8")
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == SECTIONS
    for section in SECTIONS:
        rows: dict[str, Any] = kinder.rows(section)
        assert rows and all(len(row) >= 15 for row in rows.values()), section
        assert text.count(section) == 1
