"""What the rest of consolidation would save: played to its end by those who decide, what is held told apart."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dovetail.disruption.choose import choose
from dovetail.disruption.nodes.candidates import candidate_of
from dovetail.disruption.outlook.left_to_save import LeftToSave, Portion, left_to_save
from dovetail.disruption.rounds import Round, never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.own.openings import Window
from dovetail.model.own.policies import Freeze, Policy
from dovetail.model.pools import Budget
from dovetail.model.snapshot import Snapshot
from dovetail.placement.settings import CostSettings
from worlds.disruption import NOW, Pair, a_pair, a_pdb, a_pod, a_pool, a_type, a_world

SETTINGS = DisruptionSettings()
COST = DisruptionSettings(cost=CostSettings(everywhere=True, types=1, steps=30))
NODES = 4
DAY = 86_400.0


def _pairs(**changes: Any) -> list[Pair]:
    return [a_pair(f"n{number}", **changes) for number in range(NODES)]


def _world(pairs: list[Pair] | None = None, pod: dict[str, Any] | None = None, **changes: Any) -> Snapshot:
    """Four nodes of eight cpus at $0.40 with a pod of two cpus each: one such node, or as dear ones, are enough."""
    pairs = pairs or _pairs()
    return a_world(pairs, [a_pod(pair.node.name, "2", **(pod or {})) for pair in pairs], **changes)


def _with(**changes: Any) -> Snapshot:
    return _world(pools=[a_pool(**changes)])


def _all(found: LeftToSave) -> float:
    return round(found.free.savings + found.held.savings, 6)


@pytest.mark.parametrize("settings", [SETTINGS, COST], ids=["default", "cost"])
def test_everything_is_counted_to_the_end(settings: DisruptionSettings) -> None:
    found = left_to_save(_world(), settings)

    assert round(found.free.savings, 6) == 1.2
    assert NODES - 1 <= found.free.pods <= NODES
    assert (found.held, found.held_by, found.cut) == (Portion(), (), False)


def test_it_is_the_policy_in_force_that_is_played() -> None:
    """Nine cpus on three nodes of sixteen: Karpenter's way ends at one such node, which the policy cost betters."""
    pairs = [a_pair(f"n{number}", "m16") for number in range(3)]
    world = a_world(pairs, [a_pod(pair.node.name) for pair in pairs for _ in range(3)])

    by_default, by_cost = (left_to_save(world, each).free.savings for each in (SETTINGS, COST))

    assert (round(by_default, 6), round(by_cost, 6)) == (1.6, 1.9)


def test_a_budget_that_lets_one_go_at_a_time_holds_nothing() -> None:
    world = _with(budgets=(Budget(nodes="1"),))
    now = choose(world, SETTINGS, never)
    assert isinstance(now, DisruptionPlan)

    found = left_to_save(world, SETTINGS)

    assert sum(len(command.targets) for command in now.commands) == 1
    assert (_all(found), found.held) == (1.2, Portion())


def _shut() -> Policy:
    """Its only window is a minute that is over."""
    return Policy(name="night", allow=(Window(start=0, end=60),))


HELD: dict[str, tuple[str, Callable[[], Snapshot]]] = {
    "a budget of none": ("budgets", lambda: _with(budgets=(Budget(nodes="0"),))),
    "a pause": ("pauses", lambda: _with(annotations={names.PAUSED: "disruption"})),
    "a Freeze": (
        "pauses",
        lambda: _world(freezes={"f": Freeze(name="f", what=frozenset({"disruption"}), until=NOW + DAY)}),
    ),
    "a closed window": ("windows", lambda: _world(policies={"night": _shut()})),
    "a window of the pods": ("windows", lambda: _world(pod={"disruption_window": "no window"})),
    "protected pods": ("do-not-disrupt", lambda: _world(pod={"do_not_disrupt": "true"})),
    "protected nodes": (
        "do-not-disrupt",
        lambda: _world(_pairs(node={"annotations": {names.DO_NOT_DISRUPT: "true"}})),
    ),
    "a PodDisruptionBudget": ("PodDisruptionBudgets", lambda: _world(pdbs=[a_pdb(allowed=0)])),
    "consolidateAfter": (
        "consolidateAfter",
        lambda: _world(_pairs(claim={"last_pod_event": NOW - 1}), pools=[a_pool(consolidate_after=600.0)]),
    ),
}


@pytest.mark.parametrize("hold", HELD)
def test_what_is_held_is_told_apart_with_what_holds_it(hold: str) -> None:
    word, world = HELD[hold]

    found = left_to_save(world(), SETTINGS)

    assert (found.free, found.held_by) == (Portion(), (word,))
    assert round(found.held.savings, 6) == 1.2


def test_a_part_is_held_and_only_what_holds_it_is_named() -> None:
    """Each pool keeps its pods. A third pool's budget lets none go, and it has nodes for nobody."""
    pairs = [*_pairs(), a_pair("kept", pool="b", node={"annotations": {names.DO_NOT_DISRUPT: "true"}})]
    pools = [a_pool(), a_pool("b"), a_pool("empty", budgets=(Budget(nodes="0"),))]
    pods = [
        a_pod(each.node.name, "2", shape={"node_selector": ((names.NODE_POOL, each.claim.labels[names.NODE_POOL]),)})
        for each in pairs
    ]
    found = left_to_save(a_world(pairs, pods, pools), SETTINGS)

    assert round(found.free.savings, 6) == 1.2
    assert (round(found.held.savings, 6), found.held_by) == (0.3, ("do-not-disrupt",))  # $0.10 for two cpus


@pytest.mark.parametrize("changes", [{"consolidate_after": None}, {"policy": "WhenEmpty"}], ids=str)
def test_what_a_pool_does_not_want_consolidated_is_not_held_but_not_counted(changes: dict[str, Any]) -> None:
    assert left_to_save(_with(**changes), SETTINGS) == LeftToSave(free=Portion())


def test_a_node_that_came_within_the_play_does_not_wait_for_its_pods_to_be_quiet() -> None:
    """Two at a time become one that is new, and the two new ones another."""
    types = (a_type("m16", 16, 0.8), a_type("m18", 18, 0.85), a_type("m36", 36, 1.5))
    pairs = [a_pair(f"n{number}", "m16") for number in range(NODES)]
    pools = [a_pool(consolidate_after=600.0, budgets=(Budget(nodes="2"),))]

    found = left_to_save(a_world(pairs, [a_pod(each.node.name, "9") for each in pairs], pools, types=types), SETTINGS)

    assert round(found.free.savings, 6) == round(NODES * 0.8 - 1.5, 6)
    assert (found.free.pods, found.held) == (NODES, Portion())  # all moved twice, and each is counted once


@pytest.mark.parametrize("asked", [1, 2, 5])
def test_where_time_is_up_it_says_so_and_counts_what_was_found(asked: int) -> None:
    left = iter([False] * asked)
    cost = CostSettings(stopwatch=lambda _: lambda: next(left, True))
    world = _with(budgets=(Budget(nodes="1"),))

    found = left_to_save(world, replace(SETTINGS, cost=cost))

    assert found.cut and found.held == Portion()
    assert found.free.savings < left_to_save(world, SETTINGS).free.savings


def _random_world(chosen: random.Random) -> Snapshot:
    """Two pools with budgets of their own, up to nine nodes of all sizes, pods that some things hold."""
    pools = [
        a_pool(
            name,
            budgets=(Budget(nodes=chosen.choice(["0", "1", "50%", "100%"])),),
            consolidate_after=chosen.choice([0.0, 0.0, 600.0]),
            policy=chosen.choice(["WhenEmptyOrUnderutilized", "Balanced"]),
        )
        for name in ("a", "b")
    ]
    pairs, pods = [], []
    for number in range(chosen.randint(1, 9)):
        name, left = f"n{number}", chosen.choice([2, 4, 8, 16])
        quiet = {"last_pod_event": chosen.choice([NOW - 1, NOW - DAY])}
        kept = {"annotations": {names.DO_NOT_DISRUPT: "true"} if chosen.random() < 0.1 else {}}
        market = chosen.choice([names.CAPACITY_SPOT, names.CAPACITY_ON_DEMAND])
        pool = chosen.choice("ab")
        pairs.append(a_pair(name, f"m{left}", pool, capacity_type=market, claim=quiet, node=kept))
        while (cpus := chosen.choice([1, 2, 3])) <= left and chosen.random() < 0.75:
            left -= cpus
            stays = "true" if chosen.random() < 0.05 else None
            pods.append(a_pod(name, str(cpus), labels={"app": chosen.choice("xy")}, do_not_disrupt=stays))
    pdbs = [a_pdb(allowed=chosen.choice([0, 1]))] if chosen.random() < 0.3 else []
    return a_world(pairs, pods, pools, pdbs)


@pytest.mark.parametrize("settings", [SETTINGS, COST], ids=["default", "cost"])
def test_it_is_never_less_than_the_next_step_and_never_more_than_all_nodes_cost(settings: DisruptionSettings) -> None:
    beyond = held = 0
    for seed in range(60):
        world = _random_world(random.Random(seed))
        now = choose(world, settings, never)
        step = sum(command.savings for command in now.commands) if isinstance(now, DisruptionPlan) else 0.0
        fleet = Round(world, settings).fleet
        cost = sum(candidate_of(fleet, each).price for each in fleet.members)

        found = left_to_save(world, settings)

        assert step - 1e-9 <= found.free.savings and found.held.savings >= 0, seed
        assert _all(found) <= cost and found.free.pods + found.held.pods <= len(world.pods), seed
        assert bool(found.held.nodes) == bool(found.held_by), seed
        beyond += found.free.savings > step + 1e-9
        held += found.held.nodes > 0
    assert beyond > 5 and held > 5
