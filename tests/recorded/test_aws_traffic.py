"""The product sends AWS what upstream sent, and writes to Kubernetes what upstream wrote, case by case.

Each case runs on a control plane of its own kind, with a worker and an AWS server over HTTP, and is judged by the
README of the recordings and by the named differences (acceptance/traffic/named_differences.yaml). A part is played
here; `make soak` plays all of them.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from acceptance.traffic.__main__ import LANES
from acceptance.traffic.cases import Case, holds_traffic, read_cases
from acceptance.traffic.named import read_named
from acceptance.traffic.run import Plan, Result, play_all
from testbed.plane import Binaries
from tests.recorded import TRAFFIC

pytestmark = pytest.mark.cluster

# At least one case of each file, those that are quick: each costs seven seconds of a core. What a test of the adapter
# shows as well is played by `make soak` alone. So is lifecycle/del-node: whether a node is launched for its pod, which
# nobody makes again, hangs on whether it is evicted within the second in which pods are gathered.
PART: Final = (
    "launches/basic",
    "images/bottlerocket",
    "class-fields/kubelet-all",
    "reservations/odcr-id-open",
    "failures/ice-type",
    "interruption/sqs-rebalance",
    "drift/drift-none",
    "lifecycle/del-slow",
    "settings/queue-missing",
)


def recorded() -> dict[str, Case]:
    """All cases, by file and id."""
    files = [file for folder in TRAFFIC for file in sorted(folder.glob("*.jsonl.gz")) if holds_traffic(file)]
    return {f"{case.file}/{case.id}": case for file in files for case in read_cases(file)}


def failed(results: list[Result]) -> dict[str, list[str]]:
    """What differed, by case."""
    return {f"{each.case.file}/{each.case.id}": each.lines() for each in results if not each.passed}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def played(
    testbed_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, Result]]:
    """The part, played side by side."""
    cases, folder = recorded(), tmp_path_factory.mktemp("traffic")
    plan = Plan(cases=[cases[name] for name in PART], named=read_named(), folder=folder, lanes=LANES, verbose=False)
    yield {f"{each.case.file}/{each.case.id}": each for each in await play_all(plan)}


@pytest.mark.parametrize("name", PART)
async def test_recorded_traffic_agrees(name: str, played: dict[str, Result]) -> None:
    assert failed([played[name]]) == {}


@pytest.mark.soak
async def test_all_recorded_traffic_agrees(testbed_binaries: Binaries, tmp_path: Path) -> None:
    cases = recorded()

    results = await play_all(Plan(cases=list(cases.values()), named=read_named(), folder=tmp_path, lanes=LANES))

    assert (len(results), failed(results)) == (len(cases), {})


def test_the_part_holds_a_case_of_every_file() -> None:
    cases = recorded()
    assert len(cases) == 147 and set(PART) <= set(cases)
    assert {name.partition("/")[0] for name in PART} == {case.file for case in cases.values()}
