"""A node, a pod or a pool that cannot be judged stays; every other node goes as if it were not there."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.disruption.budgets.allowances import allowances
from dovetail.disruption.choose import Decision, NothingToDo, decide
from dovetail.disruption.explain import explain_node
from dovetail.disruption.live_check import why_not_now
from dovetail.disruption.revalidate import Valid
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan, Target
from dovetail.model import names
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.pods import Pod
from dovetail.model.pools import Budget
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.snapshot import Snapshot
from tests.disruption.second_look import revalidate
from worlds.disruption import NOW, a_pair, a_pod, a_pool, a_world, condition

SETTINGS = DisruptionSettings()
IMPOSSIBLE: dict[str, Any] = {"do_not_disrupt": 7}  # no text at all: no parser makes it, and no rule foresees it


def targets(decision: Decision) -> set[str]:
    plan = decision.choice
    return {t.node for c in plan.commands for t in c.targets} if isinstance(plan, DisruptionPlan) else set()


def decided(world: Snapshot) -> Decision:
    return decide(world, SETTINGS, never)


def refusals(decision: Decision) -> str:
    assert isinstance(decision.choice, NothingToDo)
    return " ".join(example for refusal in decision.choice.refusals for example in refusal.examples)


def test_a_pod_that_cannot_be_judged_keeps_its_node_and_the_empty_node_goes() -> None:
    world = a_world([a_pair("held"), a_pair("empty")], [a_pod("held", name="odd", **IMPOSSIBLE)])

    decision = decided(world)

    assert targets(decision) == {"empty"}
    assert [(f.kind, f.name) for f in decision.unjudged] == [("Pod", "default/odd")]
    told = {(n.kind, n.name): n.reason for n in decision.notices}
    assert told["Pod", "odd"] == "CannotBeJudged"
    assert told["Node", "held"] == "DisruptionBlocked"
    assert all("Pod default/odd cannot be judged" in n.message for n in decision.notices if n.name == "held")


def test_without_that_pod_nothing_is_left_of_it() -> None:
    world = a_world([a_pair("held"), a_pair("empty")], [a_pod("held", name="odd", **IMPOSSIBLE)])
    assert decided(world).unjudged
    assert decided(replace(world, pods={})).unjudged == ()
    assert targets(decided(replace(world, pods={}))) == {"held", "empty"}


def test_a_node_that_cannot_be_judged_stays_under_its_own_name() -> None:
    odd = a_pair("odd", node={"annotations": None})
    decision = decided(a_world([odd, a_pair("empty")]))

    assert targets(decision) == {"empty"}
    assert [(f.kind, f.name) for f in decision.unjudged] == [("Node", "odd")]


def test_a_pool_whose_budget_cannot_be_judged_gives_up_no_node_and_the_others_do() -> None:
    odd = a_pool("a", budgets=(Budget(nodes=7),))  # type: ignore[arg-type]
    world = a_world([a_pair("held", pool="a"), a_pair("empty", pool="b")], pools=[odd, a_pool("b")])

    decision = decided(world)

    assert targets(decision) == {"empty"}
    assert [(f.kind, f.name) for f in decision.unjudged] == [("NodePool", "a")]
    found = allowances(world, SETTINGS)["a", DisruptionReason.EMPTY]
    assert (found.left, found.nodes) == (0, 1) and "NodePool a cannot be judged" in found.errors[0]


def test_a_second_look_is_taken_beside_what_cannot_be_judged() -> None:
    world = a_world([a_pair("held"), a_pair("empty")], [a_pod("held", **IMPOSSIBLE)])
    plan = decided(world).choice
    assert isinstance(plan, DisruptionPlan)

    again = revalidate(plan, world, SETTINGS)

    assert isinstance(again, Valid) and again.plan.commands == plan.commands


def test_a_round_that_has_no_time_still_gives_up_empty_nodes() -> None:
    world = a_world([a_pair("full"), a_pair("empty")], [a_pod("full")])
    assert targets(decide(world, SETTINGS, lambda: True)) == {"empty"}


# --- pods that cannot be read


def unreadable(**outline: Any) -> Unreadable:
    pod = replace(a_pod("held", name="odd"), **outline)
    return Unreadable(kind="Pod", name="default/odd", field="spec", message="no list", node="held", uid="u", pod=pod)


def test_a_pod_that_cannot_be_read_keeps_its_node_and_is_named() -> None:
    world = replace(a_world([a_pair("held"), a_pair("empty")]), unreadable=(unreadable(),))

    assert targets(decided(world)) == {"empty"}
    assert "held: Pod default/odd cannot be read: spec: no list" in refusals(
        decided(replace(world, nodes={"held": world.nodes["held"]}, claims={"c": a_pair("held").claim}))
    )
    [check] = explain_node(world, SETTINGS, "held").checks
    assert (check.why, check.message) == (WhyNot.POD_UNREADABLE, "Pod default/odd cannot be read: spec: no list")


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_has_ended_holds_nothing_although_it_cannot_be_read(phase: str) -> None:
    """The kubelet rejects what it cannot read, and such a pod stays."""
    world = replace(a_world([a_pair("held")]), unreadable=(unreadable(phase=phase),))
    assert targets(decided(world)) == {"held"}


def test_a_pod_stuck_in_its_deletion_holds_nothing_although_it_cannot_be_read() -> None:
    world = replace(a_world([a_pair("held")]), unreadable=(unreadable(deleting_since=NOW - 61),))
    assert targets(decided(world)) == {"held"}
    world = replace(world, unreadable=(unreadable(deleting_since=NOW - 1),))
    assert targets(decided(world)) == set()


def test_no_grace_period_waives_a_pod_that_cannot_be_read() -> None:
    """A drifted node would be marked, refused at the live read, and marked again in the next round."""
    drifted = a_pair("held", claim={"termination_grace": 60.0}, also=(condition(names.DRIFTED),))
    world = a_world([drifted])
    assert targets(decided(world)) == {"held"}
    assert targets(decided(replace(world, unreadable=(unreadable(),)))) == set()


# --- the live check


def live(pod: Pod) -> str:
    pair = a_pair("n")
    target = Target(
        claim="claim-n",
        claim_uid="u",
        node="n",
        node_uid="v",
        provider_id="test://n",
        pool="a",
        pods=(pod.uid,),
    )
    return why_not_now(pair.claim, pair.node, [pod], target, NOW)


def test_a_marked_node_is_refused_for_a_pod_that_cannot_be_judged() -> None:
    assert live(a_pod("n")) == ""
    assert live(a_pod("n", name="odd", **IMPOSSIBLE)).startswith("Pod default/odd cannot be judged")
