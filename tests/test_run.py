"""What tests/run.py and the ledger call green: runs of the real command on small files of tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ledger import LedgerError, read_ledger
from tests.run import LANES, REAL
from tests.taking import FIRST, TAKEN, TOGETHER, WAITING, group_of
from tests.unavailable import CLUSTER_TESTS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
CAUSE = "Its port is chosen by hand and is taken by the lane beside it now and then."
# Fails the first time, passes the second.
ONCE = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("name", ["a", "b"])
def test_once(name):
    noted = Path(__file__).with_name(name)
    if not noted.exists():
        noted.write_text("")
        raise AssertionError("the first time")
"""
EVERY_TIME = "def test_every_time():\n    assert False\n"


def run(folder: Path, tests: str, *listed: str) -> tuple[int, str]:
    """The exit code and the words of a run of these tests, with a ledger that names these."""
    (folder / "test_it.py").write_text(tests)
    rows = [f'[[test]]\nname = "{name}"\nsince = 2026-01-31\ncause = "{CAUSE}"\n' for name in listed]
    (folder / "ledger.toml").write_text("".join(rows))
    command = [sys.executable, "-m", "tests.run", "--ledger", "ledger.toml", "test_it.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("DOVETAIL_TEST_NOTES", None)  # this run is no lane of the one that runs this test
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_a_failure_that_passes_alone_stays_red(tmp_path: Path) -> None:
    code, said = run(tmp_path, ONCE)

    assert code == 1
    assert "the second run passed: test_it.py::test_once[a], test_it.py::test_once[b]" in said
    assert "passed alone, and stays red: test_it.py::test_once[a]: no cause stands in tests/passes_alone.toml" in said


def test_one_whose_cause_is_known_is_green_and_the_cause_is_printed(tmp_path: Path) -> None:
    code, said = run(tmp_path, ONCE, "test_it.py::test_once")

    assert code == 0
    assert f"passed alone, known since 2026-01-31: test_it.py::test_once: {CAUSE}" in said


def test_a_known_one_does_not_excuse_another(tmp_path: Path) -> None:
    code, said = run(tmp_path, ONCE, "test_it.py::test_once[a]")

    assert code == 1
    assert "stays red: test_it.py::test_once[b]" in said
    assert "stays red: test_it.py::test_once[a]" not in said


def test_one_that_fails_twice_is_red_whatever_the_ledger_says(tmp_path: Path) -> None:
    code, said = run(tmp_path, EVERY_TIME, "test_it.py::test_every_time")

    assert code == 1
    assert "the second run failed" in said


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ('name = "a::b"\nsince = 2026-01-31\ncause = "flaky under load"', "(a::b): cause"),
        ('name = "a::b"\nsince = 2026-01-31', "name, since and cause"),
        ('name = "a.py"\nsince = 2026-01-31\ncause = "x"', "name: the id of a test"),
        ('name = "a::b"\nsince = "long ago"\ncause = "x"', "since: a date"),
        ("name = ", "Invalid value"),
    ],
)
def test_an_entry_that_says_too_little_is_refused(tmp_path: Path, entry: str, complaint: str) -> None:
    (tmp_path / "ledger.toml").write_text(f"[[test]]\n{entry}\n")

    with pytest.raises(LedgerError, match=re.escape(complaint)):
        read_ledger(tmp_path / "ledger.toml")


def test_every_test_in_the_ledger_exists() -> None:
    for entry in read_ledger():
        file, _, function = entry.name.partition("[")[0].partition("::")
        assert re.search(rf"^async def {function}\(|^def {function}\(", (ROOT / file).read_text(), re.M), entry.name


SERVER = """
import pytest

@pytest.fixture(scope="session")
def server():
    yield print("\\nstarted")
    print("\\nstopped")
"""
SHARED = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_it(server, number):
    print(f"\\nran {__file__.rpartition('/')[2]} {number}")
"""


def test_lanes_that_share_run_every_test_once_and_each_starts_its_servers_once(tmp_path: Path) -> None:
    files = [f"test_{number}.py" for number in range(6)]
    (tmp_path / "conftest.py").write_text(SERVER)
    for file in files:
        (tmp_path / file).write_text(SHARED)
    (tmp_path / "notes").mkdir()
    command = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "tests.taking", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), TAKEN: str(tmp_path / "notes")}
    lanes = [
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    said = [lane.communicate(timeout=120)[0] for lane in lanes]

    assert [lane.returncode for lane in lanes] == [0] * 3
    assert sorted(re.findall(r"^ran .*$", "".join(said), re.M)) == [f"ran {f} {n}" for f in files for n in range(3)]
    assert all(text.count("started") == text.count("stopped") <= 1 for text in said)


# Each file has tests that need real servers and tests that do not, as some folders have.
HALF_REAL = """
import pytest

@pytest.mark.parametrize("kind", ["plain", pytest.param("real", marks=pytest.mark.cluster)])
def test_it(kind):
    print(f"\\nran {__file__.rpartition('/')[2]} {kind}")
"""


@pytest.mark.parametrize("both_first", [True, False])
def test_lanes_on_real_servers_go_on_with_what_is_left_of_the_others(tmp_path: Path, both_first: bool) -> None:
    files = [f"test_{number}.py" for number in range(6)]
    for file in files:
        (tmp_path / file).write_text(HALF_REAL)
    (tmp_path / "notes").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), TAKEN: str(tmp_path / "notes")}

    def lane(*words: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "tests.taking", "-p", "no:cacheprovider", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return re.findall(r"^ran (.*)$", done.stdout, re.M)

    orders: list[tuple[str, ...]] = [(*files,), ("-m", "not cluster", *files)]
    first, second = (lane(*words) for words in (orders if both_first else reversed(orders)))

    assert sorted([*first, *second]) == sorted(f"{file} {kind}" for file in files for kind in ("plain", "real"))
    assert second == ([] if both_first else [f"{file} real" for file in files])
    assert not both_first or first[: len(files)] == [f"{file} real" for file in files]


def test_lanes_that_wait_take_by_turns_and_those_with_real_servers_read_what_the_others_read() -> None:
    real, others, reckoning = LANES["test"]

    assert real.among == others.among != reckoning.among
    assert {*REAL, *WAITING} <= {*real.words} and {*WAITING} <= {*others.words}


def test_what_is_taken_first_is_there() -> None:
    assert all((ROOT / group).exists() for group in (*FIRST, *TOGETHER, *WAITING))
    assert all(
        group_of(f"{group}test_x.py::test" if group in TOGETHER else f"{group}::test") == group for group in FIRST
    )


CLUSTER_FIXTURES = (
    "tests/cluster/test_plane.py",
    "tests/cluster/test_days.py",
    "tests/ports/test_nodes.py",
    "tests/testbed/test_cloud_kubelets.py",
)


@pytest.mark.parametrize(("required", "code"), [("", 0), ("required", 1)], ids=["elsewhere", "in-ci"])
def test_without_a_control_plane_cluster_tests_are_skipped_but_fail_in_ci(
    tmp_path: Path, required: str, code: int
) -> None:
    environment = {**os.environ, "DOVETAIL_TESTBED_BINARIES": str(tmp_path), CLUSTER_TESTS: required}
    command = [sys.executable, "-m", "pytest", "-m", "cluster", "-rs", *CLUSTER_FIXTURES]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == code, done.stdout
    assert " passed" not in done.stdout
    assert (" skipped" in done.stdout) != bool(required)


def test_a_run_in_lanes_ends_with_what_was_skipped_and_why(tmp_path: Path) -> None:
    """Of every lane; one list for a reason."""
    skipping = "import pytest\n\ndef test_page():\n    pytest.skip('no browser: none is installed')\n"
    (tmp_path / "test_a.py").write_text(skipping)
    (tmp_path / "test_b.py").write_text(f"{skipping}\ndef test_plain():\n    pass\n")
    shares = "(run.Share(('test_a.py',)), run.Share(('test_b.py',)))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("DOVETAIL_TEST_NOTES", None)
    command = [
        sys.executable,
        "-c",
        f"import sys; from tests import run; run.LANES['two'] = {shares}; run.main()",
        "two",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == (
        "skipped: no browser: none is installed: test_a.py::test_page, test_b.py::test_page"
    )


def test_nothing_else_is_skipped() -> None:
    """A skip of its own would not know what CI requires."""
    skips = re.compile(r"pytest\.(skip|importorskip)\(|mark\.skip")
    found = {str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("*.py") if skips.search(file.read_text())}

    assert found <= {"tests/unavailable.py", "tests/test_run.py", "tests/test_rules.py"}


def test_ci_requires_the_cluster_tests() -> None:
    assert f"export {CLUSTER_TESTS}=required\n" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize(("mark", "read"), [("cluster", REAL), ("temporal", WAITING)])
def test_lanes_read_every_folder_with_tests_that_wait(mark: str, read: tuple[str, ...]) -> None:
    marked = re.compile(rf"mark\.{mark}\b")
    files = [file.relative_to(ROOT) for file in (ROOT / "tests").rglob("*.py") if marked.search(file.read_text())]
    folders = {str(Path(*file.parts[:2])) for file in files if file != Path("tests/test_run.py")}

    assert folders and folders <= {folder.rstrip("/") for folder in read}


def test_the_page_says_which_folders_each_lane_takes() -> None:
    page = (ROOT / "docs" / "tests.md").read_text()
    rows = [line.rpartition(" | ")[2] for line in page.splitlines() if line.startswith("| two ")]

    named = [{f"tests/{name}/" for name in re.findall(r"`(\w+)`", row)} for row in rows]

    assert named == [{*REAL}, {*WAITING}, set()]


def test_the_page_of_promises_names_every_scene_that_is_played() -> None:
    scenes = re.compile(r"^@scene\nasync def (test_\w+)", re.M)
    files = (ROOT / "tests" / "cluster").glob("test_flagships_*.py")
    played = {f"{file.name}::{name}" for file in files for name in scenes.findall(file.read_text())}
    page = (ROOT / "docs" / "flagships.md").read_text()

    assert played == set(re.findall(r"\| `(test_flagships_\w+\.py::\w+)` \|", page))
