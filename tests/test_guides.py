"""The guides name what is there: every path in them exists, and a newcomer's changes stay small.

`docs/architecture.md` has a table of changes. Each names at most three files beside tests and documents, and the test
that fails when one of them is forgotten.
"""

import argparse
import re
from pathlib import Path

import pytest

from dovetail.cli.main import parser
from dovetail.settings.settings import settings_models

ROOT = Path(__file__).parents[1]
GUIDES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/architecture.md",
    "docs/operations.md",
    "docs/cost.md",
    "docs/temporal.md",
    "docs/tctl.md",
    "docs/temporal-outages.md",
    "docs/upgrading.md",
    "docs/glossary.md",
    *(f"docs/guides/{page.name}" for page in sorted((ROOT / "docs/guides").glob("*.md"))),
)
FOLDERS = (
    "dovetail",
    "activities",
    "workflows",
    "worker",
    "tests",
    "worlds",
    "testbed",
    "acceptance",
    "research",
    "deploy",
    "docs",
)
MOST_FILES = 3
_PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)(?:::(\w+))?`")


def paths_in(text: str) -> list[tuple[str, str]]:
    """Every path in the text, with the test that stands behind it."""
    return _PATH.findall(text)


def changes() -> list[tuple[str, str, str]]:
    """The rows of the table: the change, where, and what fails if something is forgotten."""
    table = (ROOT / "docs/architecture.md").read_text().partition("## Where to change what")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    return [(change, where, check) for change, where, check in rows if not change.startswith("-")]


@pytest.mark.parametrize("guide", GUIDES)
def test_every_path_in_a_guide_exists(guide: str) -> None:
    missing = [path for path, _ in paths_in((ROOT / guide).read_text()) if not (ROOT / path).exists()]
    assert missing == []


@pytest.mark.parametrize("guide", GUIDES)
def test_every_test_in_a_guide_exists(guide: str) -> None:
    named = [(path, test) for path, test in paths_in((ROOT / guide).read_text()) if test]
    assert [f"{path}::{test}" for path, test in named if f"def {test}(" not in (ROOT / path).read_text()] == []


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_that_says_where_temporal_is_names_the_namespace_too(guide: str) -> None:
    """Without one a command asks about `default`, where nothing of ours is, and `doctor` finds everything missing."""
    exports = [line for line in (ROOT / guide).read_text().splitlines() if line.startswith("export TEMPORAL_ADDRESS=")]
    assert [line for line in exports if " TEMPORAL_NAMESPACE=" not in line] == []


def test_the_table_has_the_everyday_changes() -> None:
    assert len(changes()) >= 16


def test_a_change_touches_at_most_three_files() -> None:
    many = {change: where for change, where, _ in changes() if len(paths_in(where)) > MOST_FILES}
    none = [change for change, where, _ in changes() if not paths_in(where)]
    assert (many, none) == ({}, [])


def test_every_change_names_what_fails_when_a_file_is_forgotten() -> None:
    assert [change for change, _, check in changes() if not any(test for _, test in paths_in(check))] == []


def test_every_command_is_in_the_readme() -> None:
    [commands] = [each for each in parser()._actions if isinstance(each, argparse._SubParsersAction)]
    text = (ROOT / "README.md").read_text()
    assert [name for name in commands.choices if f"`dovetail {name}" not in text] == []


def test_every_setting_is_in_the_reference() -> None:
    text = (ROOT / "docs/reference/settings.md").read_text()
    names = [field.alias for model in settings_models() for field in model.model_fields.values() if field.alias]
    assert [name for name in names if f"`{name}`" not in text] == []
