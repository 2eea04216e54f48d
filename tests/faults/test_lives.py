"""Killed, repeated, failing, or robbed of its database: a life of nodes ends well.

One life per fault or few; every test asks one fact of each. Facts come from the cloud's rows, the ledger, the objects
and Temporal's own histories.
"""

import pytest

from tests.faults.catalogue import EVERYTHING, FEW, LIVES
from tests.faults.lives import Lived
from tests.next_steps import in_words, report

pytestmark = pytest.mark.temporal

# A kill costs 10 to 11 s until its steps are taken up (the heartbeat timeout), and on an idle machine the next step
# follows within 15. Several lives share two cores here, so the time is printed, and the bound only
# distinguishes beats from no beats: without them a step would be taken up after its start-to-close timeout, a minute at
# the least.
NEXT_STEP_SECONDS = 40.0

each_life = pytest.mark.parametrize(
    "lived", [*FEW, *[pytest.param(name, marks=pytest.mark.soak) for name in EVERYTHING]], indirect=True
)
struck_names = [name for name, life in LIVES.items() if life.kills]
each_struck_life = pytest.mark.parametrize(
    "lived",
    [name if name in FEW else pytest.param(name, marks=pytest.mark.soak) for name in struck_names],
    indirect=True,
)
kept = [name for name in struck_names if not LIVES[name].kills[0].lose_database]
each_life_that_keeps_its_database = pytest.mark.parametrize(
    "lived", [name if name in FEW else pytest.param(name, marks=pytest.mark.soak) for name in kept], indirect=True
)


@each_struck_life
async def test_every_ordered_kill_has_struck(lived: Lived) -> None:
    assert lived.unstruck == []


@each_life
async def test_exactly_one_instance_is_ever_launched_for_a_claim(lived: Lived) -> None:
    """DUR-1."""
    assert lived.launched and set(lived.launched.values()) == {1}


@each_life
async def test_no_claim_node_or_taint_is_left(lived: Lived) -> None:
    assert lived.left == {"claims": 0, "nodes": 0, "tainted": 0}


@each_life_that_keeps_its_database
async def test_the_next_step_follows_by_the_heartbeat_and_not_by_the_steps_own_timeout(
    lived: Lived, capsys: pytest.CaptureFixture[str]
) -> None:
    report(capsys, in_words(", ".join(lived.gaps), lived.gaps.values()))
    assert {name: gap for name, gap in lived.gaps.items() if gap > NEXT_STEP_SECONDS} == {}


@each_life_that_keeps_its_database
async def test_the_workflows_that_were_struck_complete_under_their_own_ids(lived: Lived) -> None:
    """`continue as new` as TerminateNode is the same id and counts as going on."""
    assert {w: e for w, e in lived.endings.items() if not e.endswith(" completed")} == {}


@each_life
async def test_every_history_of_the_life_replays(lived: Lived) -> None:
    assert lived.replayed > 0
