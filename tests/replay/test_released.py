"""What was recorded before a release is neither changed nor deleted, and a change would be noticed."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.replay.recorded import HISTORIES
from tests.replay.released import LIST, note, noted, troubles, troubles_by_git

ROOT = Path(__file__).parents[2]


def test_every_released_history_is_as_it_was() -> None:
    assert [*troubles(), *troubles_by_git(ROOT)] == []


def test_every_history_of_a_released_version_is_noted() -> None:
    """One that is recorded later belongs to a later version."""
    known = {name for release in noted().values() for name in release}
    versions = {f"@{version}.json" for version in noted()}
    found = {
        f"{f.parent.name}/{f.name}"
        for f in HISTORIES.glob("*/*@*.json")
        if f"@{f.stem.rpartition('@')[2]}.json" in versions
    }
    assert found and found <= known


def rewrite(file: Path) -> None:
    file.write_text(file.read_text() + " ")


@pytest.mark.parametrize(("harm", "words"), [(rewrite, "was changed"), (Path.unlink, "is gone")])
def test_a_history_that_is_changed_or_deleted_is_noticed(
    tmp_path: Path, harm: Callable[[Path], None], words: str
) -> None:
    folder = tmp_path / "histories"
    shutil.copytree(HISTORIES / "LaunchNode", folder / "LaunchNode")
    note("9.9.9", folder, tmp_path / "released.json")
    before = troubles(folder, tmp_path / "released.json")
    harm(folder / "LaunchNode" / "killed.json")

    assert before == []
    assert troubles(folder, tmp_path / "released.json") == [f"LaunchNode/killed.json, released with 9.9.9, {words}"]


def test_a_version_is_noted_once_and_the_next_holds_what_is_new(tmp_path: Path) -> None:
    folder, listed = tmp_path / "histories", tmp_path / "released.json"
    shutil.copytree(HISTORIES / "ReleaseNode", folder / "ReleaseNode")
    note("1", folder, listed)
    (folder / "ReleaseNode" / "new@2.json").write_text("{}")
    note("2", folder, listed)

    assert list(noted(listed)["2"]) == ["ReleaseNode/new@2.json"]
    with pytest.raises(SystemExit, match="noted already"):
        note("2", folder, listed)


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run(["git", "-C", str(root), *who, *arguments], check=True, capture_output=True)


@pytest.mark.parametrize("harm", [rewrite, Path.unlink])
def test_git_notices_what_the_list_would_hide(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """Who changes a history and writes the list anew is found by the tag."""
    histories, listed = tmp_path / HISTORIES.relative_to(ROOT), tmp_path / LIST.relative_to(ROOT)
    shutil.copytree(HISTORIES / "LaunchNode", histories / "LaunchNode")
    note("1.0.0", histories, listed)
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "a release")
    before_the_tag = troubles_by_git(tmp_path)
    git(tmp_path, "tag", "v1.0.0")
    (histories / "LaunchNode" / "new@1.1.0.json").write_text("{}")
    unharmed = troubles_by_git(tmp_path)

    harm(histories / "LaunchNode" / "killed.json")
    listed.write_text(json.dumps({}))
    note("1.0.0", histories, listed)

    assert before_the_tag == unharmed == []
    assert troubles(histories, listed) == [], "the list was written anew"
    assert [line.partition(":")[0] for line in troubles_by_git(tmp_path)] == [
        "tests/replay/histories/LaunchNode/killed.json",
        "tests/replay/released.json",
    ]
