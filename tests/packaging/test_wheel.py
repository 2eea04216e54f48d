"""The wheel installs one name, and works beside distributions whose packages are named like our folders."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from deploy.release.packages import build
from dovetail.answers.serving.page_files import FOLDER

NEIGHBOURS = Path(__file__).with_name("neighbours.lock")
BARE_NAMES = ("core", "api", "cli", "ports", "worker", "activities", "model", "placement")

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a release makes it."""
    _, found = build(tmp_path_factory.mktemp("wheel"))
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter of its own with the wheel and its neighbours; what they all depend on is the developers'."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False)
    found = folder / "bin" / "python"
    into = Path(run(found, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).stdout.strip())
    # A line of a .pth file adds a folder, but not that folder's own .pth files: our editable install stays outside.
    (into / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", into)
    done = run(*pip, wheel, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    done = run(*pip, "--require-hashes", "-r", NEIGHBOURS, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return found


def test_the_wheel_holds_one_name(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"dovetail"}
    needed = {
        "dovetail/py.typed",
        "dovetail/workflows/scheduler.py",
        "dovetail/worker/run.py",
        "dovetail/adapters/aws/instance_types/facts.json",
        *(f"dovetail/answers/serving/page/{file.name}" for file in FOLDER.iterdir()),
    }
    assert needed - set(names) == set()


def test_ours_works_beside_its_neighbours(python: Path, tmp_path: Path) -> None:
    code = "import dovetail.workflows.scheduler, dovetail.adapters.aws.adapter as a; print(a.__file__)"
    done = run(python, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert Path(done.stdout.strip()).is_relative_to(python.parents[1])

    done = run(python, "-m", "dovetail.cli.main", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout.count(".")) == (0, 2), (done.stdout, done.stderr)


@pytest.mark.soak
def test_the_demo_plays_from_the_wheel_with_the_server_of_its_extra(python: Path, tmp_path: Path) -> None:
    done = run(python, "-m", "dovetail.cli.main", "demo", "--help", cwd=tmp_path)
    assert (done.returncode, "--keep" in done.stdout) == (0, True), done.stderr[-2000:]

    (python.parent / "temporal").symlink_to(Path(sys.executable).parent / "temporal")
    done = run(python, "-m", "dovetail.cli.main", "demo", cwd=tmp_path)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    assert "SCENE 1." in done.stdout


def test_the_neighbours_keep_their_own_files(python: Path, tmp_path: Path) -> None:
    done = run(python, "-c", "import workflows; print(workflows.version())", cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "3.3"), done.stderr[-2000:]

    # Importing `adapters` needs a machine-learning framework; what it would import is enough.
    code = "import importlib.util as u; print(open(u.find_spec('adapters').origin).read())"
    done = run(python, "-c", code, cwd=tmp_path)
    assert (done.returncode, "MultiTaskConfig" in done.stdout) == (0, True), done.stderr[-2000:]


@pytest.mark.parametrize("name", BARE_NAMES)
def test_no_bare_name_of_ours_is_installed(name: str, python: Path, tmp_path: Path) -> None:
    done = run(python, "-c", f"import {name}", cwd=tmp_path)
    assert (done.returncode, "ModuleNotFoundError" in done.stderr) == (1, True)
