"""The gate of a NodeRollout compares each owner's pods on nodes at the target with those on the others."""

from dataclasses import replace
from typing import Any, Final

import pytest

from dovetail.activities.upkeep.time_rules import rollout_status
from dovetail.model import names
from dovetail.model.own.gates import GateResult
from dovetail.model.own.rollouts import NodesGate, RolloutState
from dovetail.model.own.stable_images import StableImages
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.rules.rollout.gates import nodes_gate
from dovetail.rules.rollout.moves import CONFIRMED
from tests.disruption.test_rollouts import a_rollout, a_status
from worlds.disruption import HOUR, NOW, OWNERS, a_pair, a_pod, a_pool, a_world, condition
from worlds.kept_rollouts import kept
from worlds.time_rules import with_rules

POOL: Final = replace(a_pool(consolidate_after=None), hash="2")
FAILING: Final = GateResult.FAILING
WEB: Final = OWNERS["ReplicaSet"]


def at_the_canary(*pods: Pod) -> Snapshot:
    pairs = [a_pair("old0", also=(names.DRIFTED,)), a_pair("old1", also=(names.DRIFTED,)), a_pair("new0")]
    return a_world([*pairs, a_pair("elsewhere", pool="b")], pods, [POOL, a_pool("b")])


def starting(node: str) -> Pod:
    return replace(a_pod(node), ready=False, started=NOW - 299)


def broken(node: str, **also: Any) -> Pod:
    return replace(a_pod(node), **{"ready": False, **also})


@pytest.mark.parametrize(
    ("pods", "verdict"),
    [
        ([], GateResult.PASSING),
        ([a_pod("old0"), a_pod("new0")], GateResult.PASSING),
        ([a_pod("old0"), broken("new0")], GateResult.FAILING),
        ([a_pod("old0"), broken("new0", ready=None)], GateResult.FAILING),
        ([a_pod("old0"), broken("new0", started=None)], GateResult.FAILING),  # the kubelet has never begun it
        ([a_pod("old0"), starting("new0")], GateResult.UNKNOWN),
        ([a_pod("old0"), broken("new0", started=NOW - 300)], GateResult.FAILING),
        ([a_pod("old0"), replace(starting("new0"), failing=True)], GateResult.FAILING),  # it crashes, or has no image
        ([replace(broken("old0"), failing=True), replace(starting("new0"), failing=True)], GateResult.PASSING),
        ([a_pod("old0"), a_pod("new0"), starting("new0")], GateResult.PASSING),  # one has shown that it can start
        ([broken("old0"), broken("old1"), broken("new0")], GateResult.PASSING),  # it breaks everywhere
        ([broken("old0"), starting("new0")], GateResult.PASSING),
        ([broken("old0"), a_pod("old1"), broken("new0")], GateResult.PASSING),  # and has begun to there
        ([broken("old0"), a_pod("old0"), a_pod("old1"), broken("new0")], GateResult.FAILING),
        ([broken("new0")], GateResult.PASSING),  # there is nothing to compare
        ([a_pod("elsewhere"), broken("new0")], GateResult.PASSING),
        ([a_pod("old0"), broken("new0", owners=(replace(WEB, kind="Job"),))], GateResult.PASSING),
        ([a_pod("old0"), broken("new0", owners=())], GateResult.PASSING),
        ([a_pod("old0"), broken("new0", phase="Failed")], GateResult.PASSING),
        ([a_pod("old0"), broken("new0", deleting_since=NOW)], GateResult.PASSING),
        (
            [a_pod("old0"), broken("new0", shape=replace(a_pod().shape, namespace="other"))],
            GateResult.PASSING,
        ),  # another owner's
    ],
)
def test_who_is_blamed(pods: list[Pod], verdict: GateResult) -> None:
    known = NodesGate(since=NOW - CONFIRMED, asked=NOW)

    assert nodes_gate(at_the_canary(*pods), POOL, known, NOW).result == verdict


def test_it_fails_once_pods_have_done_worse_for_a_minute_and_passes_when_they_do_not() -> None:
    world = at_the_canary(a_pod("old0"), broken("new0"))
    first = nodes_gate(world, POOL, NodesGate(result=GateResult.PASSING), NOW)
    assert (first.result, first.since) == (GateResult.UNKNOWN, NOW)
    assert nodes_gate(world, POOL, first, NOW + CONFIRMED - 1) == first

    last = nodes_gate(world, POOL, first, NOW + CONFIRMED)
    assert (last.result, last.since) == (GateResult.FAILING, NOW)
    assert last.message == (
        f"pods are not ready on nodes at the target and are on the others: ReplicaSet default/{WEB.name}"
    )
    well = nodes_gate(at_the_canary(a_pod("old0"), a_pod("new0")), POOL, last, NOW + CONFIRMED)
    assert well == NodesGate(result=GateResult.PASSING, asked=NOW + CONFIRMED)


@pytest.mark.parametrize(
    ("looks", "state"),
    [
        ((60, 900), RolloutState.JUDGING),  # a worker is back after a quarter of an hour: it was bad twice
        ((60, 900, 960, 1020), RolloutState.JUDGING),
        ((60, 900, 960, 1020, 1080), RolloutState.ROLLING_BACK),
        ((60, 120, 180, 240), RolloutState.ROLLING_BACK),
        ((60, 180, 240), RolloutState.ROLLING_BACK),  # a look may come late
    ],
)
def test_what_nobody_looked_at_while_all_workers_were_away_takes_nothing_back(
    looks: tuple[int, ...], state: RolloutState
) -> None:
    """DIQ-38. What failed before them holds all the while."""
    drifted = condition(names.DRIFTED, reason="ImageDrift")
    pairs = [a_pair(f"old{n}", also=(drifted,), claim={"image_id": "image-1"}) for n in range(8)]
    pairs.append(a_pair("new", claim={"created": NOW - 30, "image_id": "image-2"}))
    pods = [a_pod("old0"), broken("new", failing=True)]
    rollout = replace(a_rollout(a_status(stable=StableImages(since=NOW - 60))), rolls_back=True)
    for second in (0, *looks):
        world = with_rules(replace(a_world(pairs, pods, [POOL]), now=NOW + second), rollout)
        rollout = kept(replace(rollout, status=rollout_status(rollout, world, NOW + second)))
        assert second == 0 or (rollout.status.gate.result, rollout.goes_back or rollout.is_held) == (FAILING, True)

    assert rollout.status.state == state


def test_that_pods_do_worse_before_and_after_an_absence_blames_nothing_until_it_is_seen_for_a_minute() -> None:
    world = at_the_canary(a_pod("old0"), broken("new0"))
    first = nodes_gate(world, POOL, NodesGate(), NOW)

    back = nodes_gate(world, POOL, first, NOW + HOUR)
    assert (back.result, back.since) == (GateResult.UNKNOWN, NOW + HOUR)
    assert nodes_gate(world, POOL, back, NOW + HOUR + CONFIRMED).result == FAILING
    of_before = NodesGate(result=FAILING, since=NOW - HOUR, message="written by an earlier version")
    assert nodes_gate(world, POOL, of_before, NOW).result == FAILING
