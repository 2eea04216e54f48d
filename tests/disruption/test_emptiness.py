"""Empty nodes (DIS-63 to DIS-68), decided and looked at again (DIS-134)."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.revalidate import Invalid, Valid
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.pools import Budget
from dovetail.model.reasons.disruption_reasons import Invalidity
from dovetail.model.snapshot import Snapshot
from tests.disruption.second_look import revalidate
from worlds.disruption import NOW, a_pair, a_pod, a_pool, a_world

SETTINGS = DisruptionSettings()


def taken(world: Snapshot) -> list[str]:
    choice = choose(world, SETTINGS, never)
    if isinstance(choice, NothingToDo):
        return []
    assert [c.method for c in choice.commands] == ["emptiness"]
    return [t.node for t in choice.commands[0].targets]


def planned(world: Snapshot) -> DisruptionPlan:
    choice = choose(world, SETTINGS, never)
    assert isinstance(choice, DisruptionPlan)
    return choice


def test_all_empty_nodes_go_in_one_command_the_dearest_first() -> None:
    """DIS-64, DIT-34."""
    assert taken(a_world([a_pair("n1", "m4"), a_pair("n2", "m16"), a_pair("n3", "m8")])) == ["n2", "n3", "n1"]


def test_a_budget_of_thirty_percent_of_ten_takes_three() -> None:
    """DIT-29."""
    pool = a_pool(budgets=(Budget(nodes="30%"),))
    assert taken(a_world([a_pair(f"n{i}") for i in range(10)], pools=[pool])) == ["n0", "n1", "n2"]


@pytest.mark.parametrize(
    ("pod", "empty"),
    [
        ({"owner": "DaemonSet"}, True),
        ({"owner": "Node"}, True),
        ({"phase": "Failed"}, True),
        ({"deleting_since": NOW}, True),
        ({"deleting_since": NOW, "owner": "StatefulSet"}, False),
        ({"owner": ""}, False),
        ({"deletion_cost": "-134217728"}, True),
        ({"deletion_cost": "-134217727"}, False),
    ],
)
def test_a_node_is_empty_when_disturbing_its_pods_costs_nothing(pod: dict[str, Any], empty: bool) -> None:
    """DIS-36, DIT-36."""
    pool = a_pool(policy="WhenEmpty")
    assert taken(a_world([a_pair("n1")], [a_pod("n1", **pod)], pools=[pool])) == (["n1"] if empty else [])


def test_a_node_is_left_until_consolidate_after_has_elapsed() -> None:
    """DIS-63, DIS-167: by the facts, whatever the condition says, the boundary included."""
    pool = a_pool(consolidate_after=30.0)
    early = a_pair("n1", also=[names.CONSOLIDATABLE], claim={"last_pod_event": NOW - 29.9})
    late = a_pair("n2", claim={"last_pod_event": NOW - 30.0})
    assert taken(a_world([early, late], pools=[pool])) == ["n2"]


def test_the_wait_is_until_the_moment_at_which_the_next_node_is_quiet() -> None:
    """Nothing waits for a poll."""
    pool = a_pool(consolidate_after=30.0)
    pairs = [a_pair("n1", claim={"last_pod_event": NOW - 10}), a_pair("n2", claim={"last_pod_event": NOW - 20})]
    choice = choose(a_world(pairs, pools=[pool]), SETTINGS, never)
    assert isinstance(choice, NothingToDo) and choice.next_due == NOW + 10


def test_virtual_buffer_pods_hold_a_node() -> None:
    """DIS-68, DIT-39: a count of zero does not."""
    assert taken(a_world([a_pair("n1"), a_pair("n2")], buffer_pods={"n1": 2, "n2": 0})) == ["n2"]


def test_a_node_made_for_pods_that_are_still_pending_is_kept_for_them() -> None:
    pod = a_pod()
    made = {names.PLAN: "plan-1/0", names.PLANNED_PODS: pod.uid}
    fresh = replace(a_pair("n1").claim.conditions[2], changed=NOW - 5)
    conditions = (*a_pair("n1").claim.conditions[:2], fresh)
    pair = a_pair("n1", claim={"annotations": made, "conditions": conditions})
    assert taken(a_world([pair], [replace(pod, unschedulable=False)])) == []


def test_a_replacement_that_a_mark_still_needs_is_not_emptied() -> None:
    """After a lost database, too: the mark says so, and nothing else has to remember."""
    marked = a_pair("old", claim={"annotations": {names.OWNER: "c/disrupt/plan-1"}})
    made = a_pair("new", claim={"annotations": {names.PLAN: "plan-1/0"}})
    world = a_world([marked, made], [a_pod("old")], pools=[a_pool(policy="WhenEmpty")])
    assert taken(world) == []


def test_a_replacement_that_no_mark_needs_is_emptied() -> None:
    made = a_pair("new", claim={"annotations": {names.PLAN: "plan-1/0"}})
    assert taken(a_world([made])) == ["new"]


def test_a_plan_names_its_nodes_by_uid_and_waits_fifteen_seconds() -> None:
    """DIS-132."""
    plan = planned(a_world([a_pair("n1")]))
    target = plan.commands[0].targets[0]
    assert (target.claim_uid, target.node_uid, plan.validate_after) == ("claim-uid-n1", "node-uid-n1", 15.0)


def test_a_node_that_gained_a_pod_falls_out_and_the_rest_go_on() -> None:
    """DIS-134, DIT-80."""
    world = a_world([a_pair("n1"), a_pair("n2")])
    later = replace(world, now=NOW + 15, pods={p.uid: p for p in [a_pod("n1")]})
    verdict = revalidate(planned(world), later, SETTINGS)
    assert isinstance(verdict, Valid) and [t.node for t in verdict.plan.commands[0].targets] == ["n2"]


def test_a_new_node_under_an_old_name_is_not_the_planned_one() -> None:
    world = a_world([a_pair("n1")])
    later = a_world([a_pair("n1", claim={"uid": "another"})])
    verdict = revalidate(planned(world), later, SETTINGS)
    assert isinstance(verdict, Invalid) and verdict.reason == Invalidity.CHURN


def test_a_budget_that_shrank_keeps_the_first_of_the_command() -> None:
    """DIS-134: upstream picks at random; ours is the command's own order."""
    world = a_world([a_pair("n1"), a_pair("n2", "m16")])
    later = replace(world, pools={"a": a_pool(budgets=(Budget(nodes="1"),))})
    verdict = revalidate(planned(world), later, SETTINGS)
    assert isinstance(verdict, Valid) and [t.node for t in verdict.plan.commands[0].targets] == ["n2"]


def test_a_budget_that_closed_ends_it() -> None:
    """A budget that allows nothing at the second look ends the plan (DIS-134)."""
    world = a_world([a_pair("n1")])
    later = replace(world, pools={"a": a_pool(budgets=(Budget(nodes="0"),))})
    verdict = revalidate(planned(world), later, SETTINGS)
    assert isinstance(verdict, Invalid) and verdict.reason == Invalidity.BUDGET


def test_a_node_where_pods_of_a_leaving_node_will_land_is_not_emptied() -> None:
    """Upstream protects it for the 20 s of a nomination; a drain may take longer."""
    leaving = a_pair("old", claim={"deleting_since": NOW - 60})
    world = a_world([leaving, a_pair("n1"), a_pair("n2")], [a_pod("old", "5")])
    assert taken(world) == ["n2"]
    assert taken(replace(world, pods={})) == ["n1", "n2"]


def test_a_node_where_a_pending_pod_will_land_is_not_emptied() -> None:
    assert taken(a_world([a_pair("n1"), a_pair("n2")], [a_pod()])) == ["n2"]


def test_a_pod_that_comes_to_need_the_node_during_the_wait_keeps_it() -> None:
    world = a_world([a_pair("n1")])
    pod = a_pod()
    verdict = revalidate(planned(world), replace(world, now=NOW + 15, pods={pod.uid: pod}), SETTINGS)
    assert isinstance(verdict, Invalid) and verdict.reason == Invalidity.CHURN


def test_the_wait_of_the_next_node_begins_while_the_one_before_it_is_drained() -> None:
    """Ours (upstream: 25 s a node under budget 1): the wait overlaps the drain, and the second look counts it."""
    draining = a_pair("n1", claim={"deleting_since": NOW - 5})
    world = a_world([draining, a_pair("n2")], pools=[a_pool(budgets=(Budget(nodes="1"),))])

    choice = choose(world, DisruptionSettings(), never)

    assert isinstance(choice, DisruptionPlan)
    assert [t.node for t in choice.commands[0].targets] == ["n2"]
    verdict = revalidate(choice, world, DisruptionSettings())
    assert isinstance(verdict, Invalid)
    assert verdict.reason == Invalidity.BUDGET
    gone = a_world(
        [a_pair("n2", claim={"uid": choice.commands[0].targets[0].claim_uid})], pools=[*world.pools.values()]
    )
    assert isinstance(revalidate(choice, gone, DisruptionSettings()), Valid)


def test_nothing_is_planned_on_the_end_of_a_drain_that_something_holds() -> None:
    held = a_pair("n1", claim={"deleting_since": NOW - 60})
    world = a_world([held, a_pair("n2")], pools=[a_pool(budgets=(Budget(nodes="1"),))])
    assert isinstance(choose(world, DisruptionSettings(), never), NothingToDo)
