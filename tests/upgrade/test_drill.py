"""The drill: while everything is in flight, the workers of one version take the place of another's, and back again.

Each play is a column of the table that is printed at the end; a row is a phase. What holds afterwards: one instance for
a claim, nothing tainted or left, no workflow task that failed, the pause kept, every history replays on this code.
"""

import pytest

from tests.upgrade.play import Played
from tests.upgrade.plays import FEW, MANY

pytestmark = [pytest.mark.temporal, pytest.mark.slow]

each_play = pytest.mark.parametrize(
    "played",
    [*[play.name for play in FEW], *[pytest.param(play.name, marks=pytest.mark.soak) for play in MANY]],
    indirect=True,
)


@each_play
async def test_whoever_works_everything_that_was_in_flight_ends_well(played: Played) -> None:
    assert played.wrong == {}
    assert played.looked_at > 20
