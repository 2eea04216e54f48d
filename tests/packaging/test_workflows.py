"""The workflows of .github cannot run here: actionlint reads them, and what they call is there."""

import re
import subprocess
import tomllib
from typing import Any

import pytest
import yaml

from deploy.release.version import ROOT
from testbed.plane import TestbedUnavailable
from testbed.plane.helm import find_actionlint
from tests.unavailable import no_control_plane

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs() -> dict[str, dict[str, Any]]:
    return {
        f"{file.stem}/{name}": job
        for file in WORKFLOWS
        for name, job in yaml.safe_load(file.read_text())["jobs"].items()
    }


def steps() -> list[dict[str, Any]]:
    return [step for job in jobs().values() for step in job["steps"]]


@pytest.mark.cluster
def test_actionlint_finds_nothing() -> None:
    try:
        program = find_actionlint(lambda _line: None)
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    # Neither of the programs that it would call for scripts, whichever ones this machine has.
    words = [str(program), "-no-color", "-shellcheck=", "-pyflakes=", *map(str, WORKFLOWS)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert WORKFLOWS


def test_what_a_step_calls_is_there() -> None:
    runs = "\n".join(step.get("run", "") for step in steps())
    modules = set(re.findall(r"-m (deploy\.[\w.]+)", runs))
    scripts = set(re.findall(r"(?:deploy/release|\.ci)/[\w./-]+", runs))
    targets = set(re.findall(r"\bmake (\w+)", runs))

    assert [name for name in modules if not (ROOT / f"{name.replace('.', '/')}.py").exists()] == []
    assert [name for name in scripts if not (ROOT / name).stat().st_mode & 0o100] == []
    assert [name for name in targets if f"\n{name}:" not in (ROOT / "Makefile").read_text()] == []
    assert modules and scripts and targets
    called = modules | {f"deploy.release.{name}" for name in ("trees", "site")}  # by the scripts
    ours = {f"deploy.release.{file.stem}" for file in (ROOT / "deploy" / "release").glob("[!_]*.py")}
    assert ours - called == set(), "a step that nobody calls"


def test_a_script_has_no_fault_that_the_shell_itself_finds() -> None:
    scripts = sorted((ROOT / "deploy" / "release").glob("*.sh"))
    assert [file.name for file in scripts if subprocess.run(["/bin/bash", "-n", file]).returncode] == []
    assert all("set -euo pipefail" in file.read_text() for file in scripts) and scripts


def test_a_job_ends_and_has_no_more_rights_than_it_names() -> None:
    assert [name for name, job in jobs().items() if "timeout-minutes" not in job] == []
    assert [
        file.name for file in WORKFLOWS if yaml.safe_load(file.read_text())["permissions"] != {"contents": "read"}
    ] == []
    used = [step["uses"] for step in steps() if "uses" in step]
    assert [each for each in used if not re.fullmatch(r"[\w/-]+@(v\d+|release/v\d+|[0-9a-f]{40})", each)] == []


def test_every_promised_python_is_tried_and_every_kubernetes_is_one_that_the_chart_takes() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    promised = [word for line in classifiers for word in re.findall(r"Python :: (3\.\d+)$", line)]
    assert jobs()["checks/fast"]["strategy"]["matrix"]["python"] == promised
    lowest = yaml.safe_load((ROOT / "deploy/charts/dovetail/Chart.yaml").read_text())["kubeVersion"]
    minors = [int(each.split(".")[1]) for each in jobs()["checks/kind"]["strategy"]["matrix"]["kubernetes"]]
    assert minors == list(range(minors[0], minors[-1] + 1)), "no gap"
    assert minors[0] >= int(lowest.removeprefix(">=1.").partition(".")[0])
