"""The page of the soak is what its data say, each file has a row, and the command writes how a row ended."""

import json
import os
import re
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import pytest

from docs.tools.soak_page import HEAD, PAGE, RESULTS, ROWS, Result, Row, last_run, read_results, read_rows, rewritten

ROOT = Path(__file__).parents[1]
ROW = Row(section="All", target="tests/test_a.py", plays="a", held_to="b", folders=("product/deep", "Makefile"))


def test_the_page_is_what_the_data_say() -> None:
    page = (ROOT / PAGE).read_text()

    assert page == rewritten(page, read_rows(ROOT), read_results(ROOT)), "run `make reference`"


def test_each_row_is_in_a_table_of_the_page_and_each_result_is_a_row_s() -> None:
    targets = [row.target for row in read_rows(ROOT)]
    shown = re.findall(r"^\| `(tests/[^`]+)` \|", (ROOT / PAGE).read_text(), re.M)

    assert sorted(shown) == sorted(targets)
    assert len(targets) == len(set(targets))
    assert set(read_results(ROOT)) <= set(targets)


def test_every_file_of_the_soak_has_a_row_and_where_rows_are_tests_each_has_one() -> None:
    marked = re.compile(r"pytest\.mark\.soak\b")
    having = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "tests").rglob("test_*.py")
        if marked.search(file.read_text())
        and file.name not in {"test_soak.py", "test_run.py", "test_rules.py"}  # they speak of the mark
    }
    targets = [row.target for row in read_rows(ROOT)]
    single = {target for target in targets if "::" in target}
    files = {target.partition("::")[0] for target in single}

    assert {target.partition("::")[0] for target in targets} == having
    assert single == {
        f"{file}::{name}" for file in files for name in re.findall(r"def (test_\w+)\(", (ROOT / file).read_text())
    }


def test_what_stands_beside_a_row_is_there() -> None:
    gone = {folder for row in read_rows(ROOT) for folder in row.folders if not (ROOT / folder).exists()}

    assert not gone
    assert all(row.folders for row in read_rows(ROOT))


@pytest.mark.parametrize(
    ("path", "concerns"),
    [
        ("product/deep/thing.py", True),
        ("Makefile", True),
        ("tests/test_a.py", True),
        ("product/deeper.py", False),
        ("product/thing.py", False),
        ("tests/test_ab.py", False),
    ],
)
def test_a_change_asks_for_the_rows_beside_it(path: str, concerns: bool) -> None:
    assert ROW.concerns(path) == concerns


def test_a_row_says_how_it_ended_and_red_is_red() -> None:
    green = Result(commit="1234abcd", day="2026-02-03", seconds=1234, passed=3, skipped=1)
    red = Result(
        commit="1234abcd", day="2026-02-03", seconds=9, passed=2, red={"tests/test_a.py::test_it[x]": "2026-01-31"}
    )
    known = Row(section="", target="t", plays="", held_to="", folders=(), showed="all of it", day=date(2026, 1, 2))

    assert last_run(ROW, green) == "3 passed, 1 skipped in 1,234 s (2026-02-03, `1234abcd`)"
    assert last_run(ROW, red) == (
        "**red**: `test_it[x]` since 2026-01-31; 2 passed, 1 failed in 9 s (2026-02-03, `1234abcd`)"
    )
    assert (last_run(ROW, None), last_run(known, None)) == ("–", "not run since 2026-01-02")


SOAK = "import pytest\n\npytestmark = pytest.mark.soak\n"
GREEN = f"{SOAK}\n\ndef test_well():\n    pass\n"
# Two rows in one file; the second fails every time.
HALF = f"""{SOAK}

@pytest.mark.parametrize("number", [1, 2])
def test_first(number):
    pass


def test_second():
    assert False
"""
ONCE = f"""{SOAK}
from pathlib import Path


def test_once():
    noted = Path(__file__).with_suffix(".seen")
    if not noted.exists():
        noted.write_text("")
        raise AssertionError("the first time")
"""
CONFTEST = 'from hypothesis import settings\n\nsettings.register_profile("exploring", deadline=None)\n'
NO_ROWS = f"# The soak\n\n## All\n\n{HEAD[0]}\n\nThat is all.\n"


class Project:
    """A repository with four rows in three files, and the real command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in {"green": GREEN, "half": HALF, "once": ONCE}.items():
            self.write(f"tests/test_{name}.py", text)
        self.write("tests/conftest.py", CONFTEST)
        self.write("product/green/thing.py", "")
        self.write(".gitignore", "__pycache__/\n*.seen\n")
        targets = {
            "tests/test_green.py": "product/green",
            "tests/test_half.py::test_first": "product/half",
            "tests/test_half.py::test_second": "product/half",
            "tests/test_once.py": "product/once",
        }
        rows = [
            f'[[row]]\nsection = "All"\ntarget = "{target}"\nplays = "p"\nheld_to = "h"\nfolders = ["{beside}"]\n'
            for target, beside in targets.items()
        ]
        self.write(str(ROWS), "\n".join(rows))
        self.write(str(PAGE), NO_ROWS)
        self.git("init", "-q")
        self.commit()

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def git(self, *words: str) -> str:
        named = ("-c", "user.name=n", "-c", "user.email=e@example.com")
        return subprocess.run(
            ["git", *named, *words], cwd=self.folder, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "-q", "-m", "m")
        return self.git("rev-parse", "--short=8", "HEAD")

    def soak(self, *words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "tests.run", "soak", *words]
        # Not the tests folder of this project for `tests.run`: that is ours.
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
        environment.pop("DOVETAIL_TEST_NOTES", None)
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def results(self) -> dict[str, Result]:
        return read_results(self.folder)

    def page(self) -> str:
        return (self.folder / PAGE).read_text()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.slow
class TestTheCommand:
    def test_it_writes_each_row_of_a_file_at_once_with_commit_and_day(self, project: Project) -> None:
        commit = project.git("rev-parse", "--short=8", "HEAD")
        days = [time.strftime("%Y-%m-%d", time.gmtime())]
        code, said = project.soak("tests/test_green.py", "tests/test_half.py")
        days.append(time.strftime("%Y-%m-%d", time.gmtime()))

        assert code == 1, said
        results = project.results()
        today = results["tests/test_green.py"].day
        assert today in days
        assert {target: (each.passed, dict(each.red)) for target, each in results.items()} == {
            "tests/test_green.py": (1, {}),
            "tests/test_half.py::test_first": (2, {}),
            "tests/test_half.py::test_second": (0, {"tests/test_half.py::test_second": today}),
        }
        assert {(each.commit, each.day) for each in results.values()} == {(commit, today)}
        assert project.page() == rewritten(NO_ROWS, read_rows(project.folder), results)
        assert f"**red**: `tests/test_half.py::test_second` since {today}" in project.page()

    def test_a_row_stays_red_since_the_day_on_which_it_became_so(self, project: Project) -> None:
        name = "tests/test_half.py::test_second"
        before = {"commit": "0", "day": "2026-01-02", "seconds": 1, "passed": 0, "red": {name: "2026-01-01"}}
        project.write(str(RESULTS), json.dumps({name: before}))

        assert project.soak(name)[0] == 1
        assert project.results()[name].red == {name: "2026-01-01"}
        assert project.results()[name].day != "2026-01-02"

        project.write("tests/test_half.py", HALF.replace("assert False", "pass"))
        assert project.soak(name)[0] == 0
        assert (project.results()[name].red, project.results()[name].passed) == ({}, 1)
        assert project.results()[name].commit.endswith(" with changes")

    @pytest.mark.parametrize("known", [True, False])
    def test_what_passes_alone_is_green_only_from_a_known_cause(self, project: Project, known: bool) -> None:
        cause = "Its port is chosen by hand and is taken by the lane beside it now and then."
        row = f'[[test]]\nname = "tests/test_once.py::test_once"\nsince = 2026-01-31\ncause = "{cause}"\n'
        project.write("ledger.toml", row if known else "")

        code, said = project.soak("tests/test_once.py", "--ledger", "ledger.toml")

        assert code == (0 if known else 1), said
        result = project.results()["tests/test_once.py"]
        assert (result.passed, len(result.red)) == ((1, 0) if known else (0, 1))

    def test_it_plays_what_stands_beside_a_change_and_says_what_stands_beside_none(self, project: Project) -> None:
        base = project.git("rev-parse", "HEAD")
        assert "soak: 0 of 4 rows" in project.soak("--changed", base)[1]

        project.write("product/green/thing.py", "x = 1\n")
        project.commit()
        project.write("product/new.py", "")  # known to nobody yet
        code, said = project.soak("--changed", base)

        assert code == 0, said
        assert f"soak: 1 of 4 rows stand beside what has changed since {base}" in said
        assert "soak: beside no row: product/new.py" in said
        assert set(project.results()) == {"tests/test_green.py"}

    @pytest.mark.parametrize(
        ("words", "complaint"),
        [
            (("tests/test_green.py::test_well",), "tests/test_green.py::test_well: no row of docs/soak/rows.toml"),
            (("--changed", "nowhere"), "nowhere"),
            (("--changed",), "one commit is expected"),
        ],
    )
    def test_what_is_no_row_is_refused(self, project: Project, words: tuple[str, ...], complaint: str) -> None:
        code, said = project.soak(*words)

        assert (code, complaint in said) == (1, True), said
        assert not project.results()
