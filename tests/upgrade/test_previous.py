"""The drill's older workers really are the version that previous.toml names."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.upgrade.previous import ROOT, Previous, Unbuildable, installed, named


def said_by(python: Path, *arguments: str) -> str:
    done = subprocess.run([python, "-I", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_a_history_without_the_commit_is_told_in_words(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "requirements.lock").touch()

    with pytest.raises(Unbuildable) as told:
        installed(Previous(version="0.0.9", commit="1" * 40), repository=tmp_path, kept=tmp_path / "kept")

    for word in ("0.0.9", "1" * 40, "git fetch --unshallow", "tests/upgrade/previous.toml"):
        assert word in str(told.value)


def test_a_file_that_names_no_commit_is_told_in_words(tmp_path: Path) -> None:
    file = tmp_path / "previous.toml"
    file.write_text('version = "0.0.9"\n')

    with pytest.raises(Unbuildable, match="commit"):
        named(file)


def test_the_commit_is_named_whole() -> None:
    assert re.fullmatch("[0-9a-f]{40}", named().commit)


@pytest.mark.slow
def test_what_runs_in_its_environment_is_the_commit_s_own_code() -> None:
    previous = named()
    python = installed(previous)

    assert said_by(python, "-m", "dovetail.cli.main", "--version") == previous.version
    package = Path(said_by(python, "-c", "import dovetail; print(dovetail.__file__)")).parent
    assert package.is_relative_to(python.parents[1])
    code = "import dovetail.workflows.scheduler as s, dovetail.worker.run as r; print(s.__file__, r.__file__)"
    assert all(Path(file).is_relative_to(package) for file in said_by(python, "-c", code).split())
    for folder in ("workflows", "activities", "worker"):
        found = git("ls-tree", "-r", "--name-only", previous.commit, folder).decode().split()
        listed = [name for name in found if name.endswith(".py")]
        assert listed
        assert {name: (package / name).read_bytes() for name in listed} == {
            name: git("show", f"{previous.commit}:{name}") for name in listed
        }


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout
