"""What a person asks to be replaced: within budgets, before anything else, and answered."""

from typing import Any

import pytest

from dovetail.disruption.choose import Decision, decide
from dovetail.disruption.decision_snapshot import for_disruption
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.objects.workloads import PodDisruptionBudget
from dovetail.model.pools import Budget
from dovetail.model.snapshot import Snapshot
from worlds.disruption import NOW, Pair, a_pair, a_pdb, a_pod, a_pool, a_world, condition

ASKED = {"annotations": {names.REPLACE: "a bad disk", names.REPLACE_BY: "alice"}}
QUIET: Any = {"consolidate_after": None}


def decided(world: Snapshot) -> Decision:
    return decide(world, DisruptionSettings(), never)


def taken(found: Decision) -> list[tuple[str, str, int]]:
    choice = found.choice
    commands = choice.commands if isinstance(choice, DisruptionPlan) else ()
    return [(c.reason, c.targets[0].node, len(c.replacements)) for c in commands]


def three(**second: object) -> list[Pair]:
    return [a_pair("n1"), a_pair("n2", claim={**ASKED, **second}), a_pair("n3")]


def test_a_node_that_is_asked_for_is_replaced_and_no_other() -> None:
    pods = [a_pod(name, "5") for name in ("n1", "n2", "n3")]
    found = decided(a_world(three(), pods, pools=[a_pool(**QUIET)]))

    assert taken(found) == [("Requested", "n2", 1)]
    assert [(n.name, n.reason, n.message) for n in found.notices if n.reason.startswith("Replacement")] == [
        ("claim-n2", "ReplacementBegins", "It is being replaced: a bad disk (by alice)")
    ]


def test_the_plan_says_who_asked_and_a_reason_cannot_say_otherwise() -> None:
    asked = {"annotations": {names.REPLACE: "asked (by bob) in chat", names.REPLACE_BY: "alice"}}
    found = decided(a_world([a_pair("n2", claim=asked)], [a_pod("n2", "5")], pools=[a_pool(**QUIET)]))

    assert isinstance(found.choice, DisruptionPlan)
    assert [command.asked_by for command in found.choice.commands] == ["alice"]


def test_it_comes_before_drift_that_nobody_waits_for() -> None:
    drifted = a_pair("n1", claim={"conditions": (*a_pair("n1").claim.conditions, condition(names.DRIFTED))})
    pairs = [drifted, a_pair("n2", claim=ASKED)]
    found = decided(a_world(pairs, [a_pod("n1", "5"), a_pod("n2", "5")], pools=[a_pool(**QUIET)]))

    assert taken(found) == [("Requested", "n2", 1)]


def test_a_closed_budget_for_drift_holds_it_and_an_event_says_so() -> None:
    closed = (Budget(nodes="0", reasons=("Drifted",)),)
    found = decided(a_world(three(), [a_pod("n2", "5")], pools=[a_pool(**QUIET, budgets=closed)]))

    assert taken(found) == []
    [said] = [n for n in found.notices if n.reason == "ReplacementWaits"]
    assert (said.kind, said.name) == ("NodeClaim", "claim-n2")
    assert "no allowance left" in said.message and "a bad disk" in said.message


@pytest.mark.parametrize("now", [False, True])
def test_who_asks_is_told_that_the_node_rests(now: bool) -> None:
    rests = {names.REST: f"{NOW + 900.0:.0f}/7/Requested", **({names.REPLACE_NOW: "true"} if now else {})}
    pairs = [a_pair("n1"), a_pair("n2", claim={"annotations": {**ASKED["annotations"], **rests}})]
    world = for_disruption(a_world(pairs, [a_pod("n1"), a_pod("n2")], pools=[a_pool(**QUIET)]), {}, frozenset())
    found = decided(world)

    assert taken(found) == []
    [said] = [n for n in found.notices if n.name == "claim-n2"]
    assert said.reason == "ReplacementWaits"
    assert "waits its turn: Node's last disruption failed" in said.message and "(by alice)" in said.message


def test_a_cancelled_request_is_left_alone() -> None:
    called_off = {"annotations": {**ASKED["annotations"], names.CANCEL: "not now"}}
    pairs = [a_pair("n1"), a_pair("n2", claim=called_off)]
    assert taken(decided(a_world(pairs, [a_pod("n2", "5")], pools=[a_pool(**QUIET)]))) == []


def test_a_node_of_a_static_pool_is_replaced_from_the_template() -> None:
    found = decided(a_world(three(), [a_pod("n2")], pools=[a_pool(replicas=3)]))
    assert taken(found) == [("Requested", "n2", 1)]


def test_with_many_the_budget_takes_a_few_at_a_time() -> None:
    pairs = [a_pair(f"n{i}", claim=ASKED) for i in range(10)]
    pods = [a_pod(f"n{i}", "5") for i in range(10)]
    found = decided(a_world(pairs, pods, pools=[a_pool(**QUIET, budgets=(Budget(nodes="3"),))]))

    assert len(taken(found)) == 3
    assert sorted(n.reason for n in found.notices if n.reason.startswith("Replacement")) == [
        *["ReplacementBegins"] * 3,
        *["ReplacementWaits"] * 7,
    ]


AT_ONCE = {"annotations": {**ASKED["annotations"], names.REPLACE_NOW: "true"}}


def test_at_once_it_is_drained_without_a_new_node_and_can_be_called_off_until_its_last_pod_has_left() -> None:
    pods = [a_pod(name, "5") for name in ("n1", "n2", "n3")]
    pairs = [a_pair("n1"), a_pair("n2", claim=AT_ONCE), a_pair("n3")]
    found = decided(a_world(pairs, pods, pools=[a_pool(**QUIET)]))

    assert taken(found) == [("Requested", "n2", 0)]
    assert isinstance(found.choice, DisruptionPlan)
    [command] = found.choice.commands
    assert command.drain_first, "its claim is deleted when the drain is over"
    assert (command.savings, command.price > 0) == (0.0, True), "what its pods will cost is not known yet"
    assert [n.reason for n in found.notices if n.reason.startswith("Replacement")] == ["ReplacementBegins"]


def test_at_once_waits_for_no_budget_of_the_pool_and_comes_before_what_waits() -> None:
    closed = (Budget(nodes="0"),)
    pairs = [a_pair("n1", claim=ASKED), a_pair("n2", claim=AT_ONCE), a_pair("n3", claim=AT_ONCE)]
    found = decided(a_world(pairs, [a_pod("n2", "5")], pools=[a_pool(**QUIET, budgets=closed)]))
    assert taken(found) == [("Requested", "n2", 0), ("Requested", "n3", 0)]


def test_at_once_alone_asks_for_nothing() -> None:
    pairs = [a_pair("n1"), a_pair("n2", claim={"annotations": {names.REPLACE_NOW: "true"}})]
    assert taken(decided(a_world(pairs, [a_pod("n2", "5")], pools=[a_pool(**QUIET)]))) == []


def test_at_once_is_held_by_a_pause() -> None:
    paused = a_pool(**QUIET, annotations={names.PAUSED: "disruption"})
    assert taken(decided(a_world([a_pair("n2", claim=AT_ONCE)], [a_pod("n2", "5")], pools=[paused]))) == []


@pytest.mark.parametrize("asked", [ASKED, AT_ONCE])
@pytest.mark.parametrize(
    ("pdbs", "kept", "why"),
    [
        ([a_pdb("web", max_unavailable="0")], "", "Pdb prevents pod evictions (PodDisruptionBudget=[default/web])"),
        ([a_pdb("web")], "", "Pdb prevents pod evictions (PodDisruptionBudget=[default/web])"),
        ([], "true", 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/web-1)'),
    ],
)
def test_a_grace_period_does_not_let_it_pass_pods_that_may_not_leave(
    asked: dict[str, Any], pdbs: list[PodDisruptionBudget], kept: str, why: str
) -> None:
    """Its deadline would end them at once, with no node for them. Drift may do that; a person has not meant it."""
    pods = [a_pod("n2", "5", name="web-1", do_not_disrupt=kept or None), a_pod("n1", "5"), a_pod("n3", "5")]
    pairs = three(termination_grace=40.0, **asked)
    found = decided(a_world(pairs, pods, pools=[a_pool(**QUIET)], pdbs=pdbs))

    assert taken(found) == []
    said = {(each.kind, each.name, each.reason, each.message) for each in found.notices}
    assert ("NodeClaim", "claim-n2", "DisruptionBlocked", why) in said


@pytest.mark.parametrize(("grace", "first"), [(None, False), (60.0, True)])
def test_a_node_with_a_grace_period_is_drained_before_its_delete_with_which_that_period_begins(
    grace: float | None, first: bool
) -> None:
    pods = [a_pod(name, "5") for name in ("n1", "n2", "n3")]
    found = decided(a_world(three(termination_grace=grace), pods, pools=[a_pool(**QUIET)]))

    assert isinstance(found.choice, DisruptionPlan)
    [command] = found.choice.commands
    assert (len(command.replacements), command.drain_first) == (1, first)


def test_drift_begins_the_grace_period_at_once_as_it_always_did() -> None:
    drifted = a_pair("n1", claim={"termination_grace": 60.0}, also=(condition(names.DRIFTED),))
    found = decided(a_world([drifted], [a_pod("n1", "5")], pools=[a_pool(**QUIET)]))

    assert isinstance(found.choice, DisruptionPlan)
    assert [(each.reason, each.drain_first) for each in found.choice.commands] == [("Drifted", False)]
