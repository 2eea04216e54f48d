"""Pools under the policy cost: any set of nodes becomes any cheaper set, step by step, and none is undone in a day."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dovetail.answers.explain.node_words import step_words
from dovetail.disruption.choose import NothingToDo, choose, decide
from dovetail.disruption.explain import explain_node
from dovetail.disruption.methods.cheaper import MISSES, in_parts
from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.revalidate import Invalid, Valid
from dovetail.disruption.rounds import Round, never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.disruption.simulation.simulation import Simulation
from dovetail.disruption.simulation.simulator import PlacementSimulator
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, ProposedNode
from dovetail.model import names
from dovetail.model.pools import Budget
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time
from dovetail.placement.settings import CostSettings
from tests.disruption.second_look import revalidate
from worlds.disruption import NOW, TYPES, Pair, a_pair, a_pod, a_pool, a_type, a_world

COST = CostSettings(everywhere=True, types=1, steps=30)
SETTINGS = DisruptionSettings(cost=COST, worth=0.5)
SPOT_OR_NOT: tuple[Any, ...] = ()
DAY = 86_400.0


def _half_empty(count: int = 3, type_name: str = "m16", pods: int = 3, **changes: Any) -> Snapshot:
    """Large nodes with a few pods of one cpu each."""
    pairs = [a_pair(f"n{n}", type_name, **changes) for n in range(count)]
    return a_world(pairs, [a_pod(pair.node.name) for pair in pairs for _ in range(pods)])


def _with_pool(world: Snapshot, **changes: Any) -> Snapshot:
    return replace(world, pools={"a": a_pool(**changes)})


def _plan(world: Snapshot, settings: DisruptionSettings = SETTINGS) -> DisruptionPlan:
    found = choose(world, settings, never)
    assert isinstance(found, DisruptionPlan), found
    return found


def _command(world: Snapshot, settings: DisruptionSettings = SETTINGS) -> DisruptionCommand:
    [command] = _plan(world, settings).commands
    return command


def _stays(world: Snapshot, settings: DisruptionSettings = SETTINGS) -> dict[str, int]:
    """Why nodes stay, and how many."""
    found = choose(world, settings, never)
    assert isinstance(found, NothingToDo), found
    return {refusal.reason: refusal.count for refusal in found.refusals if refusal.reason != WhyNot.NOT_EMPTY}


def test_several_nodes_become_several_cheaper_ones() -> None:
    """Nine cpus are cheapest on nodes of eight and of two, which Karpenter's way never finds."""
    plan = _plan(_half_empty())
    [command] = plan.commands

    assert (command.method, [t.node for t in command.targets]) == ("cheaper", ["n0", "n1", "n2"])
    assert sorted(plan.type_lists[r.type_list][0] for r in command.replacements) == ["m2", "m8"]
    assert round(command.savings, 6) == round(3 * 0.8 - 0.5, 6)
    assert plan.validate_after == SETTINGS.validate_after


def test_whatever_the_replacements_are_launched_as_enough_is_saved() -> None:
    world = _half_empty()
    plan = _plan(world)
    [command] = plan.commands
    price = {t.name: t.offerings[0].price for t in TYPES}
    dearest = sum(max(price[name] for name in plan.type_lists[r.type_list]) for r in command.replacements)

    assert command.price - dearest >= 0.5 * command.price  # all pods of the pool move, so half of its cost must go


def test_without_the_policy_it_is_karpenter_s_way() -> None:
    assert _command(_half_empty(), DisruptionSettings()).method == "multi"


def test_pools_of_both_kinds_stand_side_by_side() -> None:
    pairs = [a_pair("n0", "m16"), a_pair("n1", "m16", pool="b")]
    pools = [a_pool(annotations={names.PLACEMENT: "cost"}), a_pool("b")]
    world = a_world(pairs, [a_pod(pair.node.name, cpu="9") for pair in pairs], pools)
    settings = DisruptionSettings(cost=replace(COST, everywhere=False))
    methods = {node: explain_node(world, settings, node).methods for node in ("n0", "n1")}
    why = {
        node: {m.method: m.why for m in found if m.method in ("cheaper", "multi")} for node, found in methods.items()
    }

    assert why == {
        "n0": {"cheaper": None, "multi": WhyNot.UNDER_COST},
        "n1": {"cheaper": WhyNot.NOT_UNDER_COST, "multi": None},
    }


def test_a_step_that_saves_too_little_for_its_pods_is_left() -> None:
    """Sixteen pods of half a cpu on m16, at a price where m8 saves a tenth."""
    types = (a_type("m8", 8, 0.7), a_type("m16", 16, 0.8))
    pair = a_pair("n0", "m16")
    world = a_world([pair], [a_pod("n0", cpu="500m") for _ in range(16)], types=types)

    assert _stays(world) == {WhyNot.SAVES_TOO_LITTLE: 1}
    assert _command(world, replace(SETTINGS, worth=0.1)).method == "cheaper"


def test_budgets_cut_the_set_and_the_rest_follows() -> None:
    world = _with_pool(_half_empty(4), budgets=(Budget(nodes="2"),))

    assert len(_command(world).targets) == 2


def test_a_node_that_cannot_be_cheaper_does_not_use_up_the_budget() -> None:
    """The first in order wastes most, and its pod needs just such a node."""
    pairs = [a_pair("n0", "m16"), a_pair("n1", "m16")]
    pods = [a_pod("n0", cpu="9"), *(a_pod("n1") for _ in range(9))]
    world = a_world(pairs, pods, [a_pool(budgets=(Budget(nodes="1"),))])

    assert [t.node for t in _command(world).targets] == ["n1"]


def test_a_node_that_must_stay_is_left_out_of_the_set() -> None:
    world = _half_empty()
    held = replace(next(iter(world.pods.values())), do_not_disrupt="true")
    world = replace(world, pods={**world.pods, held.uid: held})

    assert [t.node for t in _command(world).targets] == ["n1", "n2"]


def test_a_replacement_remembers_what_its_pods_were_moved_away_from() -> None:
    [first, *_] = _command(_half_empty()).replacements

    assert left_in(first) == [{"type": "m16", "capacity": "on-demand", "at": format_time(NOW)}]


def left_in(made: ProposedNode) -> Any:
    return json.loads(dict(made.annotations)[names.REMEMBERED])["entries"][0]["moved_from"]


def _moved_before(seconds: float, kind: str = "m4/on-demand", **memory: str) -> Snapshot:
    """A node that took over from an m4, which is cheaper again."""
    type_, _, capacity = kind.partition("/")
    entry = {"type": type_, "capacity": capacity, "at": format_time(NOW - seconds)}
    own = {names.REMEMBERED: json.dumps({"v": 1, "entries": [{"moved_from": [entry]}]})}
    pair: Pair = a_pair("n0", "m16", claim={"annotations": memory or own})
    return a_world([pair], [a_pod("n0") for _ in range(4)], types=(TYPES[1], TYPES[3]))


def test_no_move_is_undone_within_a_day() -> None:
    assert _stays(_moved_before(DAY - 60)) == {WhyNot.NOT_CHEAPER: 1}
    assert _command(_moved_before(DAY + 60)).method == "cheaper"


def test_another_capacity_type_or_a_text_that_cannot_be_read_undoes_nothing() -> None:
    assert _command(_moved_before(60, "m4/spot")).method == "cheaper"
    entry = '{"type":"m4","capacity":"on-demand","at":1e999}'
    for name, text in (
        ("dovetail.sh/moved-from", f"m4;on-demand@{NOW - 60:.0f}"),
        (names.REMEMBERED, f'{{"v":1,"entries":[{{"moved_from":[{entry}]}}]}}'),
    ):
        assert _command(_moved_before(60, **{name: text})).method == "cheaper"


def test_a_move_that_0_1_0_remembered_is_not_undone_either() -> None:
    assert _stays(_moved_before(60, **{"dovetail.sh/moved-from": f"x/y@1,m4/on-demand@{NOW - 60:.0f}"})) == {
        WhyNot.NOT_CHEAPER: 1
    }


def test_what_was_remembered_is_handed_on() -> None:
    pair = a_pair("n0", "m16", claim={"annotations": {"dovetail.sh/moved-from": f"m2/on-demand@{NOW - 60:.0f},x/y@1"}})
    [made] = _command(a_world([pair], [a_pod("n0") for _ in range(4)])).replacements

    assert left_in(made) == [
        {"type": "m2", "capacity": "on-demand", "at": format_time(NOW - 60)},
        {"type": "m16", "capacity": "on-demand", "at": format_time(NOW)},
    ]


def test_spot_nodes_become_spot_nodes_only_where_the_gate_is_open() -> None:
    world = _with_pool(_half_empty(2, pods=9, capacity_type="spot"), requirements=SPOT_OR_NOT)
    settings = replace(SETTINGS, worth=0.1)

    assert _stays(world, settings) == {WhyNot.SPOT_TO_SPOT_OFF: 2}
    assert _command(world, replace(settings, spot_to_spot=True)).method == "cheaper"


def test_one_spot_node_needs_fifteen_types_to_choose_from() -> None:
    world = _with_pool(_half_empty(1, capacity_type="spot"), requirements=SPOT_OR_NOT)

    assert _stays(world, replace(SETTINGS, spot_to_spot=True)) == {WhyNot.SPOT_CHOICE_TOO_SMALL: 1}


def test_what_nodes_cost_beside_their_instances_counts() -> None:
    """Four m2 become one m8 at the same price, where each node costs something."""
    pairs = [a_pair(f"n{n}", "m2") for n in range(4)]
    world = a_world(pairs, [a_pod(pair.node.name, cpu="1900m") for pair in pairs])

    assert _stays(world) == {WhyNot.SAVES_TOO_LITTLE: 4}
    dear = replace(SETTINGS, cost=replace(COST, node_cost=0.3), worth=0.4)
    command = _command(world, dear)
    assert (len(command.targets), len(command.replacements), round(command.savings, 6)) == (4, 1, 0.9)


def test_the_second_look_makes_the_command_anew() -> None:
    """A pod has come meanwhile to a node that was not asked about: the same nodes go, for what is cheapest now."""
    world = _half_empty()
    plan = _plan(world)
    more = a_pod("n0")
    later = revalidate(plan, replace(world, pods={**world.pods, more.uid: more}), SETTINGS)

    assert isinstance(later, Valid)
    [command] = later.plan.commands
    assert sum(len(r.pods) for r in command.replacements) == 10
    assert all(later.plan.type_lists[r.type_list] for r in command.replacements)


def test_the_second_look_drops_what_saves_nothing_any_more() -> None:
    world = _half_empty()
    plan = _plan(world)
    full = [a_pod(f"n{n}", cpu="12") for n in range(3)]
    later = revalidate(plan, replace(world, pods={**world.pods, **{p.uid: p for p in full}}), SETTINGS)

    assert isinstance(later, Invalid)
    assert later.message == "nothing is saved by it any more"


def test_the_second_look_keeps_the_nodes_that_are_still_candidates() -> None:
    world = _half_empty()
    plan = _plan(world)
    held = next(replace(pod, do_not_disrupt="true") for pod in world.pods.values() if pod.node_name == "n0")
    later = revalidate(plan, replace(world, pods={**world.pods, held.uid: held}), SETTINGS)

    assert isinstance(later, Valid)
    [command] = later.plan.commands
    assert [t.node for t in command.targets] == ["n1", "n2"]


def test_the_second_look_drops_a_set_none_of_which_is_left() -> None:
    world = _half_empty()
    plan = _plan(world)
    held = {uid: replace(pod, do_not_disrupt="true") for uid, pod in world.pods.items()}
    later = revalidate(plan, replace(world, pods=held), SETTINGS)

    assert isinstance(later, Invalid)
    assert later.message == "3 candidates are no longer valid"


def test_the_second_look_keeps_what_a_smaller_budget_lets_go() -> None:
    world = _half_empty(4)
    later = revalidate(_plan(world), _with_pool(world, budgets=(Budget(nodes="2"),)), SETTINGS)

    assert isinstance(later, Valid)
    [command] = later.plan.commands
    assert len(command.targets) == 2


def test_pods_do_not_go_to_a_node_that_is_not_up() -> None:
    """It has room for all of them, and nobody is certain that it comes: without it the set is still cheaper."""
    starting = a_pair("n9", "m16")
    labels = {key: value for key, value in starting.node.labels.items() if key != names.INITIALIZED}
    starting = replace(starting, node=replace(starting.node, labels=labels))
    world = a_world(
        [a_pair("n0", "m16"), a_pair("n1", "m16"), starting], [a_pod(name) for name in ("n0", "n1") for _ in range(3)]
    )
    command = _command(world)

    assert [t.node for t in command.targets] == ["n0", "n1"]
    assert sum(len(r.pods) for r in command.replacements) == 6


def test_a_node_is_measured_by_what_its_pods_may_be_launched_as() -> None:
    """Both are full of on-demand nodes. The pods of one may be nowhere else, those of the other may be on spot."""
    bound = {"node_selector": ((names.CAPACITY_TYPE, names.CAPACITY_ON_DEMAND),)}
    pods = [a_pod(node, shape=bound if node == "n0" else {}) for node in ("n0", "n1") for _ in range(8)]
    world = _with_pool(a_world([a_pair("n0"), a_pair("n1")], pods), requirements=SPOT_OR_NOT)
    round_ = Round(world, SETTINGS)
    candidates = round_.screening.candidates(False)
    worth = round_.simulator.worth(candidates)
    by_node = {c.name: round(sum(worth[pod.key] for pod in c.pods), 6) for c in candidates}

    assert by_node == {"n0": 0.4, "n1": 0.2}
    assert [[c.name for c in part] for part in in_parts(round_, candidates, worth)] == [["n1"], ["n0"]]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes each set had for which cheaper ones were looked for."""
    asked: list[int] = []
    simulate = PlacementSimulator.simulate

    def counted(self: PlacementSimulator, candidates: Sequence[Candidate], **how: Any) -> Simulation:
        if how.get("cheaper"):
            asked.append(len(candidates))
        return simulate(self, candidates, **how)

    monkeypatch.setattr(PlacementSimulator, "simulate", counted)
    return asked


def test_where_nothing_can_be_gained_nothing_is_searched(searches: list[int]) -> None:
    pairs = [a_pair(f"n{n}") for n in range(6)]
    world = a_world(pairs, [a_pod(pair.node.name) for pair in pairs for _ in range(8)])

    assert _stays(world) == {WhyNot.SAVES_TOO_LITTLE: 6}
    assert searches == []


def test_a_round_without_a_gain_is_over_after_some_searches(searches: list[int]) -> None:
    """Seven cpus are worth less than an m8 costs, and fit on nothing cheaper, alone or together."""
    pairs = [a_pair(f"n{n:02}") for n in range(60)]
    world = a_world(pairs, [a_pod(pair.node.name, cpu="7") for pair in pairs])

    assert choose(world, replace(SETTINGS, worth=0.05), never).kind == "nothing_to_do"
    assert len(searches) == MISSES


def test_a_round_ends_with_what_it_has_when_its_time_is_up() -> None:
    """The stopwatch rings before the second part is asked about."""
    world = _with_pool(_half_empty(30), budgets=(Budget(nodes="100%"),))
    asked, looks = list[float](), iter(range(100))

    def stopwatch(seconds: float) -> Callable[[], bool]:
        asked.append(seconds)
        return (lambda: next(looks) >= 1) if seconds == 7.0 else never

    cost = replace(COST, stopwatch=stopwatch)
    found = _command(world, replace(SETTINGS, cost=cost, cheaper_seconds=7.0))
    assert asked[0] == 7.0
    assert 0 < len(found.targets) < len(_command(world).targets)


def test_no_node_rides_along_on_what_others_save() -> None:
    """A full node among others that are half empty."""
    pairs = [a_pair(f"n{n}", "m16") for n in range(8)]
    pods = [*(a_pod("n3") for _ in range(16)), *(a_pod(f"n{n}", cpu="2") for n in range(8) if n != 3)]
    targets = [t.node for t in _command(a_world(pairs, pods)).targets]

    assert "n3" not in targets
    assert len(targets) >= 4


def test_what_is_planned_for_a_node_is_explained() -> None:
    found = explain_node(_half_empty(), SETTINGS, "n1")

    assert found.goes_for == ("cheaper",)
    assert found.step is not None
    assert step_words(found.step, "n1") == (
        "it leaves together with n0, n2 for 2 new nodes: saves $1.9000/h of $2.4000/h and moves 9 pods"
    )
    assert explain_node(_half_empty(), DisruptionSettings(), "n1").step is None


def test_where_nobody_asks_for_the_policy_nothing_is_compiled_for_it() -> None:
    round_ = Round(_half_empty(), DisruptionSettings())

    assert round_.simulator.cost_pools == {}
    assert "index" not in round_.simulator.__dict__


def test_a_decision_is_the_same_however_often_it_is_made() -> None:
    world = _half_empty(6)

    assert decide(world, SETTINGS, never).choice == decide(world, SETTINGS, never).choice
