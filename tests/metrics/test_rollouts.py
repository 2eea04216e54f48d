"""How far roll-outs are, as Prometheus reads it."""

import pytest

from dovetail.model.gates import GateResult
from dovetail.model.nodes import Condition
from dovetail.model.rollouts import NodesGate, Rollout, RolloutState, RolloutStatus, RolloutStep
from dovetail.telemetry.metrics.exposition import measured
from dovetail.telemetry.metrics.rollouts import HELP, rollout_samples
from testing.disruption_worlds import a_pool, a_world
from testing.time_rules import with_rules

STALLED = Condition(type="Stalled", status="True", reason="GateFails", changed=0.0)


def lines(status: RolloutStatus) -> set[str]:
    world = with_rules(a_world(pools=[a_pool("a")]), Rollout(name="r", pool="a", status=status))
    return {line for line in measured(rollout_samples(world), HELP, "dovetail_") if not line.startswith("#")}


@pytest.mark.parametrize(
    ("result", "value"), [(GateResult.PASSING, "1"), (GateResult.UNKNOWN, "0"), (GateResult.FAILING, "-1")]
)
def test_one_that_is_under_way_says_where_it_is(result: GateResult, value: str) -> None:
    gate = NodesGate(result=result)
    status = RolloutStatus(state=RolloutState.AWAITING, total=9, at_target=2, leaving=1, gate=gate)

    assert lines(status) == {
        'dovetail_rollout_state{rollout="r",pool="a",state="Awaiting"} 1',
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
