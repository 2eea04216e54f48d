"""Which method decides, what each pool is limited by, and how large a command may be (DIS-2, DIS-76 to DIS-78,
DIS-107)."""

from dataclasses import replace
from typing import Any

import pytest

from acceptance.karpenter import KARPENTER
from dovetail.disruption.choose import NothingToDo, choose, decide
from dovetail.disruption.methods.emptiness import by_ratio
from dovetail.disruption.methods.single_node import pools_alternating
from dovetail.disruption.revalidate import Valid, look_again
from dovetail.disruption.rounds import Round, never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.pools import Budget, Catalogue
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import NODES, parse_resources
from worlds.disruption import (
    NOW,
    TYPES,
    Pair,
    a_pair,
    a_pod,
    a_pool,
    a_type,
    a_world,
    condition,
)

SETTINGS = DisruptionSettings()


def plan(world: Snapshot) -> DisruptionPlan:
    choice = choose(world, SETTINGS, never)
    assert isinstance(choice, DisruptionPlan), choice
    return choice


def a_drifted(name: str, since: float = NOW - 60, **changes: Any) -> Pair:
    return a_pair(name, also=[condition(names.DRIFTED, changed=since)], **changes)


def test_an_empty_node_that_has_drifted_goes_as_empty() -> None:
    """DIS-2, DIS-67, DIT-30: unless its pool is never consolidated."""
    world = a_world([a_drifted("n1")])
    assert [c.reason for c in plan(world).commands] == ["Empty"]
    never_quiet = replace(world, pools={"a": a_pool(consolidate_after=None)})
    assert [c.reason for c in plan(never_quiet).commands] == ["Drifted"]


def test_drift_comes_before_consolidation() -> None:
    """DIS-2: the node that could be consolidated waits for the next decision."""
    world = a_world([a_pair("n1", "m16"), a_drifted("n2", type_name="m16")], [a_pod("n1"), a_pod("n2")])
    assert [(c.reason, c.targets[0].node) for c in plan(world).commands] == [("Drifted", "n2")]
    undrifted = a_world([a_pair("n1", "m16")], [a_pod("n1")])
    assert [c.reason for c in plan(undrifted).commands] == ["Underutilized"]


def test_a_rejected_command_of_several_nodes_is_published_for_each() -> None:
    """DIS-140, DIQ-1: upstream forgets the nodes of such a command."""
    pairs = [a_pair(f"n{i}", "m8") for i in range(3)]
    world = a_world(pairs, [a_pod(f"n{i}", "5") for i in range(3)])
    found = plan(world)
    closed = replace(world, now=NOW + 15, pools={"a": a_pool(budgets=(Budget(nodes="0"),))})

    said = look_again(found, Round(closed, SETTINGS)).notices

    rejected = {(n.kind, n.name, n.message) for n in said if n.reason == "ConsolidationRejected"}
    assert len(found.commands[0].targets) == 3
    assert {(kind, name) for kind, name, _ in rejected} == {
        *(("Node", f"n{i}") for i in range(3)),
        *(("NodeClaim", f"claim-n{i}") for i in range(3)),
    }
    message = next(message for _, name, message in rejected if name == "n0")
    assert message.startswith("Consolidation rejected: replace: [n0] (part of 3-node consolidation), reason: budget")


def test_only_the_chosen_command_is_published_as_a_candidate() -> None:
    """DIS-100: upstream publishes every probe of the search."""
    pairs = [a_pair(f"n{i}", "m8") for i in range(6)]
    decision = decide(a_world(pairs, [a_pod(f"n{i}", "5") for i in range(6)]), SETTINGS, never)

    assert isinstance(decision.choice, DisruptionPlan)
    [command] = decision.choice.commands
    published = {n.name for n in decision.notices if n.reason == "ConsolidationCandidate" and n.kind == "Node"}
    assert command.replacements
    assert published == {t.node for t in command.targets}


def test_no_command_is_chosen_whose_launch_is_certain_to_fail() -> None:
    """DIQ-9: spot is demanded where it is allowed; without any spot offering the launch could only fail."""
    types = [
        replace(each, offerings=tuple(o for o in each.offerings if "spot" not in o.requirements[0].values))
        for each in TYPES
    ]
    world = a_world([a_pair("n1", "m16")], [a_pod("n1")], pools=[a_pool(requirements=())], types=types)
    assert isinstance(choose(world, SETTINGS, never), NothingToDo)
    on_demand = replace(world, pools={"a": a_pool()})
    assert len(plan(on_demand).commands[0].replacements) == 1


def test_at_most_a_hundred_nodes_leave_in_one_command() -> None:
    """DIQ-7: upstream's search admits one more."""
    pairs = [a_pair(f"n{i:03}") for i in range(105)]
    pods = [a_pod(f"n{i:03}", "10m") for i in range(105)]
    [command] = plan(a_world(pairs, pods, types=TYPES[2:3])).commands
    assert (command.method, len(command.targets)) == ("multi", 100)


def test_a_static_pool_gives_up_its_earliest_drift_first() -> None:
    """DIQ-19: upstream takes any."""
    pool = a_pool(replicas=3, budgets=(Budget(nodes="1"),))
    pairs = [a_drifted("n1", NOW - 10), a_drifted("n2", NOW - 30), a_drifted("n3", NOW - 20)]
    world = a_world(pairs, [a_pod(p.node.name) for p in pairs], pools=[pool])
    assert [c.targets[0].node for c in plan(world).commands] == ["n2"]


def test_several_static_pools_drift_at_once_and_each_within_its_own_limit() -> None:
    """DIS-77, DIT-55, DIT-58."""
    budgets = (Budget(nodes="1"),)
    pools = [
        a_pool("a", replicas=2, budgets=budgets),
        a_pool("b", replicas=2),
        a_pool("c", replicas=2, limits={NODES: 2}),
    ]
    pairs = [a_drifted(f"{pool}{i}", pool=pool) for pool in "abc" for i in range(2)]
    commands = plan(a_world(pairs, pools=pools)).commands
    assert [c.targets[0].pool for c in commands] == ["a", "b", "b"]


@pytest.mark.parametrize("broken", [Catalogue(error="no"), Catalogue()])
def test_a_pool_that_cannot_be_listed_leaves_the_others_as_they_are(broken: Catalogue) -> None:
    """DIS-26, DIT-74, DIT-81."""
    pairs = [a_pair("n1", "m16"), a_pair("n2", "m16", pool="b")]
    world = a_world(pairs, [a_pod("n1"), a_pod("n2", "9")], pools=[a_pool(), a_pool("b")])
    world = replace(world, catalogues={**world.catalogues, "b": broken})
    assert [t.node for t in plan(world).commands[0].targets] == ["n1"]


@pytest.mark.parametrize(("grace", "mode"), [(None, "graceful"), (0.0, "forceful"), (60.0, "eventual")])
def test_a_grace_period_names_the_way_of_termination(grace: float | None, mode: str) -> None:
    """DIS-191."""
    world = a_world([a_pair("n1", claim={"termination_grace": grace})])
    assert plan(world).commands[0].targets[0].mode == mode


def test_the_policy_is_named_for_the_reasons_that_it_decides_about() -> None:
    """DIS-190."""
    empty, drifted = a_world([a_pair("n1")]), a_world([a_drifted("n1")], [a_pod("n1")])
    found = {c.reason: c.targets[0].policy for world in (empty, drifted) for c in plan(world).commands}
    assert found == {"Empty": "when_empty_or_underutilized", "Drifted": ""}


def test_a_spot_node_is_deleted_whatever_the_gate_says() -> None:
    """DIS-106."""
    spot = names.CAPACITY_SPOT
    pairs = [a_pair("n1", capacity_type=spot), a_pair("n2", capacity_type=spot)]
    types = [a_type("m8", 8, 0.4)]
    world = a_world(pairs, [a_pod("n1"), a_pod("n2"), a_pod("n2")], pools=[a_pool(requirements=())], types=types)
    [command] = plan(world).commands
    assert ([t.node for t in command.targets], command.replacements) == (["n1"], ())


def test_without_a_ready_pool_pods_may_still_fit_on_nodes_that_stand() -> None:
    """DIS-93: upstream's simulation fails as a whole; ours says pod by pod what fits nowhere."""
    room = [a_drifted("n1"), a_pair("n2")]
    closed = [a_pool(conditions=(condition("Ready", status="False"),), consolidate_after=None)]
    fits = plan(a_world(room, [a_pod("n1")], pools=closed))
    assert [(c.targets[0].node, c.destinations) for c in fits.commands] == [("n1", ("n2",))]
    choice = choose(a_world(room, [a_pod("n1", name="p"), a_pod("n2", "7500m")], pools=closed), SETTINGS, never)
    assert isinstance(choice, NothingToDo)
    assert choice.errors == ()
    [held] = [r for r in choice.refusals if r.reason == "PodsHaveNoPlace"]
    assert "default/p" in held.examples[0]


def test_as_karpenter_does_a_simulation_without_a_ready_pool_fails_as_a_whole() -> None:
    """DIS-93, under the profile that repeats its answers."""
    closed = [a_pool(conditions=(condition("Ready", status="False"),), consolidate_after=None)]
    settings = replace(SETTINGS, profile=KARPENTER)

    choice = choose(a_world([a_drifted("n1"), a_pair("n2")], [a_pod("n1")], pools=closed), settings, never)

    assert isinstance(choice, NothingToDo)
    assert choice.errors == ("drift: no ready NodePool",)


def test_the_pool_with_the_most_to_save_comes_first() -> None:
    """DIS-116: pools take turns, in the order of their best candidates."""
    pairs = [a_pair("n1", "m8"), a_pair("n2", "m16", pool="b"), a_pair("n3", "m8", pool="b")]
    world = a_world(pairs, [a_pod(pair.node.name) for pair in pairs], pools=[a_pool("a"), a_pool("b")])
    candidates = Round(world, SETTINGS).screening.graceful

    assert [c.name for c in pools_alternating(by_ratio(candidates))] == ["n2", "n1", "n3"]


def test_a_simulation_says_what_the_annotations_of_leaving_pods_mean() -> None:
    """DIS-42: also those of nodes that leave already, which are judged in every simulation."""
    leaving = a_pair("old", claim={"deleting_since": NOW})
    pods = [
        a_pod("old", name="over", do_not_disrupt="5m"),
        a_pod("old", name="held", do_not_disrupt="2h"),
        a_pod("old", name="daemon", owner="DaemonSet", do_not_disrupt="5m"),
        a_pod("old", name="mirror", owner="Node", do_not_disrupt="5m"),
        a_pod("old", name="ended", phase="Succeeded", do_not_disrupt="5m"),
        a_pod("n1"),
    ]

    notices = decide(a_world([leaving, a_drifted("n1")], pods), SETTINGS, never).notices
    unasked = decide(a_world([leaving, a_pair("n1")], pods[:-1]), SETTINGS, never).notices

    assert sorted((n.name, n.reason) for n in notices if n.kind == "Pod") == [
        ("daemon", "DoNotDisruptGracePeriodElapsed"),
        ("held", "DoNotDisruptUntil"),
        ("over", "DoNotDisruptGracePeriodElapsed"),
    ]
    assert [n for n in unasked if n.kind == "Pod"] == []


def test_pods_of_a_leaving_node_may_land_on_a_node_that_still_comes_up() -> None:
    """DIS-89, DIT-1: others may not."""
    leaving = a_pair("old", claim={"deleting_since": NOW})
    young = a_pair("new")
    labels = {k: v for k, v in young.node.labels.items() if k != names.INITIALIZED}
    young = replace(young, node=replace(young.node, labels=labels))
    pools = [a_pool(limits={"cpu": 0}, consolidate_after=None)]
    world = a_world([leaving, young, a_drifted("n1")], [a_pod("old", "2"), a_pod("n1", "7")], pools=pools)
    choice = choose(world, SETTINGS, never)
    assert isinstance(choice, NothingToDo)
    [held] = [r for r in choice.refusals if r.reason == "PodsHaveNoPlace"]
    assert held.count == 1, "the drifted node's pod, and not the leaving node's"
    with_room = a_world(
        [leaving, young, a_drifted("n1"), a_pair("room", "m2")], [a_pod("old", "3"), a_pod("n1", "1500m")], pools=pools
    )
    for settings in (SETTINGS, DisruptionSettings(profile=KARPENTER)):
        found = choose(with_room, settings, never)
        assert isinstance(found, DisruptionPlan)
        assert [c.targets[0].node for c in found.commands] == ["n1"]


@pytest.mark.parametrize(("value", "goes"), [("true", False), ("false", True), ("1h", True), ("", True)])
def test_a_node_is_protected_by_exactly_one_value(value: str, goes: bool) -> None:
    """DIS-27, DIT-32, DIT-59: static drift too."""
    protected = {"annotations": {names.DO_NOT_DISRUPT: value}}
    empty = choose(a_world([a_pair("n1", node=protected)]), SETTINGS, never)
    static = a_world([a_drifted("n1", node=protected)], pools=[a_pool(replicas=1)])
    assert isinstance(empty, DisruptionPlan) is goes
    assert isinstance(choose(static, SETTINGS, never), DisruptionPlan) is goes


def test_a_static_pool_of_no_replicas_never_drifts() -> None:
    """DIT-59: what it has is surplus."""
    world = a_world([a_drifted("n1")], pools=[a_pool(replicas=0)])
    assert isinstance(choose(world, SETTINGS, never), NothingToDo)


def test_each_of_ten_pools_has_a_budget_of_its_own() -> None:
    """DIS-49, DIT-43."""
    letters = "abcdefghij"
    one = [a_pool(p, budgets=(Budget(nodes="1"),), consolidate_after=None) for p in letters]
    drifted = a_world([a_drifted(f"{p}{i}", pool=p) for p in letters for i in range(3)], pools=one)
    assert sorted(c.targets[0].pool for c in plan(drifted).commands) == list(letters)


@pytest.mark.parametrize(("nodes", "leaving"), [("50%", [20]), ("100%", [30]), ("0%", [])])
def test_ten_pools_of_three_nodes_are_consolidated_within_their_budgets(nodes: str, leaving: list[int]) -> None:
    """DIS-49, DIT-64: together, and a percentage is rounded up."""
    letters = "abcdefghij"
    pools = [a_pool(p, budgets=(Budget(nodes=nodes),)) for p in letters]
    pairs = [a_pair(f"{p}{i}", pool=p) for p in letters for i in range(3)]
    small = {**parse_resources({"cpu": "10m", "memory": "10Mi"}), "pods": 1}
    pods = [a_pod(pair.node.name, requests=small) for pair in pairs]
    choice = choose(a_world(pairs, pods, pools=pools), SETTINGS, never)
    commands = choice.commands if isinstance(choice, DisruptionPlan) else ()
    assert [len(command.targets) for command in commands] == leaving
    assert {command.method for command in commands} <= {"multi"}


def test_a_score_is_not_weighed_again_after_the_wait() -> None:
    """DIS-129: the node has become as dear to disturb as it can be, in a pool that costs twice as much."""
    pool = a_pool(policy="Balanced")
    world = a_world(
        [a_pair("n1"), a_pair("n2")], [a_pod("n1"), a_pod("n2"), a_pod("n2")], pools=[pool], types=TYPES[2:3]
    )
    found = plan(world)
    protected = {"annotations": {names.DO_NOT_DISRUPT: "true"}}
    full, other = a_pair("n3", "m16", node=protected), a_pair("n2", node=protected)
    costly = {u: replace(p, deletion_cost="2147483647") for u, p in world.pods.items() if p.node_name == "n1"}
    filling = a_pod("n3", "16")
    later = replace(
        world,
        now=NOW + 15,
        nodes={**world.nodes, "n2": other.node, "n3": full.node},
        claims={**world.claims, full.claim.name: full.claim},
        pods={**world.pods, **costly, filling.uid: filling},
        catalogues={"a": Catalogue(types=TYPES)},
    )

    second = look_again(found, Round(later, SETTINGS))

    assert [t.node for t in found.commands[0].targets] == ["n1"]
    assert isinstance(second.validity, Valid), second.validity
    assert isinstance(choose(later, SETTINGS, never), NothingToDo), "weighed anew it would not be worth it"
