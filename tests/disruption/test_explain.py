"""Every answer about one node, and when to look again."""

from dataclasses import replace

from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.explain import explain_node
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.pools import Budget
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.snapshot import Snapshot
from worlds.disruption import NOW, a_pair, a_pdb, a_pod, a_pool, a_world

SETTINGS = DisruptionSettings()


def due(world: Snapshot) -> float | None:
    choice = choose(world, SETTINGS, never)
    assert isinstance(choice, NothingToDo), choice
    return choice.next_due


def test_every_block_is_named_and_not_only_the_first() -> None:
    pod = a_pod("n1", name="p", do_not_disrupt="true")
    world = a_world([a_pair("n1")], [pod, a_pod("n1")], pdbs=[a_pdb()], nominations={"n1": NOW + 9})
    found = explain_node(world, SETTINGS, "n1")
    assert [a.why for a in found.checks] == [WhyNot.NOMINATED, WhyNot.POD_PROTECTED, WhyNot.PDB_BLOCKS]


def test_the_budget_that_binds_is_named() -> None:
    budget = Budget(nodes="0", reasons=("Drifted",))
    world = a_world([a_pair("n1")], [a_pod("n1")], pools=[a_pool(budgets=(budget, Budget(nodes="5")))])
    found = {a.reason: a for a in explain_node(world, SETTINGS, "n1").allowances}
    drift, empty = found[DisruptionReason.DRIFTED], found[DisruptionReason.EMPTY]
    assert (drift.left, drift.binding, empty.left) == (0, budget, 5)


def test_prices_are_compared() -> None:
    world = a_world([a_pair("n1", "m16")], [a_pod("n1")])
    found = explain_node(world, SETTINGS, "claim-n1")
    assert found.prices is not None
    assert (found.prices.now, found.prices.replacement, found.prices.types) == (0.8, 0.1, ("m2", "m4", "m8"))
    assert found.goes_for == ("single",)


def test_where_the_pods_would_go_is_said() -> None:
    world = a_world([a_pair("n1", "m2"), a_pair("n2", "m2")], [a_pod("n1"), a_pod("n2", name="p")])
    found = explain_node(world, SETTINGS, "n2")
    assert found.simulation is not None and dict(found.simulation.moved) == {"n1": ("default/p",)}


def test_each_methods_own_answer_is_there() -> None:
    found = explain_node(a_world([a_pair("n1", "m2")], [a_pod("n1")]), SETTINGS, "n1")
    assert {a.method: a.why for a in found.methods} == {
        "requests": WhyNot.NOT_REQUESTED,
        "repair": WhyNot.NOT_UNHEALTHY,
        "emptiness": WhyNot.NOT_EMPTY,
        "staticDrift": WhyNot.DYNAMIC_POOL,
        "drift": WhyNot.NOT_DRIFTED,
        "expiration": WhyNot.NOT_ASKED_FOR,
        "cheaper": WhyNot.NOT_UNDER_COST,
        "multi": None,
        "single": None,
    }


def test_a_node_that_does_not_exist_is_named_as_such() -> None:
    assert not explain_node(a_world(), SETTINGS, "n1").exists


def test_the_next_look_is_when_a_nomination_a_rest_or_a_protection_ends() -> None:
    pod = a_pod("n1", do_not_disrupt="2h")
    world = a_world([a_pair("n1", "m2")], [pod])
    assert due(world) == NOW + 3600
    assert due(replace(world, nominations={"n1": NOW + 20})) == NOW + 20
    assert due(replace(world, resting={"n1": NOW + 5}, nominations={"n2": NOW - 1})) == NOW + 5


def test_the_next_look_is_when_a_window_opens_or_closes() -> None:
    """NOW is 2023-11-14 22:13:20 UTC."""
    pool = a_pool(budgets=(Budget(nodes="0", schedule="0 22 * * *", duration=3600.0),))
    assert due(a_world([a_pair("n1")], pools=[pool])) == NOW + 46 * 60 + 40


def test_nothing_is_due_where_time_changes_nothing() -> None:
    assert due(a_world([a_pair("n1", "m2")], [a_pod("n1")])) is None


def test_a_refusal_is_a_reason_with_a_count_and_examples() -> None:
    pairs = [a_pair(f"n{i}", node={"annotations": {names.DO_NOT_DISRUPT: "true"}}) for i in range(5)]
    choice = choose(a_world(pairs), SETTINGS, never)
    assert isinstance(choice, NothingToDo)
    held = next(r for r in choice.refusals if r.reason == WhyNot.NODE_PROTECTED)
    assert (held.count, len(held.examples)) == (5, 3)
