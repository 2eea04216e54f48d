"""A policy's health: nodes that are not ready hold what is voluntary, until they have been well for a while."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from dovetail.activities.upkeep.time_rules import policy_status
from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.explain import explain_node
from dovetail.disruption.outlook.forecast import foretell
from dovetail.disruption.outlook.waves import outlook
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.own.health import HealthResult, HealthRule, HealthState, Readiness
from dovetail.model.own.policies import Policy, PolicyStatus
from dovetail.model.pods import Expression, LabelSelector
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.said import Cause
from worlds.disruption import HOUR, NOW, a_pair, a_pod, a_pool, a_world, condition
from worlds.time_rules import with_rules

SETTINGS = DisruptionSettings()
RULE = HealthRule(max_not_ready="10%", stable_for=600.0)
WELL = Policy(name="well", health=RULE)


def a_fleet(drifted: int, sick: Iterable[int] = (), **changes: object) -> Snapshot:
    """Nodes that have all drifted, some of which are not ready, each with a pod."""
    ill = set(sick)
    pairs = [
        a_pair(
            f"n{number}",
            also=(names.DRIFTED,),
            node={"conditions": (condition("Ready", status="Unknown" if number in ill else "True"),)},
        )
        for number in range(drifted)
    ]
    world = a_world(pairs, [a_pod(f"n{number}") for number in range(drifted)], [a_pool(consolidate_after=None)])
    return replace(world, **changes)  # type: ignore[arg-type]


def begins(world: Snapshot) -> int:
    choice = choose(world, SETTINGS, never)
    return sum(len(c.targets) for c in choice.commands) if isinstance(choice, DisruptionPlan) else 0


def looked(world: Snapshot, policy: Policy, now: float) -> Policy:
    """The policy with what upkeep writes about it."""
    return replace(policy, status=policy_status(policy, with_rules(replace(world, now=now), policy), now))


@pytest.mark.parametrize(
    ("rule", "nodes", "not_ready", "fails"),
    [
        ("10%", 100, 10, False),
        ("10%", 100, 11, True),
        ("10%", 5, 1, True),  # a share is not rounded up to a node
        ("0%", 5, 0, False),
        ("0", 5, 1, True),
        ("3", 4, 3, False),
        ("3", 400, 4, True),
        ("10%", 0, 0, False),
        ("100%", 3, 3, False),
    ],
)
def test_a_share_or_a_number_of_nodes_may_be_not_ready(rule: str, nodes: int, not_ready: int, fails: bool) -> None:
    found = HealthRule(max_not_ready=rule, stable_for=60.0).why_failing(Readiness(nodes=nodes, not_ready=not_ready))

    assert bool(found) is fails


def test_where_two_in_five_are_not_ready_no_drifted_node_begins_until_they_were_well_for_ten_minutes() -> None:
    """Played over looks; what is remembered stands in the policy's status alone, so any worker goes on from it."""
    well, ill = a_fleet(100), a_fleet(100, range(40))
    policy, held = WELL, []
    for minute in range(40):
        now = NOW + 60.0 * minute
        world = with_rules(replace(ill if 5 <= minute < 15 or minute == 20 else well, now=now), policy)
        held.append(hold_of(said_in(world, "a"), Cause.DRIFTED) is not None)
        if minute in (5, 30, 31):
            assert (begins(world) == 0) is held[-1]
        policy = looked(world, policy, now)

    assert held == [5 <= minute < 31 for minute in range(40)]
    assert policy.status.health == HealthState(
        result=HealthResult.PASSING,
        since=NOW + 21 * 60,
        until=NOW + 31 * 60,
        message="40 of 100 nodes are not ready, at most 10% may be",
    )


def test_what_upkeep_remembers_changes_only_with_the_result() -> None:
    ill = a_fleet(10, range(4))
    first = looked(ill, WELL, NOW + 0.5)

    assert looked(a_fleet(10), WELL, NOW).status.health is None  # nothing has failed yet
    assert first.status.health is not None and first.status.health.since == NOW
    assert looked(a_fleet(10, range(5)), first, NOW + 60).status == first.status
    again = looked(a_fleet(10), first, NOW + 120.5)
    assert again.status.health is not None and again.status.health.since == NOW + 121  # never shorter than it was
    assert looked(a_fleet(10), again, NOW + 900).status == again.status
    assert looked(ill, again, NOW + 900).status.health == HealthState(
        result=HealthResult.FAILING, since=NOW + 900, message=first.status.health.message
    )
    assert looked(ill, replace(first, health=None), NOW).status.health is None


def test_a_failure_that_upkeep_has_not_seen_end_yet_still_holds() -> None:
    failing = replace(WELL, status=PolicyStatus(health=HealthState(result=HealthResult.FAILING, since=NOW - 5)))

    assert begins(with_rules(a_fleet(3), failing)) == 0


def test_nodes_that_leave_or_have_not_come_yet_do_not_count_and_what_cannot_be_read_does() -> None:
    world = a_fleet(10)
    claims = dict(world.claims)
    for number, change in ((0, {"deleting_since": NOW}), (1, {"conditions": ()})):
        claims[f"claim-n{number}"] = replace(claims[f"claim-n{number}"], **change)
    nodes = {name: node for name, node in world.nodes.items() if name not in ("n0", "n1", "n2")}
    lost = Unreadable(kind="NodeClaim", name="odd", field="spec", message="no object")
    found = with_rules(replace(world, claims=claims, nodes=nodes, unreadable=(lost,)), WELL)

    assert found.readiness == {"a": Readiness(nodes=8, not_ready=1), "": Readiness(nodes=1, not_ready=1)}


def test_pools_of_other_policies_go_on() -> None:
    chosen = LabelSelector(expressions=(Expression(key="tier", operator="In", values=("prod",)),))
    pools = [a_pool("a", consolidate_after=None), a_pool("b", consolidate_after=None, labels={"tier": "prod"})]
    sick = {"conditions": (condition("Ready", status="False"),)}
    pairs = [a_pair("n1", also=(names.DRIFTED,)), a_pair("n2", pool="b", also=(names.DRIFTED,)), a_pair("n3", pool="b")]
    pairs[2] = a_pair("n3", pool="b", node=sick)
    world = a_world(pairs, [a_pod(f"n{n}") for n in (1, 2, 3)], pools)
    choice = choose(with_rules(world, replace(WELL, selector=chosen)), SETTINGS, never)

    assert isinstance(choice, DisruptionPlan)
    assert {target.pool for command in choice.commands for target in command.targets} == {"a"}


def test_the_refusal_explain_and_the_forecast_say_how_many_are_not_ready_and_until_when() -> None:
    failing = with_rules(a_fleet(3, [0, 1]), WELL)
    choice = choose(failing, SETTINGS, never)
    found = "2 of 3 nodes are not ready, at most 10% may be"
    words = f"until they are well, by the health of DisruptionPolicy well: {found}"

    assert isinstance(choice, NothingToDo)
    [refusal] = [each for each in choice.refusals if each.reason == WhyNot.UNHEALTHY]
    assert words in refusal.examples[0]
    assert any(words in answer.message for answer in explain_node(failing, SETTINGS, "n2").methods)

    since = HealthState(result=HealthResult.PASSING, since=NOW - 60, until=NOW + 540, message="2 of 3")
    stabilising = with_rules(a_fleet(3), replace(WELL, status=PolicyStatus(health=since)))
    choice = choose(stabilising, SETTINGS, never)
    assert isinstance(choice, NothingToDo) and choice.next_due == NOW + 540
    coming = foretell(stabilising, SETTINGS, NOW + HOUR).coming
    assert [
        each.at for each in coming if "may begin again: no more until 2023-11-14T22:22:20Z, by the health" in each.text
    ] == [NOW + 540]
    assert outlook(stabilising, SETTINGS, NOW + HOUR).waves[0].begins == NOW + 540
    assert {stay.why for stay in outlook(failing, SETTINGS, NOW + HOUR).stays} == {WhyNot.UNHEALTHY}
