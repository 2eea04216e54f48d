"""A roll-out's order, its longest time, and its story."""

from dataclasses import replace
from typing import Final

import pytest

from dovetail.disruption.choose import choose
from dovetail.disruption.rounds import never
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.own.rollout_approvals import Approval
from dovetail.model.own.rollouts import Intent, Order, Passage, PoolNodes, Rollout, RolloutState, RolloutStatus
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.rollout.conditions import conditions_of
from dovetail.rules.rollout.history import MOST
from dovetail.rules.rollout.moves import looks_again, next_move
from dovetail.rules.said import Cause
from tests.disruption.test_rollouts import FAILS, KNOWN, PASSES, POOL, SETTINGS, a_rollout, a_status, begun, rolling_out
from worlds.disruption import HOUR, NOW, a_pair, a_pod, a_pool, a_world
from worlds.time_rules import with_rules

# (zone, hours) of the nodes, by name
NODES: Final = {"n0": ("z2", 5), "n1": ("z1", 3), "n2": ("z1", 9), "n3": ("z2", 7), "n4": ("z1", 1)}


def taken(world: Snapshot) -> list[str]:
    choice = choose(world, SETTINGS, never)
    assert isinstance(choice, DisruptionPlan)
    return [target.node for command in choice.commands for target in command.targets]


@pytest.mark.parametrize(
    ("rules", "order"),
    [
        ((a_rollout(a_status("rest")),), ["n2", "n3", "n0", "n1", "n4"]),
        ((replace(a_rollout(a_status("rest")), order=Order.ZONE),), ["n2", "n1", "n4", "n3", "n0"]),
        ((), ["n0", "n1", "n2", "n3", "n4"]),  # all have drifted at once: by name, as ever
        ((replace(a_rollout(a_status("rest")), pool="another", order=Order.ZONE),), ["n0", "n1", "n2", "n3", "n4"]),
    ],
)
def test_the_oldest_go_first_or_one_zone_after_another(rules: tuple[Rollout, ...], order: list[str]) -> None:
    pairs = [
        a_pair(name, zone=zone, also=(names.DRIFTED,), claim={"created": NOW - hours * HOUR})
        for name, (zone, hours) in NODES.items()
    ]
    world = with_rules(a_world(pairs, [a_pod(name) for name in NODES], [POOL]), *rules)

    assert taken(world) == order


def test_nodes_of_other_pools_keep_their_places() -> None:
    pairs = [
        a_pair(f"{pool}{age}", pool=pool, also=(names.DRIFTED,), claim={"created": NOW - age * HOUR})
        for age in (1, 2, 3)
        for pool in "ab"
    ]
    other = replace(a_pool(name="b", consolidate_after=None), hash="2")
    world = a_world(pairs, [a_pod(f"{pool}{age}") for age in (1, 2, 3) for pool in "ab"], [POOL, other])

    assert taken(world) == ["a1", "a2", "a3", "b1", "b2", "b3"]
    assert taken(with_rules(world, a_rollout(a_status("rest")))) == ["a3", "a2", "a1", "b1", "b2", "b3"]


def test_after_its_longest_time_nothing_begins_until_a_person_decides() -> None:
    late = replace(a_rollout(a_status("rest")), longest=60.0)  # it began a minute ago
    early = replace(late, longest=61.0)

    assert (begun(rolling_out(8, 1, early)), begun(rolling_out(8, 1, late))) == (8, 0)
    held = hold_of(said_in(rolling_out(8, 1, late), "a"), Cause.DRIFTED)
    assert held is not None and "it has gone on since 2023-11-14T22:12:20Z, longer than its maxDuration" in held.message
    assert begun(rolling_out(8, 1, replace(late, intent=Intent.PROMOTE))) == 8
    assert conditions_of(early, POOL, (), NOW)["Stalled"][:2] == ("False", "Advancing")
    assert conditions_of(late, POOL, (), NOW)["Stalled"][:2] == ("True", "TooLong")
    assert NOW + 1 in looks_again(early.status, early, NOW)

    soaked = a_status(state=RolloutState.SOAKING, since=NOW - 700, until=NOW - 1)
    nodes = PoolNodes(old=7, at_target=1, ready=(NOW - 50,))
    assert next_move(replace(late, status=soaked), POOL, nodes, NOW) == soaked
    assert next_move(replace(early, status=soaked), POOL, nodes, NOW).step == "quarter"
    assert next_move(replace(late, status=soaked), replace(POOL, hash="3"), nodes, NOW).begun == NOW  # time of its own


def moved(rollout: Rollout, nodes: PoolNodes, now: float, **also: object) -> Rollout:
    status = replace(rollout.status, **also)  # type: ignore[arg-type]
    rollout = replace(rollout, status=status)
    return replace(rollout, status=next_move(rollout, POOL, nodes, now))


def test_the_story_names_each_step_with_its_end() -> None:
    known = replace(a_rollout(RolloutStatus(gate=PASSES)), created=NOW - 60)
    known = moved(known, PoolNodes(old=8), NOW)
    assert known.status.history == (Passage(step="canary", began=NOW),)
    one, three = PoolNodes(old=7, at_target=1, ready=(NOW,)), PoolNodes(old=5, at_target=3, ready=(NOW,) * 3)
    known = moved(known, one, NOW + 60, gate=PASSES)
    assert known.status.state == RolloutState.SOAKING and len(known.status.history) == 1
    known = moved(known, one, NOW + 700, gate=PASSES)
    known = moved(known, PoolNodes(old=8), NOW + 800)  # what was replaced is gone
    known = moved(known, three, NOW + 860)
    known = moved(known, three, NOW + 1500)
    known = moved(replace(known, intent=Intent.PROMOTE), three, NOW + 1560)
    known = moved(known, PoolNodes(at_target=8, ready=(NOW,) * 8), NOW + 1600)

    assert known.status.state == RolloutState.COMPLETE
    assert [(each.step, each.ended and each.ended - each.began, each.result) for each in known.status.history] == [
        ("canary", 700, "Passed"),
        ("quarter", 100, "Left"),
        ("canary", 700, "Passed"),
        ("quarter", 60, "Promoted"),
        ("rest", 40, "Passed"),
    ]
    same = moved(known, PoolNodes(at_target=8), NOW + 9000)
    assert same.status == known.status


def test_a_failure_a_way_back_and_another_try_are_told() -> None:
    story = (Passage(step="canary", began=NOW - 60),)
    status = a_status(gate=replace(FAILS, since=NOW - 300), stable=KNOWN, history=story)
    known = replace(a_rollout(status), rolls_back=True)
    known = moved(known, PoolNodes(old=7, at_target=1, refusable=1), NOW)
    assert known.status.state == RolloutState.ROLLING_BACK
    known = moved(known, PoolNodes(old=8), NOW + 60)
    assert known.status.state == RolloutState.FAILED
    known = replace(known, generation=known.generation + 1)
    known = moved(known, PoolNodes(old=8), NOW + 600)

    assert [(each.step, each.result, each.message) for each in known.status.history] == [
        ("canary", "Failed", "pods are not ready"),
        ("canary", "RolledBack", ""),
        ("canary", "", ""),
    ]
    superseded = replace(known, status=next_move(known, replace(POOL, hash="3"), PoolNodes(old=8), NOW + 900))
    assert [each.result for each in superseded.status.history][-2:] == ["Superseded", ""]


def test_a_way_back_that_another_target_ends_is_no_new_try_of_the_refused_one() -> None:
    back = a_status(
        "canary", RolloutState.ROLLING_BACK, stable=KNOWN, history=(Passage(step="canary", began=NOW - 60),)
    )
    known = replace(a_rollout(back), rolls_back=True)

    after = next_move(known, replace(POOL, hash="3"), PoolNodes(old=8), NOW)

    assert [(each.result, each.message) for each in after.history] == [
        ("Superseded", "the NodePool has another target"),
        ("", ""),
    ]


def test_who_approved_is_told_and_the_latest_are_kept() -> None:
    old = tuple(Passage(step=f"s{n}", began=NOW, ended=NOW, result="Passed") for n in range(MOST))
    awaiting = a_status("canary", RolloutState.AWAITING, history=(*old[1:], Passage(step="canary", began=NOW - 60)))
    steps = (replace(a_rollout().steps[0], approve=3600.0), *a_rollout().steps[1:])
    rollout, nodes = replace(a_rollout(awaiting), steps=steps), PoolNodes(old=7, at_target=1, ready=(NOW,))
    asked = next_move(replace(rollout, status=replace(awaiting, awaits=None)), POOL, nodes, NOW)
    assert asked.awaits is not None
    approval = Approval(step="canary", digest=asked.awaits.digest, by="alice", at=NOW)
    found = next_move(replace(rollout, status=asked, approval=approval), POOL, nodes, NOW + 60)

    assert (found.step, len(found.history)) == ("quarter", MOST)
    assert [(each.step, each.result, each.message) for each in found.history[-2:]] == [
        ("canary", "Passed", "approved by alice"),
        ("quarter", "", ""),
    ]
