"""Clusters that Karpenter left in mid-flight come out right: eight of the recorded states.

Whether the four outcomes of the recording's README hold is judged in acceptance/adopt, on objects and ledger. The eight
are taken over side by side, as the command does it; `make adopt` runs every state of a file.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from acceptance.adopt.__main__ import run
from acceptance.adopt.states import State, moment_of, moved_to, read_states
from acceptance.adopt.takeover import Result, take_over
from acceptance.adopt.variants import VARIANTS, variant
from dovetail.cli.demo.temporal_server import TemporalServer
from tests.recorded import MID_FLIGHT

RECORDED = Path(os.environ.get("ADOPT_STATES", MID_FLIGHT))

# Of the phases: launched but not written down, half-launched, marked, with a replacement under way, draining, drained,
# instance ending. The others, and all states besides, are in the soak.
CHOSEN = (  # those that last longest first
    "drift-21",
    "consolidate-20",
    "delete-claim-13",
    "drain-12",
    "expire-16",
    "launch-04",
    "launch-05",
    "launch-08",
)

AT_ONCE = 6  # a start costs two seconds of cpu, and pools whose nodes live for 30 s need some to spare

pytestmark = pytest.mark.temporal


def recorded() -> dict[str, State]:
    return {state.id: state for state in read_states(RECORDED)}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def results(
    temporal_server: TemporalServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, Result]]:
    """The eight, some side by side: each spends most of its time waiting."""
    states, folder, slots = recorded(), tmp_path_factory.mktemp("adopt"), asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> Result:
        async with slots:
            return await take_over(states[name], temporal_server, folder / name)

    done = await asyncio.gather(*[one(name) for name in CHOSEN])
    yield {result.id: result for result in done}


@pytest.mark.parametrize("name", CHOSEN)
def test_a_cluster_left_in_mid_flight_comes_out_right(name: str, results: dict[str, Result]) -> None:
    """DIS-12, DIS-197, DUR-30 and the README's four outcomes."""
    assert results[name].problems == ()


def test_a_state_that_is_moved_keeps_its_distances() -> None:
    """A deadline that lay 10 s ahead when the state was recorded lies 10 s ahead when it is loaded."""
    state = recorded()["expire-10"]
    now = moment_of(state) + 86_400.5

    moved = moved_to(state, now)

    assert moment_of(moved) == moment_of(state) + 86_400
    assert [i["launch"] - 86_400 for i in moved.instances] == [float(i["launch"]) for i in state.instances]
    key = "karpenter.sh/nodeclaim-termination-timestamp"
    before, after = ([c["metadata"]["annotations"].get(key, "") for c in s.every("NodeClaim")] for s in (state, moved))
    # The recorder's own day lies between the two, to the second.
    assert [a[11:] for a in after] == [b[11:] for b in before]
    assert before != after


@pytest.mark.soak
async def test_every_recorded_state_comes_out_right(tmp_path: Path) -> None:
    """All of them, as `make adopt` does it."""
    results = await run(read_states(RECORDED), tmp_path, AT_ONCE)

    assert {result.id: result.problems for result in results if result.problems} == {}
    assert len(results) == len(recorded())


@pytest.mark.soak
async def test_states_that_no_recording_holds_come_out_right_too(tmp_path: Path) -> None:
    """One request more or less: half a mark, one of two objects deleted, no finalizer yet (DUR-2 to DUR-16)."""
    made = [variant(name, recorded()) for name in VARIANTS]

    results = await run(made, tmp_path, AT_ONCE)

    assert {result.id: result.problems for result in results if result.problems} == {}
    assert len(results) == len(VARIANTS)


def test_every_variant_differs_from_what_was_recorded() -> None:
    states = recorded()

    for name, (base, _) in VARIANTS.items():
        made = variant(name, states)
        assert (made.objects, made.instances) != (states[base].objects, states[base].instances), name
