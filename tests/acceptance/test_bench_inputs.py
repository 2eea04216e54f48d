"""`make bench`: inputs without new nodes, with nodes that stand, and with parts of upstream's figures."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from acceptance.bench.__main__ import nearness
from acceptance.bench.asked import AskedWrongly, cost_settings
from acceptance.bench.inputs.made import diverse, standing_nodes
from dovetail.model.values.json import Json
from dovetail.placement.settings import without_clock
from tests.recorded import BENCHMARKS


def _ran(folder: Path, document: Json, result: Json | None = None, **settings: str) -> tuple[int, Any, str]:
    """The exit code, the line, and what stood on standard error; the answer lies in `out`."""
    whole = {"input": document, "instanceTypesFile": "types.json.gz", **({"result": result} if result else {})}
    (folder / "it.json.gz").write_bytes(gzip.compress(orjson.dumps(whole)))
    (folder / "types.json.gz").write_bytes((BENCHMARKS / "instance_types_400.json.gz").read_bytes())
    (folder / "out").mkdir()
    command = [sys.executable, "-m", "acceptance.bench.one", "it", str(folder), str(folder / "out"), "1"]
    environment = {**os.environ, "POLICY": "cost", **settings}
    done = subprocess.run(command, capture_output=True, check=False, env=environment, text=True)
    return done.returncode, orjson.loads(done.stdout) if done.stdout else None, done.stderr


@pytest.mark.slow
def test_pods_that_nodes_that_stand_take_have_an_answer_and_no_figures_of_binding(tmp_path: Path) -> None:
    code, line, err = _ran(tmp_path, standing_nodes(20, 5), {"total_cheapest_cost": [0.0, 0.0]})

    assert code == 0, err
    assert (line["nodes"], line["refused"], line["over upstream"]) == (0, 0, None)
    assert "bound" not in line
    assert orjson.loads((tmp_path / "out" / "it.answer.json").read_bytes())["existing"]


@pytest.mark.slow
def test_a_bound_that_is_not_found_in_time_is_a_line_and_no_fault(tmp_path: Path) -> None:
    code, line, err = _ran(tmp_path, diverse(200), LEAST_SECONDS="0.001")

    assert code == 0, err
    assert line["no bound"] == "no bound was found in 0.004 s (Time limit reached)"
    assert line["refused"] == 0 and "least" not in line


@pytest.mark.soak
def test_what_was_recorded_of_upstream_is_compared_and_the_rest_left_out(tmp_path: Path) -> None:
    code, line, err = _ran(tmp_path, diverse(30), {"node_count": [3, 3]})

    assert code == 0, err
    assert line["upstream_nodes"] == [3, 3] and "upstream" not in line and line["bound"] > 0


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("POLICY", "cheap", "POLICY: cheap is neither default nor cost"),
        ("POLICY", "costs", "POLICY: costs is neither default nor cost"),
        ("COST_SECONDS", "soon", "COST_SECONDS: soon is no number"),
        ("COST_SECONDS", "-1", "COST_SECONDS: -1 is not between 0.001 and 3600"),
        ("COST_SPOT_CHANCE", "nan", "COST_SPOT_CHANCE: nan is not between 0.01 and 1"),
        ("COST_SPOT_CHANCE", "0", "COST_SPOT_CHANCE: 0 is not between 0.01 and 1"),
    ],
)
def test_what_cannot_be_read_is_named(variable: str, value: str, says: str) -> None:
    with pytest.raises(AskedWrongly) as found:
        cost_settings({variable: value}, without_clock)
    assert str(found.value) == says


def test_how_near_an_answer_is_to_a_bound_is_said_in_words() -> None:
    assert nearness({"input": "openb", "over least": 1.0412}) == "openb: within 4.1% of what is possible"
    assert nearness({"input": "openb", "no least": "nodes that stand"}) is None
    late = {"input": "openb", "no bound": "no bound was found in 120 s (Time limit reached)"}
    assert nearness(late) == "openb: no bound was found in 120 s (Time limit reached)"


@pytest.mark.slow
def test_it_is_named_once_before_anything_runs() -> None:
    command = [sys.executable, "-m", "acceptance.bench", str(BENCHMARKS)]
    asked = {**os.environ, "COST_SECONDS": "soon"}
    done = subprocess.run(command, capture_output=True, check=False, env=asked, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", "COST_SECONDS: soon is no number\n")
