"""How far roll-outs are, as Prometheus reads it."""

from dataclasses import replace

import pytest

from dovetail.model.nodes import Condition
from dovetail.model.own.gates import GateResult
from dovetail.model.own.rollouts import Intent, NodesGate, Rollout, RolloutState, RolloutStatus, RolloutStep
from dovetail.telemetry.metrics.exposition import measured
from dovetail.telemetry.metrics.ours import rollouts as meters
from dovetail.telemetry.metrics.ours.rollouts import HELP, rollout_samples
from tests.activities.test_time_rules import NOON, Refusing
from tests.metrics.test_lifecycle import Meter
from worlds.disruption import NOW, a_pair, a_pool, a_world
from worlds.time_rules import with_rules

STALLED = Condition(type="Stalled", status="True", reason="GateFails", changed=0.0)


def lines(status: RolloutStatus) -> set[str]:
    world = with_rules(a_world(pools=[a_pool("a")]), Rollout(name="r", pool="a", status=status))
    return {line for line in measured(rollout_samples(world), HELP, "dovetail_") if not line.startswith("#")}


@pytest.mark.parametrize(
    ("result", "value"), [(GateResult.PASSING, "1"), (GateResult.UNKNOWN, "0"), (GateResult.FAILING, "-1")]
)
def test_one_that_is_under_way_says_where_it_is(result: GateResult, value: str) -> None:
    gate = NodesGate(result=result)
    status = RolloutStatus(state=RolloutState.AWAITING, total=9, at_target=2, leaving=1, gate=gate, since=NOW - 90)

    assert lines(status) == {
        'dovetail_rollout_state{rollout="r",pool="a",state="Awaiting"} 1',
        'dovetail_rollout_state_seconds{rollout="r",pool="a",state="Awaiting"} 90',
        f'dovetail_rollout_gate{{rollout="r",pool="a",gate="nodes"}} {value}',
        'dovetail_rollout_nodes{rollout="r",pool="a",state="target"} 2',
        'dovetail_rollout_nodes{rollout="r",pool="a",state="leaving"} 1',
        'dovetail_rollout_nodes{rollout="r",pool="a",state="old"} 6',
    }


def test_one_that_waits_for_a_person_says_why_and_one_that_is_complete_nothing() -> None:
    assert lines(RolloutStatus(conditions=(STALLED,))) == {
        'dovetail_rollout_stalled{rollout="r",pool="a",reason="GateFails"} 1'
    }
    assert lines(RolloutStatus(state=RolloutState.COMPLETE, total=9, at_target=9)) == set()


def test_its_step_is_counted_from_one_and_a_refused_target_is_shown() -> None:
    steps = (RolloutStep(name="canary", to="1"), RolloutStep(name="rest", to="100%"))
    status = RolloutStatus(step="rest", state=RolloutState.ROLLING_BACK, total=9, at_target=2)
    world = with_rules(a_world(pools=[a_pool("a")]), Rollout(name="r", pool="a", steps=steps, status=status))
    found = {line for line in measured(rollout_samples(world), HELP, "dovetail_") if not line.startswith("#")}

    assert 'dovetail_rollout_step{rollout="r",pool="a"} 2' in found
    assert 'dovetail_rollout_state{rollout="r",pool="a",state="RollingBack"} 1' in found


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Meter:
    made = Meter()
    monkeypatch.setattr(meters, "INSTRUMENTS", meters.INSTRUMENTS.on(made.provider.get_meter("test")))
    return made


def counted(ends: Meter) -> dict[object, float]:
    assert all((name, of["pool"]) == ("dovetail_rollouts_total", "default") for name, _, of in ends.kept)
    return {of["result"]: value for _, value, of in ends.kept}


async def test_each_end_of_a_change_counts_once_and_what_goes_on_not_at_all(ends: Meter) -> None:
    play = Refusing()
    for _ in range(2):
        await play.look()
    assert counted(ends) == {}

    play.now += 60
    play.made.makes = "x/image-3"
    await play.look()
    assert counted(ends) == {"Superseded": 1}, "its NodeClass has changed on the way"

    play.rollout = replace(play.rollout, intent=Intent.ROLL_BACK, generation=1)
    new = replace(a_pair("new", pool="default").claim, created=NOON + 1)
    play.claims[new.name] = new
    assert (await play.look()).state == RolloutState.ROLLING_BACK
    assert counted(ends) == {"Superseded": 1}, "it is still going back"
    del play.claims[new.name]
    for _ in range(2):
        assert (await play.look()).state == RolloutState.FAILED
    assert counted(ends) == {"Superseded": 1, "Failed": 1}

    play.rollout = replace(play.rollout, intent=Intent.PROMOTE, generation=2)
    await play.look()
    assert counted(ends) == {"Superseded": 1, "Failed": 1}, "what had failed is tried anew"
    play.claims = {}  # nobody needs its nodes any more
    for _ in range(4):
        play.now += 1200
        await play.look()
    assert play.rollout.status.state == RolloutState.COMPLETE
    assert counted(ends) == {"Superseded": 1, "Failed": 1, "Complete": 1}


async def test_an_end_that_could_not_be_written_does_not_count(ends: Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Refusing()
    await play.look()
    play.now += 60
    play.made.makes = "x/image-3"

    async def deleted(*_: object) -> None:
        """The object is gone."""

    monkeypatch.setattr(play.written, "patch_rollout", deleted)
    await play.look()
    assert counted(ends) == {}
