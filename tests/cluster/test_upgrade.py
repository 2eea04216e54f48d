"""A third of the drill on real servers: the previous version's workers and this one's take each other's place.

The whole is in tests/upgrade, on the simulated world; here in the soak alone.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import yaml

from testbed.up import RIGHTS, give_rights
from tests.upgrade.play import KEPT, NEW, OLD, Play, play, table
from tests.upgrade.real import OPERATOR, REAL_SCENES, RealFlight
from worlds.cluster.ground import Ground

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

OPERATORS = RIGHTS.with_name("operators.yaml")

PLAYS = (
    Play(way="rolling", legs=(OLD, KEPT, OLD)),
    Play(way="all at once", legs=(OLD, KEPT, OLD)),
    Play(way="killed", legs=(OLD, NEW)),
    Play(way="rolling", legs=(OLD, KEPT, NEW)),
    Play(way="versioned", legs=("A", "B")),
)


@pytest_asyncio.fixture(loop_scope="session")
async def fresh(ground: Ground) -> AsyncIterator[Ground]:
    """No worker, a Temporal that has never met one, and an operator who may do what either version's commands do: the
    previous version's look at the cluster as a worker does."""
    shipped = [*yaml.safe_load_all(RIGHTS.read_text()), *yaml.safe_load_all(OPERATORS.read_text())]
    roles = [each for each in shipped if each["kind"].endswith("Role")]
    await give_rights(ground.api, OPERATOR, roles)
    ground.kill_workers()
    ground.workers.clear()
    await ground.lose_database()
    yield ground
    ground.kill_workers()
    ground.workers.clear()


@pytest.mark.parametrize("asked", PLAYS, ids=lambda one: one.name)
async def test_on_real_servers_too_everything_that_was_in_flight_ends_well(
    fresh: Ground, asked: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    played = await play(RealFlight(fresh), asked)

    with capsys.disabled():
        print(f"\n{table([played], REAL_SCENES)}", flush=True)
    assert played.wrong == {}
    assert played.looked_at > 10
