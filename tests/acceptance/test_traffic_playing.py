"""A case is played as it says: its pods, its settings, its steps."""

import gzip
import json
from pathlib import Path
from typing import cast

import pytest

from acceptance.traffic.cases import holds_traffic, read_cases
from acceptance.traffic.lane import Lane
from acceptance.traffic.playing import ALONE_SECONDS, play, wait_of
from acceptance.traffic.steps import Steps, UnknownStep, pods_of
from acceptance.traffic.worker import PlayedWorker, environment
from dovetail.model.values.json import Json
from testbed.cloud.server import CloudServer
from testbed.plane import ApiClient

LINE: Json = {"id": "a", "input": {"nodeClasses": []}, "expected": {"calls": [{"phase": "class", "seconds": 2}]}}


def _file(folder: Path, *lines: Json) -> Path:
    file = folder / "launches.jsonl.gz"
    with gzip.open(file, "wt") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    return file


def _lane(folder: Path) -> Lane:
    cloud = CloudServer(folder=folder, endpoint="http://127.0.0.1:1", pids={})
    return Lane(folder=folder, kubeconfig=folder / "config", api=cast(ApiClient, None), cloud=cloud)


def test_a_file_of_traffic_is_known_by_what_it_holds(tmp_path: Path) -> None:
    assert holds_traffic(_file(tmp_path, LINE))
    assert not holds_traffic(_file(tmp_path, {"id": "a", "input": {"pods": []}, "expected": {}}))
    assert not holds_traffic(_file(tmp_path, {"id": "a", "input": [1], "expected": {"calls": []}}))


def test_a_case_says_how_long_its_phases_were(tmp_path: Path) -> None:
    (case,) = read_cases(_file(tmp_path, LINE))

    assert (case.id, case.file, case.starts, case.seconds("class"), case.seconds("launch")) == (
        "a",
        "launches",
        True,
        2,
        0,
    )


def test_settings_are_the_usual_ones_changed_as_the_case_says(tmp_path: Path) -> None:
    declared = {"INTERRUPTION_QUEUE": "~", "ISOLATED_VPC": True, "RESERVED_ENIS": 1}

    found = environment(_lane(tmp_path), "127.0.0.1:2", declared)

    assert "INTERRUPTION_QUEUE" not in found
    assert (found["ISOLATED_VPC"], found["RESERVED_ENIS"], found["CLUSTER_NAME"]) == ("true", "1", "dovetail")
    assert (found["AWS_ENDPOINT_URL"], found["TEMPORAL_ADDRESS"]) == ("http://127.0.0.1:1", "127.0.0.1:2")


def test_pods_of_a_step_are_numbered_and_ask_for_one_cpu() -> None:
    first, second = pods_of({"name": "again", "count": 2, "nodeSelector": {"a": "b"}})

    assert [first["metadata"]["name"], second["metadata"]["name"]] == ["again-0", "again-1"]
    assert first["spec"]["nodeSelector"] == {"a": "b"}
    assert first["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


async def test_a_step_that_nothing_knows_is_an_error_and_not_passed_over(tmp_path: Path) -> None:
    steps = Steps(_lane(tmp_path), PlayedWorker({}, tmp_path / "log"))

    with pytest.raises(UnknownStep, match="explode"):
        await steps.do({"explode": 1, "wait": 3})


async def test_a_case_that_gives_what_nothing_reads_is_not_played(tmp_path: Path) -> None:
    (case,) = read_cases(_file(tmp_path, {**LINE, "input": {"nodeClasses": [], "clock": 3}}))

    with pytest.raises(ValueError, match="clock"):
        await play(case, _lane(tmp_path), tmp_path / "case")


def test_a_step_with_a_lonely_instance_lasts_until_it_may_be_ended() -> None:
    """Decision record 75."""
    assert wait_of({"addInstance": {}, "wait": 26}) == ALONE_SECONDS
    assert (wait_of({"restart": 1, "wait": 10}), wait_of({"sqs": "x"})) == (10.0, 0.0)
