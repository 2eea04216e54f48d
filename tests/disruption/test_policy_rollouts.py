"""A DisruptionPolicy has a NodeRollout made of each change of its NodePools; no node goes by budgets before that."""

from dataclasses import replace
from typing import Final

import pytest

from dovetail.adapters.aws import drift
from dovetail.disruption.upkeep import conditions
from dovetail.model import names
from dovetail.model.own.policies import Policy
from dovetail.model.own.rollouts import NewRollout, Rollout, RolloutPlan, RolloutState, RolloutStatus, RolloutStep
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.rollout.wanted import outlived_rollouts, wanted_rollouts
from dovetail.rules.said import Cause, HeldBy
from tests.disruption.test_rollouts import begun
from worlds.disruption import HOUR, NOW, Pair, a_pair, a_pool, a_world, condition
from worlds.time_rules import with_rules

STEPS: Final = (RolloutStep(name="canary", to="1", soak=600), RolloutStep(name="rest", to="100%"))
POLICY: Final = Policy(name="p", rollout=RolloutPlan(drifted="2", steps=STEPS))
POOL: Final = replace(a_pool(consolidate_after=None), hash="2")
COMPLETE: Final = RolloutStatus(step="rest", state=RolloutState.COMPLETE, since=NOW - HOUR)


def drifted(name: str, reason: str = "NodeClassDrift", ago: float = HOUR) -> Pair:
    return a_pair(name, also=(replace(condition(names.DRIFTED), reason=reason, changed=NOW - ago),))


def a_ruled_cluster(pairs: list[Pair], *rules: Policy | Rollout, pool: NodePool = POOL) -> Snapshot:
    return with_rules(a_world([*pairs, a_pair("new")], pools=[pool]), *rules)


def made(world: Snapshot) -> list[NewRollout]:
    return list(wanted_rollouts(world))


def held(world: Snapshot) -> str:
    hold = hold_of(said_in(world, "a"), Cause.DRIFTED)
    assert hold is None or hold.rule == HeldBy.ROLLOUT
    return "" if hold is None else hold.message


TWO: Final = [drifted("n1"), drifted("n2")]


def test_of_a_change_one_is_made_with_a_copy_of_the_steps_and_until_then_no_node_goes() -> None:
    assert begun(a_ruled_cluster(TWO)) == 2
    world = a_ruled_cluster(TWO, POLICY)

    [new] = made(world)
    assert new.name.startswith("a-") and (new.pool, new.pool_uid, new.policy, new.plan.steps) == (
        "a",
        "pool-a",
        "p",
        STEPS,
    )
    assert begun(world) == 0
    assert "a NodeRollout is made of its change first, by DisruptionPolicy p" in held(world)
    assert hold_of(said_in(world, "a"), Cause.EMPTY) is None


@pytest.mark.parametrize(
    "reason",
    [
        conditions.NODE_POOL_DRIFTED,
        conditions.REQUIREMENTS_DRIFTED,
        drift.NODE_CLASS,
        drift.IMAGE,
        drift.SECURITY_GROUP,
        drift.SUBNET,
        drift.RESERVATION,  # the instance still has one, which its class selects no more
        drift.PLACEMENT_GROUP,
        "ImageDrift",
    ],
)
def test_whatever_of_a_node_pool_or_its_class_has_changed_one_is_made(reason: str) -> None:
    world = a_ruled_cluster([drifted("n1", reason), drifted("n2", reason)], POLICY)

    assert (len(made(world)), begun(world)) == (1, 0)


def test_what_nobody_has_changed_goes_by_budgets() -> None:
    gone = conditions.INSTANCE_TYPE_NOT_FOUND
    world = a_ruled_cluster([drifted("n1", gone), drifted("n2", gone)], POLICY)

    assert (made(world), begun(world)) == ([], 2)


def test_a_node_of_another_template_counts_before_it_is_said_to_have_drifted() -> None:
    unlike = {names.NODE_POOL_HASH: "1", names.NODE_POOL_HASH_VERSION: "v3"}
    world = a_ruled_cluster([a_pair(name, claim={"annotations": unlike}) for name in ("n1", "n2")], POLICY)

    assert len(made(world)) == 1


def test_fewer_are_no_roll_out_once_it_is_known_that_there_are_no_more() -> None:
    """Conditions are written one after another: what is two in a moment must not let the first one go by budgets."""
    assert made(a_ruled_cluster([drifted("n1")], POLICY)) == []
    assert begun(a_ruled_cluster([drifted("n1", ago=60)], POLICY)) == 1
    assert begun(a_ruled_cluster([drifted("n1")], POLICY)) == 1

    just_now = a_ruled_cluster([drifted("n1", ago=50)], POLICY)
    assert begun(just_now) == 0 and made(just_now) == []
    hold = hold_of(said_in(just_now, "a"), Cause.DRIFTED)
    assert hold is not None and hold.until == NOW + 10
    assert "1 of the 2 nodes that are a roll-out by DisruptionPolicy p have drifted" in hold.message


@pytest.mark.parametrize(("drifted_of", "is_one"), [("2", True), ("3", False), ("60%", True), ("67%", False)])
def test_so_many_are_a_number_or_a_share_that_is_rounded_up(drifted_of: str, is_one: bool) -> None:
    world = a_ruled_cluster(TWO, replace(POLICY, rollout=RolloutPlan(drifted=drifted_of, steps=STEPS)))

    assert bool(made(world)) is is_one


def test_none_is_made_of_the_last_nodes_that_still_leave_when_one_is_complete() -> None:
    plan = {names.OWNER: "c/disrupt/p1"}
    marked = a_pair("n1", also=drifted("n1").claim.conditions[-1:], claim={"annotations": plan})
    leaving = a_pair("n2", also=drifted("n2").claim.conditions[-1:], claim={"deleting_since": NOW})
    policy = replace(POLICY, rollout=RolloutPlan(steps=STEPS))
    complete = Rollout(name="r", uid="u1", pool="a", steps=STEPS, status=COMPLETE)

    assert made(a_ruled_cluster([marked, leaving], policy, complete)) == []
    assert len(made(a_ruled_cluster([marked, leaving, drifted("n3")], policy, complete))) == 1


def test_none_is_made_where_one_is_under_way_and_that_holds_then() -> None:
    for status in (RolloutStatus(), replace(COMPLETE, state=RolloutState.JUDGING)):
        under_way = Rollout(name="by hand", pool="a", steps=STEPS, status=status)
        world = a_ruled_cluster(TWO, POLICY, under_way)
        assert made(world) == [] and "by NodeRollout by hand" in held(world)
    unreadable = Rollout(name="x", fault="spec: none")
    assert made(a_ruled_cluster(TWO, POLICY, unreadable)) == []


def test_its_name_is_the_same_however_often_it_is_made_and_another_for_the_next_change() -> None:
    """Also back to a template that was rolled out before, of which a complete one is still there."""
    [first] = made(a_ruled_cluster(TWO, POLICY))
    [again] = made(a_ruled_cluster([*TWO, drifted("n3")], POLICY))
    earlier = Rollout(name=first.name, uid="u1", pool="a", steps=STEPS, status=COMPLETE)
    [same_target] = made(a_ruled_cluster(TWO, POLICY, earlier))
    [other_target] = made(a_ruled_cluster(TWO, POLICY, pool=replace(POOL, hash="3")))

    assert first.name == again.name
    assert len({first.name, same_target.name, other_target.name}) == 3
    long = replace(POOL, name=f"{'a' * 239}.{'b' * 13}")
    pairs = [a_pair(f"n{n}", pool=long.name, also=(replace(condition("Drifted"), reason="AMIDrift"),)) for n in (1, 2)]
    [shortened] = made(with_rules(a_world(pairs, pools=[long]), POLICY))
    assert len(shortened.name) <= 253 and ".-" not in shortened.name


def test_of_two_policies_none_counts_and_nothing_drifts_until_one_alone_has_a_roll_out() -> None:
    other = replace(POLICY, name="q")
    world = a_ruled_cluster(TWO, POLICY, other)

    assert made(world) == [] and begun(world) == 0
    assert "DisruptionPolicies p and q each have a roll-out for it; take one away" in held(world)
    without = replace(POLICY, name="q", rollout=None)
    assert len(made(a_ruled_cluster(TWO, POLICY, without))) == 1
    elsewhere = replace(other, rollout=None, fault="spec.rollout: x")
    assert made(a_ruled_cluster(TWO, elsewhere)) == []


def test_a_pool_of_another_provider_is_left_alone() -> None:
    world = replace(a_ruled_cluster(TWO, POLICY), supported_node_classes=frozenset({("example.org", "Other")}))

    assert made(world) == []


def test_of_those_that_are_complete_ten_are_kept_for_each_pool_for_thirty_days_and_a_persons_own_for_ever() -> None:
    def complete(name: str, ago: float, policy: str = "p", pool: str = "a") -> Rollout:
        return Rollout(name=name, pool=pool, policy=policy, status=replace(COMPLETE, since=NOW - ago))

    days = [complete(f"r{n}", n * 24 * HOUR) for n in range(1, 13)]
    of_others = [
        complete("own", 99 * 24 * HOUR, policy=""),
        complete("old", 31 * 24 * HOUR, pool="b"),
        complete("young", 29 * 24 * HOUR, pool="b"),
        replace(complete("open", 99 * 24 * HOUR), status=replace(COMPLETE, state=RolloutState.JUDGING)),
    ]
    world = a_ruled_cluster([], *days, *of_others)

    assert {each.name for each in outlived_rollouts(world)} == {"r11", "r12", "old"}
