"""Drift in waves, static pools, graceful expiry (DIS-69 to DIS-81 and what is ours)."""

from dataclasses import replace
from typing import Any, Final

import pytest

from acceptance.karpenter import KARPENTER
from dovetail.disruption.choose import NothingToDo, choose, decide
from dovetail.disruption.explain import explain_node
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan
from dovetail.model import names
from dovetail.model.objects.workloads import Volume, VolumeClaim
from dovetail.model.pods import Expression, NodeTerm, VolumeUse
from dovetail.model.pools import Budget
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import NODES
from dovetail.rules.brake.breakers import Breaker, Happened, with_breaker
from worlds.disruption import NOW, Pair, a_pair, a_pod, a_pool, a_world, condition

NEVER_QUIET: dict[str, Any] = {"consolidate_after": None}
HASH: Final = {names.NODE_POOL_HASH: "old", names.NODE_POOL_HASH_VERSION: "v3"}


def a_drifted(name: str, since: float = NOW - 60, **changes: Any) -> Pair:
    return a_pair(name, also=[condition(names.DRIFTED, changed=since)], **changes)


def plan(world: Snapshot, settings: DisruptionSettings | None = None) -> DisruptionPlan:
    choice = choose(world, settings or DisruptionSettings(), never)
    assert isinstance(choice, DisruptionPlan), choice
    return choice


def nodes(commands: tuple[DisruptionCommand, ...]) -> list[list[str]]:
    return [[t.node for t in c.targets] for c in commands]


def a_full_pool(count: int, **pool: Any) -> Snapshot:
    """Drifted nodes of 8 cpus, each full with pods of 2."""
    pairs = [a_drifted(f"n{i:02}", since=NOW - 100 + i) for i in range(count)]
    pods = [a_pod(f"n{i:02}", "2") for i in range(count) for _ in range(4)]
    return a_world(pairs, pods, pools=[a_pool(**NEVER_QUIET, **pool)])


def test_twenty_like_nodes_go_in_one_plan_of_one_command_each() -> None:
    """Upstream takes twenty start-up times for this."""
    found = plan(a_full_pool(20))
    assert nodes(found.commands) == [[f"n{i:02}"] for i in range(20)]
    assert [len(c.replacements) for c in found.commands] == [1] * 20
    assert found.validate_after == 0.0


def test_every_replacement_holds_the_pods_of_its_own_node() -> None:
    world = a_full_pool(5)
    for command in plan(world).commands:
        node = command.targets[0].node
        assert {p.uid for p in command.replacements[0].pods} == {
            p.uid for p in world.pods.values() if p.node_name == node
        }


def test_a_wave_is_as_large_as_the_budget() -> None:
    """DIT-2, DIT-42."""
    assert len(plan(a_full_pool(10, budgets=(Budget(nodes="30%"),))).commands) == 3


def test_upstreams_way_is_one_node_per_pass_the_earliest_first() -> None:
    """DIS-70, DIS-71."""
    world = a_full_pool(5)
    assert nodes(plan(world, DisruptionSettings(profile=KARPENTER)).commands) == [["n00"]]


def test_no_two_commands_of_a_wave_count_the_same_room() -> None:
    """One node has room for four pods of 2 cpus; two drifted ones have four such pods each."""
    pairs = [a_drifted("n1", since=NOW - 2), a_drifted("n2", since=NOW - 1), a_pair("room")]
    pods = [a_pod(n, "2") for n in ("n1", "n2") for _ in range(4)]
    found = plan(a_world(pairs, pods, pools=[a_pool(**NEVER_QUIET)]))
    assert [(c.targets[0].node, c.destinations, len(c.replacements)) for c in found.commands] == [
        ("n1", ("room",), 0),
        ("n2", (), 1),
    ]


def test_a_node_whose_pods_find_no_place_delays_no_other() -> None:
    """DIT-44, DIS-91."""
    pairs = [a_drifted("n1", since=NOW - 9), a_drifted("n2")]
    pods = [a_pod("n1", "64"), a_pod("n2", "1")]
    world = a_world(pairs, pods, pools=[a_pool(**NEVER_QUIET, budgets=(Budget(nodes="1"),))])
    assert nodes(plan(world).commands) == [["n2"]]


def test_empty_nodes_go_before_others_that_drifted_earlier() -> None:
    """DIT-49."""
    pairs = [a_drifted("busy", since=NOW - 99), a_drifted("idle")]
    world = a_world(pairs, [a_pod("busy")], pools=[a_pool(**NEVER_QUIET, budgets=(Budget(nodes="1"),))])
    assert nodes(plan(world).commands) == [["idle"]]


def test_a_replacement_on_its_way_is_no_destination_for_others() -> None:
    """Upstream skips the second node until the first replacement is up (DIS-89), or gives it away."""
    marked = a_drifted("n1", claim={"annotations": {names.OWNER: "c/disrupt/p1"}, "deleting_since": None})
    planned = a_pod("n1", "2")
    made = {names.PLAN: "p1/0", names.PLANNED_PODS: planned.uid}
    coming = a_pair("new", claim={"annotations": made}, node={"labels": {**a_pair("new").node.labels}})
    coming = replace(coming, node=replace(coming.node, labels={**coming.claim.labels, names.REGISTERED: "true"}))
    world = a_world([marked, coming, a_drifted("n2")], [planned, a_pod("n2", "2")], pools=[a_pool(**NEVER_QUIET)])
    found = plan(world).commands
    assert [(c.targets[0].node, len(c.replacements)) for c in found] == [("n2", 1)]
    assert {p.uid for p in found[0].replacements[0].pods} == {p.uid for p in world.pods.values() if p.node_name == "n2"}


def test_a_ready_replacement_keeps_its_room_while_its_pods_are_on_their_way() -> None:
    """Without this, node 8 would be deleted without a replacement because the one of node 7 looks free."""
    leaving = a_drifted("n7", claim={"annotations": {names.OWNER: "c/disrupt/p7"}, "deleting_since": NOW - 1})
    ready = a_pair("new7", claim={"annotations": {names.PLAN: "p7/0", names.PLANNED_PODS: "evicted"}})
    pods = [a_pod("n8", "2") for _ in range(4)]
    found = plan(a_world([leaving, ready, a_drifted("n8")], pods, pools=[a_pool(**NEVER_QUIET)])).commands
    assert [(c.targets[0].node, c.destinations, len(c.replacements)) for c in found] == [("n8", (), 1)]


def a_local_volume(node: str) -> dict[str, Any]:
    """A volume on the disk of a node, bound to its hostname, with its claim."""
    term = NodeTerm(expressions=(Expression(key=names.HOSTNAME, operator="In", values=(node,)),))
    claim = VolumeClaim(name="data", namespace="default", volume_name="v", phase="Bound", bind_completed=True)
    return {
        "volumes": {"v": Volume(name="v", local=True, node_terms=(term,))},
        "volume_claims": {"default/data": claim},
    }


ON_LOCAL_DISK: Final = {"volumes": (VolumeUse(claim_name="data"),)}


def test_a_node_whose_pod_has_a_local_volume_is_replaced() -> None:
    """DIT-3: no other node can have that hostname, and the pod would keep its node for ever."""
    pod = a_pod("n1", shape=ON_LOCAL_DISK)
    world = a_world([a_drifted("n1")], [pod], pools=[a_pool(**NEVER_QUIET)], **a_local_volume("n1"))

    [command] = plan(world).commands
    [made] = command.replacements

    assert ([target.node for target in command.targets], [p.uid for p in made.pods]) == (["n1"], [pod.uid])
    assert [e for e in made.requirements if e.key == names.HOSTNAME] == []


def test_one_replacement_after_another_uses_the_room_of_those_before() -> None:
    """PLT-191: three nodes become one, and the pod with the local volume is no exception."""
    pods = [a_pod("n1", "5"), a_pod("n2", "1500m", shape=ON_LOCAL_DISK), a_pod("n3", "1500m")]
    pairs = [a_drifted(f"n{i}", since=NOW - 9 + i, type_name=t) for i, t in ((1, "m8"), (2, "m2"), (3, "m2"))]
    pool = a_pool(**NEVER_QUIET, budgets=(Budget(nodes="1"),))
    world = a_world(pairs, pods, pools=[pool], **a_local_volume("n2"))
    carried_out = []
    while isinstance(found := choose(world, DisruptionSettings(), never), DisruptionPlan):
        [command] = found.commands
        [target] = command.targets
        carried_out.append((target.node, command.destinations, len(command.replacements)))
        made = {names.PLAN: "p0/0", names.PLANNED_PODS: ",".join(p.uid for r in command.replacements for p in r.pods)}
        new = [a_pair(f"new-{target.node}", claim={"annotations": made, "created": NOW - 1})][
            : len(command.replacements)
        ]
        [place] = command.destinations or [pair.node.name for pair in new]
        world = replace(
            world,
            nodes={n: x for n, x in world.nodes.items() if n != target.node} | {p.node.name: p.node for p in new},
            claims={n: x for n, x in world.claims.items() if n != target.claim} | {p.claim.name: p.claim for p in new},
            pods={u: replace(p, node_name=place) if p.node_name == target.node else p for u, p in world.pods.items()},
        )

    assert carried_out == [("n1", (), 1), ("n2", ("new-n1",), 0), ("n3", ("new-n1",), 0)]
    assert {p.node_name for p in world.pods.values()} == set(world.nodes) == {"new-n1"}


def test_drift_of_protected_pods_needs_a_grace_period() -> None:
    """DIT-46, DIS-72: blocked pods are left out, so nothing is made for them."""
    protected: dict[str, Any] = {"do_not_disrupt": "true"}
    without = a_world([a_drifted("n1")], [a_pod("n1", **protected)], pools=[a_pool(**NEVER_QUIET)])
    given = a_world(
        [a_drifted("n1", claim={"termination_grace": 60.0})], [a_pod("n1", **protected)], pools=[a_pool(**NEVER_QUIET)]
    )
    assert isinstance(choose(without, DisruptionSettings(), never), NothingToDo)
    assert [len(c.replacements) for c in plan(given).commands] == [0]


@pytest.mark.parametrize(
    ("replicas", "limit", "budget", "expected"),
    [
        (5, None, "2", 2),
        (5, None, "20%", 1),
        (5, 5, "100%", 0),
        (5, 6, "100%", 1),
        (4, None, "100%", 0),
        (5, 8, "100%", 3),
    ],
)
def test_a_static_pool_drifts_within_budget_replicas_and_limit(
    replicas: int, limit: int | None, budget: str, expected: int
) -> None:
    """DIT-54, DIT-56, DIT-57."""
    limits = None if limit is None else {NODES: limit}
    pool = a_pool(replicas=replicas, limits=limits, budgets=(Budget(nodes=budget),))
    choice = choose(a_world([a_drifted(f"n{i}") for i in range(5)], pools=[pool]), DisruptionSettings(), never)
    commands = choice.commands if isinstance(choice, DisruptionPlan) else ()
    assert [len(c.replacements) for c in commands] == [1] * expected


@pytest.mark.parametrize(("budget", "limit", "waves"), [("100%", None, 1), ("2", 15, 5), ("4", 12, 5), ("4", None, 3)])
def test_ten_static_nodes_are_rolled_in_as_few_waves_as_budget_and_limit_allow(
    budget: str, limit: int | None, waves: int
) -> None:
    """A place is free as soon as its node's instance is being terminated; no decision in between finds nothing."""
    limits = None if limit is None else {NODES: limit}
    pool = a_pool(replicas=10, limits=limits, budgets=(Budget(nodes=budget),))
    standing, rounds = {name: a_drifted(name) for name in (f"n{number}" for number in range(10))}, 0
    while any(pair.claim.is_true(names.DRIFTED) for pair in standing.values()):
        commands = plan(a_world(standing.values(), pools=[pool])).commands
        rounds += 1
        for [node] in nodes(commands):
            del standing[node]
            standing[f"new-{node}"] = a_pair(f"new-{node}")
    assert rounds == waves


def test_a_marked_node_whose_replacement_is_not_there_yet_leaves_no_room() -> None:
    """DIS-76, DIS-78: between a mark and its claim the place is taken, or two nodes would share one."""
    pool = a_pool(replicas=2, limits={NODES: 3})
    marked = a_drifted("n1", claim={"annotations": {names.OWNER: "c/disrupt/0199-1"}})
    choice = choose(a_world([marked, a_drifted("n2")], pools=[pool]), DisruptionSettings(), never)
    assert isinstance(choice, NothingToDo), choice


def test_the_last_place_under_a_limit_has_one_name_for_every_plan() -> None:
    """NPL-42: two plans that know nothing of each other name the same claim; the API server gives it to one."""
    pool = a_pool(replicas=2, limits={NODES: 3})
    older, newer = (plan(a_world([a_drifted(n), a_pair("x")], pools=[pool])) for n in ("n1", "n2"))
    [one], [other] = ((r.name for c in p.commands for r in c.replacements) for p in (older, newer))
    assert one == other != ""


def test_a_static_replacement_is_the_template_and_names_no_types() -> None:
    pool = a_pool(replicas=1, annotations={names.NODE_POOL_HASH: "7", names.NODE_POOL_HASH_VERSION: "v3"})
    found = plan(a_world([a_drifted("n1")], pools=[pool]))
    made = found.commands[0].replacements[0]
    assert (found.type_lists[made.type_list], dict(made.annotations)[names.NODE_POOL_HASH]) == ((), "7")


def test_a_static_replacement_promises_nothing_because_the_launch_chooses_its_type() -> None:
    [command] = plan(a_world([a_drifted("n1")], pools=[a_pool(replicas=1)])).commands
    assert (command.savings, command.price) == (0.0, 0.4)


def test_an_expired_node_is_replaced_first_only_where_its_pool_asks() -> None:
    old = {"expire_after": 3600.0}
    pairs = [a_pair("n1", claim=old), a_pair("n2", pool="b", claim=old)]
    pools = [a_pool(**NEVER_QUIET), a_pool("b", **NEVER_QUIET, annotations={names.REPLACE_FIRST: "true"})]
    found = plan(a_world(pairs, [a_pod("n1", "5"), a_pod("n2", "5")], pools=pools)).commands
    assert [(c.reason, c.targets[0].node, len(c.replacements)) for c in found] == [("Expired", "n2", 1)]


def test_an_expired_node_of_a_static_pool_is_replaced_from_the_template_within_its_limits() -> None:
    """DIS-76, DIS-77 hold for it, though another pool could take its pods at once."""
    first, old = {names.REPLACE_FIRST: "true"}, {"expire_after": 3600.0}
    pools = [a_pool(replicas=2, limits={NODES: 3}, annotations=first), a_pool("b", **NEVER_QUIET, annotations=first)]
    pairs = [a_pair("n1", claim=old), a_pair("n2", claim=old), a_pair("n3", pool="b", claim=old)]
    world = a_world(pairs, [a_pod(name) for name in ("n1", "n2", "n3")], pools=pools)
    [command] = plan(world).commands
    assert (command.reason, command.targets[0].node) == ("Expired", "n1")
    assert [(r.pool, r.name != "") for r in command.replacements] == [("a", True)]


def test_a_closed_budget_holds_graceful_expiry() -> None:
    closed = (Budget(nodes="0", reasons=("Drifted",)),)
    pool = a_pool(**NEVER_QUIET, budgets=closed, annotations={names.REPLACE_FIRST: "true"})
    world = a_world([a_pair("n1", claim={"expire_after": 3600.0})], [a_pod("n1")], pools=[pool])
    assert isinstance(choose(world, DisruptionSettings(), never), NothingToDo)


def test_a_plan_ends_before_it_grows_too_large_for_a_history() -> None:
    world = a_full_pool(20)
    assert 0 < len(plan(world, DisruptionSettings(plan_bytes=5000)).commands) < 20
    assert len(plan(world, DisruptionSettings(wave_size=7)).commands) == 7


def test_what_a_budget_holds_back_is_a_refusal() -> None:
    world = a_full_pool(3, budgets=(Budget(nodes="0"),))
    choice = choose(world, DisruptionSettings(), never)
    assert isinstance(choice, NothingToDo)
    assert [(r.reason, r.count) for r in choice.refusals] == [("Budget", 3), ("ConsolidationDisabled", 3)]


def test_a_second_wave_starts_when_the_first_has_left() -> None:
    """Four nodes under budget 2: two waves, and nothing in between that counts the first wave's replacements."""
    world = a_full_pool(4, budgets=(Budget(nodes="2"),))
    first = plan(world)
    assert nodes(first.commands) == [["n00"], ["n01"]]
    claims, coming = dict(world.claims), dict(world.nodes)
    for number, command in enumerate(first.commands):
        old = command.targets[0].claim
        claims[old] = replace(claims[old], annotations={names.OWNER: f"c/disrupt/p{number}"})
        planned = ",".join(p.uid for p in command.replacements[0].pods)
        made = a_pair(f"new{number}", claim={"annotations": {names.PLAN: f"p{number}/0", names.PLANNED_PODS: planned}})
        claims[made.claim.name], coming[made.node.name] = made.claim, made.node
    under_way = replace(world, claims=claims, nodes=coming)
    assert isinstance(choose(under_way, DisruptionSettings(), never), NothingToDo)
    moved = {u: replace(p, node_name=f"new{p.node_name[-1]}") for u, p in world.pods.items() if p.node_name < "n02"}
    gone = {"n00", "n01"}
    after = replace(
        under_way,
        pods={**world.pods, **moved},
        nodes={n: x for n, x in coming.items() if n not in gone},
        claims={n: c for n, c in claims.items() if c.node_name not in gone},
    )
    assert nodes(plan(after).commands) == [["n02"], ["n03"]]


def test_a_pod_that_the_scheduler_bound_elsewhere_has_no_promised_room() -> None:
    """Pods of one batch land on each other's nodes; once some of those leave, the others would all look promised."""
    swapped = a_pod("n1", "5", started=NOW - 60)
    made = {"annotations": {names.PLAN: "p0/1", names.PLANNED_PODS: swapped.uid}, "created": NOW - 90}
    leaving = a_drifted("n1", claim={"annotations": {names.OWNER: "c/disrupt/p1"}})
    world = a_world([leaving, a_drifted("n2", claim=made)], [swapped, a_pod("n2", "5")], pools=[a_pool(**NEVER_QUIET)])
    assert nodes(plan(world).commands) == [["n2"]]


def test_a_wave_waits_a_moment_for_the_conditions_that_are_still_being_written() -> None:
    pool = a_pool(**NEVER_QUIET, annotations={**HASH, names.NODE_POOL_HASH: "new"})
    drifted = a_drifted("n1", since=NOW - 1, claim={"annotations": HASH})
    world = a_world([drifted, a_pair("n2", claim={"annotations": HASH})], pools=[pool])
    choice = choose(world, DisruptionSettings(), never)
    assert isinstance(choice, NothingToDo)
    assert choice.next_due == NOW + 1
    assert nodes(plan(replace(world, now=NOW + 1)).commands) == [["n1"]]


@pytest.mark.parametrize("replicas", [None, 3])
@pytest.mark.parametrize(("ago", "expected"), [(60.0, 0), (1900.0, 1)])
def test_replacements_that_failed_hold_the_drift_of_their_pool_but_for_one_try(
    replicas: int | None, ago: float, expected: int
) -> None:
    """Decision 226: the budget would let all three go; another pool is not held."""
    failed = Breaker(
        reason="Drifted", failures=tuple(Happened(NOW - ago - n, f"0000000{n}") for n in (2, 1, 0)), opened=NOW - ago
    )
    held = with_breaker(a_pool("a", replicas=replicas, budgets=(Budget(nodes="100%"),)), failed)
    other = a_pool("b", replicas=replicas, budgets=(Budget(nodes="100%"),))
    pairs = [a_drifted(f"n{i}") for i in range(3)] + [a_drifted("other", pool="b")]
    pods = [a_pod(pair.node.name, "7") for pair in pairs]
    world = a_world(pairs, pods, pools=[held, other])

    decision = decide(world, DisruptionSettings(), never)

    assert isinstance(decision.choice, DisruptionPlan)
    chosen = [target.node for command in decision.choice.commands for target in command.targets]
    assert (len(chosen), "other" in chosen) == (expected + 1, True)
    if expected:
        return
    explained = explain_node(world, DisruptionSettings(), "n2")
    words = "3 replacements for Drifted were not ready in time or did not stay so: one is tried at 2023-11-14T22:42:20Z"
    assert any(words in each.message and each.why == WhyNot.BREAKER_OPEN for each in explained.methods)
