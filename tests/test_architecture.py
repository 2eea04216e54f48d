"""The shape of the project: import contracts hold, packages are this repository's, steps can cross into workflows.

A frozenset in a step's answer would iterate in another order in another process and break a replay; a step that is a
plain function would block its worker's heartbeats.
"""

import ast
import dataclasses
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grimp
import pytest

import dovetail
import dovetail.activities
from dovetail.answers.questions.table import QUESTIONS
from dovetail.settings.providers import PROVIDERS
from dovetail.workflows.options import launching, leaving, listening, planning, quick, waiting, watching
from tests import picture
from tests.picture import LINKED, ROOT

# What a history may hold beside dataclasses and tuples of these.
SCALARS = (str, int, float, bool, types.NoneType)


def step_methods() -> Iterator[tuple[str, Any]]:
    """Every activity of the product, by module and name."""
    folder = Path(dovetail.activities.__path__[0])
    for file in sorted(folder.rglob("*.py")):
        name = ".".join(("dovetail.activities", *file.relative_to(folder).with_suffix("").parts))
        module = importlib.import_module(name.removesuffix(".__init__"))
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if cls.__module__ != module.__name__:
                continue
            for method_name, method in inspect.getmembers(cls, inspect.isfunction):
                if hasattr(method, "__temporal_activity_definition"):
                    yield f"{cls.__name__}.{method_name}", method


def product_files() -> list[Path]:
    """Every module of the product; the linked folders by their own names."""
    return [file for folder in ("dovetail", *LINKED) for file in sorted((ROOT / folder).rglob("*.py"))]


STEPS = dict(step_methods())


def forbidden_in(kind: Any, path: str, seen: frozenset[Any] = frozenset()) -> list[str]:
    """The places in a type that cannot cross into a history."""
    if kind in SCALARS or kind in seen:
        return []
    origin = typing.get_origin(kind)
    if origin is typing.Literal:
        return []
    if origin in (tuple, typing.Union, types.UnionType):
        arguments = [a for a in typing.get_args(kind) if a is not Ellipsis]
        return [found for a in arguments for found in forbidden_in(a, path, seen)]
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        fields = [f.name for f in dataclasses.fields(kind)]
        return [found for f in fields for found in forbidden_in(hints[f], f"{path}.{f}", seen | {kind})]
    return [f"{path}: {kind}"]


def test_the_steps_are_found() -> None:
    assert len(STEPS) > 25 and "LaunchInstance.launch_instance" in STEPS


@pytest.mark.parametrize("step", STEPS)
def test_what_a_step_is_asked_and_answers_holds_only_tuples_scalars_and_dataclasses(step: str) -> None:
    """pydantic refuses mapping proxies, and a set's order differs between processes."""
    hints = typing.get_type_hints(STEPS[step])
    assert [found for name, kind in hints.items() for found in forbidden_in(kind, f"{step}({name})")] == []


@pytest.mark.parametrize("step", STEPS)
def test_every_step_is_async(step: str) -> None:
    """beating a plain function from the event loop blocks the worker for ten seconds."""
    assert inspect.iscoroutinefunction(STEPS[step])


@pytest.mark.parametrize("step", STEPS)
def test_a_step_takes_at_most_one_argument(step: str) -> None:
    """One dataclass can grow a field; a second argument breaks every history that has only one."""
    assert len(inspect.signature(STEPS[step]).parameters) <= 2  # self and what it is given


def test_no_two_steps_share_a_name() -> None:
    """Temporal knows a step by its name alone."""
    names = [name.partition(".")[2] for name in STEPS]
    assert sorted(names) == sorted(set(names))


def test_the_types_that_a_walk_must_refuse_are_refused() -> None:
    """The walk itself: it would be worth nothing if it let a set through."""

    @dataclasses.dataclass
    class Bad:
        inner: tuple[frozenset[str], ...]

    refused = [dict[str, int], set[str], frozenset[str], list[str], tuple[list[int], ...], Bad, Any]
    assert all(forbidden_in(kind, "x") for kind in refused)


def test_the_picture_of_the_rooms_is_drawn_from_the_contract() -> None:
    assert picture.PAGE.read_text() == picture.page(), "python -m tests.picture draws it"


# Where the parts of a worker are put together. What a part needs it gets at its construction: what is assigned
# afterwards can be forgotten, and neither the type checker nor the part would notice.
COMPOSING = ("worker/**/*.py", "dovetail/wiring/*.py", "dovetail/adapters/*/adapter.py")
ASSIGNED = {"worker.client": "Temporal's library exchanges the client of a worker that runs in this way"}


def assigned_from_outside(code: str) -> list[str]:
    """Attributes that the code assigns to an object other than its own."""
    stored = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    return [ast.unparse(node) for node in stored if isinstance(node.value, ast.Name) and node.value.id != "self"]


def own_fields(code: str) -> set[str]:
    """Attributes of the classes of the module itself, which may change what is theirs."""
    declared = [n.target for n in ast.walk(ast.parse(code)) if isinstance(n, ast.AnnAssign)]
    return {target.id for target in declared if isinstance(target, ast.Name)}


def test_what_is_put_together_gets_all_that_it_needs_at_its_construction() -> None:
    files = [file for pattern in COMPOSING for file in sorted(ROOT.glob(pattern))]
    found = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in files
        for name in assigned_from_outside(file.read_text())
        if name not in ASSIGNED and name.rpartition(".")[2] not in own_fields(file.read_text())
    }
    assert len(files) > 20 and found == set()
    assert assigned_from_outside("steps.places = places\nself.places = places") == ["steps.places"]


@pytest.mark.parametrize("folder", LINKED)
def test_a_folder_of_the_top_level_is_reached_as_part_of_the_one_installed_package(folder: str) -> None:
    module = importlib.import_module(f"dovetail.{folder}")
    assert [Path(place).resolve() for place in module.__path__] == [(ROOT / folder).resolve()]
    assert (ROOT / "dovetail" / folder).is_symlink()


def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--config", str(ROOT / "pyproject.toml")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


# One import a contract that it must break, by the module that gets it.
PLANTED = {
    "dovetail/placement/planted.py": "import time",
    "dovetail/placement/cost/searching/planted.py": "import dovetail.placement.cost.reading.compiled",
    "dovetail/model/planted.py": "import dovetail.placement.place_pods",
    "dovetail/telemetry/metrics/planted.py": "import dovetail.adapters.kubernetes_json.cache",
    "dovetail/notices/planted.py": "import dovetail.placement.search.solve",
    "worker/planted.py": "import dovetail.adapters.kube.client",
    "dovetail/adapters/simulator/planted.py": "import dovetail.adapters.kube.paging",
    "dovetail/adapters/kubernetes_json/planted.py": "import sqlite3",
    "dovetail/adapters/kube/planted.py": "import dovetail.activities.steps",
    "workflows/planted.py": "import uuid\nimport dovetail.placement.place_pods",
    "activities/planted.py": "\n".join(
        f"import {name}" for name in ("boto3", "kubernetes", "sqlite3", "opentelemetry", "pydantic", "cryptography")
    ),
    "dovetail/ports/planted.py": "import temporalio\nimport testbed.plane",
    "dovetail/api/planted.py": "import dovetail.model.pods",
    "worlds/planted.py": "import acceptance.traffic",
    "acceptance/planted.py": "import tests.conftest",
}


def test_every_import_contract_is_broken_by_what_it_forbids(tmp_path: Path) -> None:
    for name in ("dovetail", *LINKED, "acceptance", "docs", "testbed", "worlds", "research", "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "build")
            shutil.copytree(source, tmp_path / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, tmp_path / name)
    for file, planted in PLANTED.items():
        (tmp_path / file).write_text(planted + "\n")

    command = [str(Path(sys.executable).parent / "lint-imports"), "--config", "pyproject.toml", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    said = " ".join(done.stdout.split())
    assert [each["name"] for each in contracts if f"{each['name']} BROKEN" not in said] == []


@pytest.mark.parametrize(
    "planted",
    [
        "from datetime import UTC, datetime\n\nNOW = datetime.now(UTC)\n",
        "import datetime\n\nNOW = datetime.datetime.utcnow()\n",
        "from datetime import date\n\nTODAY = date.today()\n",
        'import activities.steps\n\n__all__ = ["activities"]\n',
    ],
)
@pytest.mark.parametrize("room", ["dovetail/disruption", "workflows"])
def test_a_look_at_the_clock_or_a_second_name_of_a_module_is_refused_by_lint(planted: str, room: str) -> None:
    command = [str(Path(sys.executable).parent / "ruff"), "check", "--stdin-filename", f"{room}/planted.py", "-"]
    done = subprocess.run(command, cwd=ROOT, input=planted, capture_output=True, text=True, check=False)
    assert "TID251" in done.stdout, done.stdout


# Started from outside: by `dovetail`, by `make crds`, and as the process that moves a simulated world.
ENTRY_POINTS = {"dovetail.cli.main", "dovetail.api.crds", "dovetail.adapters.simulator.play.__main__"}

# Loaded by the name that a setting gives.
NAMED = {"dovetail.codecs.aes_gcm"}


def test_every_module_is_imported_by_another() -> None:
    """A new method, command, upkeep task or cloud that is not put into its list does nothing; so does dead code.

    The modules of clouds and of questions are imported by the names that they have in their tables."""
    graph = grimp.build_graph("dovetail")
    alone = {name for name in graph.modules if not graph.find_modules_that_directly_import(name)}
    asked = {f"dovetail.answers.questions.{place.function.partition('.')[0]}" for place in QUESTIONS.values()}
    named = NAMED | asked | set(PROVIDERS.values())
    assert {name for name in alone if not graph.find_children(name)} == ENTRY_POINTS | named


@pytest.mark.parametrize("owner", sorted({step.partition(".")[0] for step in STEPS}))
def test_every_step_is_served_by_the_worker(owner: str) -> None:
    """A step that no worker registers would wait in its queue for ever."""
    assert re.search(rf"\b{owner}\(", (ROOT / "worker" / "steps.py").read_text())


def test_long_steps_beat_more_often_than_they_time_out() -> None:
    """A kill then costs the heartbeat timeout and a second, not the whole start-to-close: 11 s where something acts, 14
    where something is done while waiting, 31 at an instance's end, for which nothing can be done (decision 286), a
    minute where nothing is done."""
    acting, waits, idle = (quick, launching), (waiting, watching), (planning, listening)
    assert {options("c")["heartbeat_timeout"].total_seconds() for options in acting} == {10}
    assert {options("c")["heartbeat_timeout"].total_seconds() for options in waits} == {13}
    assert {options("c")["heartbeat_timeout"].total_seconds() for options in idle} == {60}
    assert leaving("c")["heartbeat_timeout"].total_seconds() == 14


@pytest.mark.parametrize("step", STEPS)
def test_a_step_has_no_defaults(step: str) -> None:
    """Temporal decodes by type only where as many arguments come as the step has; else it hands over plain dicts."""
    parameters = inspect.signature(STEPS[step]).parameters.values()
    assert [each.name for each in parameters if each.default is not inspect.Parameter.empty] == []


def test_nothing_waits_in_a_way_that_can_swallow_a_cancellation() -> None:
    """Where a result comes in the moment of a cancel, Python 3.11's asyncio.wait_for returns it and the cancel is lost:
    the task goes on for ever. asyncio.timeout does not do so."""
    files = product_files()
    assert len(files) > 400
    assert [str(file) for file in files if "asyncio.wait_for(" in file.read_text()] == []
