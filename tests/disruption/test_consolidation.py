"""Consolidation: fewer or cheaper nodes (DIS-96 to DIS-119), and the second look (DIS-135)."""

from dataclasses import replace
from itertools import count
from typing import Any, cast

import pytest

from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.commands import Command
from dovetail.disruption.methods.multi_node import MULTI
from dovetail.disruption.methods.single_node import SINGLE
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.nodes.screening import screen
from dovetail.disruption.revalidate import Invalid, Valid
from dovetail.disruption.rounds import Round, never, run
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan, Seen
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.objects.workloads import DaemonSet
from dovetail.model.pods import Expression
from dovetail.model.pools import Budget, InstanceType
from dovetail.model.reasons.disruption_reasons import DisruptionReason, Invalidity
from dovetail.model.snapshot import Snapshot
from tests.disruption.second_look import revalidate
from worlds.disruption import (
    NOW,
    ON_DEMAND_ONLY,
    TYPES,
    a_pair,
    a_pdb,
    a_pod,
    a_pool,
    a_type,
    a_world,
    condition,
    sold_out,
)

SETTINGS = DisruptionSettings()
FLEXIBLE: dict[str, Any] = {"requirements": ()}


def plan(world: Snapshot, settings: DisruptionSettings = SETTINGS) -> DisruptionPlan:
    choice = choose(world, settings, never)
    assert isinstance(choice, DisruptionPlan), choice
    return choice


def refused(world: Snapshot, settings: DisruptionSettings = SETTINGS) -> set[str]:
    return {block.message for _, block in run(SINGLE, Round(world, settings)).found.blocks}


def test_pods_that_fit_elsewhere_let_their_node_go() -> None:
    """DIT-79: the node with fewer pods."""
    world = a_world([a_pair("n1"), a_pair("n2")], [a_pod("n1"), a_pod("n2"), a_pod("n2")], types=TYPES[2:3])
    command = plan(world).commands[0]
    assert (command.method, [t.node for t in command.targets], command.destinations) == ("single", ["n1"], ("n2",))


def test_a_daemon_set_that_has_room_on_no_node_that_stands_keeps_none_from_being_consolidated() -> None:
    """PLQ-69: a tenant's, for which an empty node would have room."""
    asks = DaemonSet(name="d", namespace="team", uid="d", pod=a_pod("", cpu="7", name="t"), created=1.0)
    pairs, pods = [a_pair(f"n{i}", "m8") for i in range(6)], [a_pod(f"n{i}", cpu="2") for i in range(6)]

    without = plan(a_world(pairs, pods, types=TYPES[2:3]))
    beside = plan(a_world(pairs, pods, types=TYPES[2:3], daemon_sets={"team/d": asks}))

    assert [len(command.targets) for command in without.commands] == [4]
    assert [command.targets for command in beside.commands] == [command.targets for command in without.commands]


FULL = "no subnet of its EC2NodeClass has a free address there"
LARGE_GONE = tuple(sold_out(each) if each.name in ("m8", "m16") else each for each in TYPES)
LARGE_FULL_IN_Z1 = tuple(sold_out(each, "z1", closed=FULL) if each.name in ("m8", "m16") else each for each in TYPES)
TWO_TYPES = (*ON_DEMAND_ONLY, Expression(key=names.INSTANCE_TYPE, operator="Exists", min_values=2))


@pytest.mark.parametrize(
    ("types", "node", "asks", "changes"),
    [
        (TYPES, "m8", "5", {}),
        (LARGE_GONE, "m8", "5", {}),
        (LARGE_FULL_IN_Z1, "m8", "5", {"node_selector": ((names.ZONE, "z1"),)}),
        (TYPES, "m16", "9", {"requirements": TWO_TYPES}),
        (TYPES[:2], "m8", "3.5", {}),  # the pool has no type any more that would hold both
    ],
)
@pytest.mark.parametrize("drifted", [False, True])
def test_no_node_that_runs_a_daemon_set_is_replaced_by_one_that_can_never_hold_it(
    types: tuple[InstanceType, ...], node: str, asks: str, changes: dict[str, Any], drifted: bool
) -> None:
    """PLQ-69: however long a shortage of the types that can lasts."""
    item = DaemonSet(name="o", namespace="default", uid="o", pod=a_pod("", cpu=asks, name="t"), created=1.0)
    of_pool = {key: changes[key] for key in changes if key == "requirements"}
    of_pod = {key: changes[key] for key in changes if key != "requirements"}
    pods = [a_pod("n1", shape=of_pod), a_pod("n1", cpu=asks, owner="DaemonSet")]
    pairs = [a_pair("n1", node, also=[condition(names.DRIFTED, changed=NOW - 60)] if drifted else [])]
    pool = a_pool(**of_pool, consolidate_after=None if drifted else 0.0)

    found = choose(a_world(pairs, pods, types=types, daemon_sets={"default/o": item}, pools=[pool]), SETTINGS, never)
    if drifted and types is TYPES and node == "m8":
        assert isinstance(found, DisruptionPlan)
        assert [found.type_lists[r.type_list] for c in found.commands for r in c.replacements] == [("m8", "m16")]
    else:
        assert isinstance(found, NothingToDo)


def test_a_dear_node_is_replaced_by_a_cheaper_one() -> None:
    """DIT-66."""
    found = plan(a_world([a_pair("n1", "m16")], [a_pod("n1")]))
    made = found.commands[0].replacements[0]
    assert (found.type_lists[made.type_list], found.commands[0].summary) == (
        ("m2", "m4", "m8"),
        "replace: [n1] -> [1 replacement] (savings: $0.70)",
    )


@pytest.mark.parametrize(
    ("nodes", "replacements", "text", "of_one"),
    [
        ([], 0, "no-op: []", []),
        (["n1"], 0, "delete: [n1]", ["delete: [n1]"]),
        (["n1", "n2"], 0, "delete: [n1, n2]", [f"delete: [{n}] (part of 2-node consolidation)" for n in ("n1", "n2")]),
        (["n1"], 1, "replace: [n1] -> [1 replacement]", ["replace: [n1] -> [1 replacement]"]),
        (["n1"], 2, "replace: [n1] -> [2 replacements]", ["replace: [n1] -> [2 replacements]"]),
    ],
)
def test_a_command_is_told_in_upstreams_words(
    nodes: list[str], replacements: int, text: str, of_one: list[str]
) -> None:
    """DIT-135, DIS-9: whole, and for one of its nodes."""
    world = a_world([a_pair("n1"), a_pair("n2")])
    chosen = tuple(c for c in screen(Fleet(world, SETTINGS)).graceful if c.name in nodes)
    command = Command(
        reason=DisruptionReason.UNDERUTILIZED, candidates=chosen, replacements=cast(Any, (None,) * replacements)
    )

    assert (command.text, [command.text_for(candidate) for candidate in chosen]) == (text, of_one)


def test_where_spot_is_allowed_it_is_demanded() -> None:
    """DIS-99 step 8."""
    found = plan(a_world([a_pair("n1", "m16")], [a_pod("n1")], pools=[a_pool(**FLEXIBLE)]))
    wanted = {e.key: e.values for e in found.commands[0].replacements[0].requirements}
    assert wanted[names.CAPACITY_TYPE] == ("spot",)


def test_nothing_is_replaced_by_what_might_cost_as_much() -> None:
    """DIS-101."""
    assert refused(a_world([a_pair("n1", "m2")], [a_pod("n1")])) == {"Can't replace with a cheaper node"}


SPOT = {"capacity_type": names.CAPACITY_SPOT}


def test_spot_is_not_replaced_by_spot_unless_that_is_switched_on() -> None:
    """DIT-68."""
    world = a_world([a_pair("n1", "m16", **SPOT)], [a_pod("n1")], pools=[a_pool(**FLEXIBLE)])
    assert refused(world) == {"SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"}


@pytest.mark.parametrize(("count", "goes"), [(14, False), (15, True), (18, True)])
def test_one_spot_node_needs_fifteen_cheaper_types(count: int, goes: bool) -> None:
    """DIT-67, DIT-70: and the fifteen cheapest are what is launched."""
    types = [a_type(f"t{i:02}", 2, 0.01 * (i + 1)) for i in range(count)] + [a_type("m16", 16, 9.0)]
    world = a_world([a_pair("n1", "m16", **SPOT)], [a_pod("n1")], pools=[a_pool(**FLEXIBLE)], types=types)
    settings = replace(SETTINGS, spot_to_spot=True)
    if not goes:
        assert "requires 15 cheaper" in refused(world, settings).pop()
        return
    found = plan(world, settings)
    assert found.type_lists[found.commands[0].replacements[0].type_list] == tuple(f"t{i:02}" for i in range(15))


def test_three_small_nodes_become_one() -> None:
    """DIT-95."""
    pairs = [a_pair(f"n{i}", "m8") for i in range(3)]
    world = a_world(pairs, [a_pod(f"n{i}", "5") for i in range(3)])
    command = plan(world).commands[0]
    assert (command.method, len(command.targets), len(command.replacements)) == ("multi", 3, 1)


def test_two_of_the_cheapest_never_become_a_new_one_of_their_type() -> None:
    """DIT-96, DIS-111: one goes and the other stays."""
    command = plan(
        a_world([a_pair("n1", "m2"), a_pair("n2", "m2")], [a_pod("n1", "500m"), a_pod("n2", "500m")])
    ).commands[0]
    assert (len(command.targets), command.replacements) == (1, ())


@pytest.mark.parametrize(("least", "expected"), [(1, ("multi", 2, 1)), (2, ("single", 1, 0))])
def test_a_minimum_of_types_that_a_shared_type_breaks_leaves_a_single_delete(
    least: int, expected: tuple[str, int, int]
) -> None:
    """DIT-72, DIS-109, DIS-110: two m4 could become one m2 or m4; without m4 there is one type left."""
    of_types = Expression(key=names.INSTANCE_TYPE, operator="Exists", values=(), min_values=least)
    pools = [a_pool(requirements=(*ON_DEMAND_ONLY, of_types))]
    world = a_world([a_pair("n1", "m4"), a_pair("n2", "m4")], [a_pod("n1", "500m"), a_pod("n2", "500m")], pools=pools)

    [command] = plan(world).commands

    assert (command.method, len(command.targets), len(command.replacements)) == expected


def test_the_wide_search_passes_over_a_node_that_cannot_go() -> None:
    """Upstream's prefix search ends at the first node whose pods find no place."""
    pairs = [a_pair("big", "m16"), *(a_pair(f"n{i}", "m4") for i in range(4))]
    selector = {"node_selector": ((names.HOSTNAME, "big"),)}
    pods = [a_pod("big", "100m", shape=selector), *(a_pod(f"n{i}", "500m") for i in range(4))]
    world = a_world(pairs, pods)
    wide = plan(world).commands[0]
    assert (wide.method, sorted(t.node for t in wide.targets)) == ("multi", ["n0", "n1", "n2", "n3"])


def test_a_destination_inside_its_own_quiet_time_takes_no_running_pod() -> None:
    """DIT-88, DIS-87."""
    settling = a_pair("n2", pool="b", claim={"last_pod_event": NOW - 10})
    pools = [a_pool(), a_pool("b", consolidate_after=60.0)]
    world = a_world([a_pair("n1", "m2"), settling], [a_pod("n1"), a_pod("n2")], pools=pools)
    assert isinstance(choose(world, SETTINGS, never), NothingToDo)


@pytest.mark.parametrize(
    ("pool", "claim", "gated"),
    [
        ({}, {}, True),
        ({"replicas": 1}, {}, False),
        ({"deleting_since": NOW - 60}, {}, False),
        ({"conditions": (Condition(type="Ready", status="False"),)}, {}, False),
        ({}, {"conditions": (Condition(type="Initialized", status="Unknown", changed=NOW - 10),)}, False),
    ],
    ids=["ready", "static", "deleting", "not ready", "its claim is not initialised"],
)
def test_the_quiet_time_holds_in_pools_that_take_part_and_for_claims_that_are_initialised(
    pool: dict[str, Any], claim: dict[str, Any], gated: bool
) -> None:
    """DIS-87, PLC-91."""
    quiet = replace(a_pool("b", consolidate_after=60.0), **pool)
    settling = a_pair("n2", pool="b", claim={"last_pod_event": NOW - 10, **claim})
    world = a_world([a_pair("n1", "m2"), settling], [a_pod("n1"), a_pod("n2")], pools=[a_pool(), quiet])

    assert isinstance(choose(world, SETTINGS, never), NothingToDo) == gated


def test_a_protected_pod_or_a_closed_budget_leaves_the_other_node() -> None:
    """DIT-83."""
    pods = [a_pod("n1", labels={"app": "y"}), a_pod("n2"), a_pod("n2")]
    world = a_world([a_pair("n1"), a_pair("n2")], pods, pdbs=[a_pdb(labels={"app": "y"})])
    assert [t.node for t in plan(world).commands[0].targets] == ["n2"]


def test_an_empty_node_is_never_taken_for_being_underutilized() -> None:
    """DIS-97."""
    pool = a_pool(budgets=(Budget(nodes="0", reasons=("Empty",)),))
    assert isinstance(choose(a_world([a_pair("n1"), a_pair("n2")], pools=[pool]), SETTINGS, never), NothingToDo)


@pytest.mark.parametrize(
    ("later", "reason"),
    [
        ({"pods_on": "do-not-disrupt"}, Invalidity.CHURN),
        ({"nominations": {"n1": NOW + 99}}, Invalidity.CHURN),
        ({"pools": {"a": a_pool(budgets=(Budget(nodes="0"),))}}, Invalidity.BUDGET),
        ({"pods_on": "large"}, Invalidity.SCHEDULING),
        ({"pods_on": "homeless"}, Invalidity.SCHEDULING),
    ],
)
def test_what_changed_during_the_wait_ends_the_command(later: dict[str, Any], reason: Invalidity) -> None:
    """DIS-135, DIT-93, DIT-94."""
    world = a_world([a_pair("n1"), a_pair("n2")], [a_pod("n1"), a_pod("n2"), a_pod("n2")])
    added = {
        "do-not-disrupt": a_pod("n1", do_not_disrupt="true"),
        "large": a_pod("n1", "6"),
        "homeless": a_pod("n1", "64"),
    }
    pod = added.get(later.pop("pods_on", ""))
    pods = dict(world.pods) if pod is None else {**world.pods, pod.uid: pod}
    verdict = revalidate(plan(world), replace(world, now=NOW + 15, pods=pods, **later), SETTINGS)
    assert isinstance(verdict, Invalid) and verdict.reason == reason


def test_what_did_not_change_is_carried_out() -> None:
    world = a_world([a_pair("n1"), a_pair("n2")], [a_pod("n1"), a_pod("n2"), a_pod("n2")])
    found, later = plan(world), replace(world, now=NOW + 15)
    assert revalidate(found, later, SETTINGS) == Valid(plan=replace(found, seen=Seen.of(later)))


def test_when_time_runs_out_the_last_valid_command_stands() -> None:
    """DIS-112: the first probe is answered, then the time is up."""
    world = a_world([a_pair(f"n{i}") for i in range(8)], [a_pod(f"n{i}", "100m") for i in range(8)], types=TYPES[2:3])
    asked = count(1)
    found = run(MULTI, Round(world, SETTINGS, lambda: next(asked) > 20)).found
    assert (found.error, len(found.commands)) == ("", 1)


def test_without_any_time_nothing_is_decided_and_nothing_is_wrong() -> None:
    """DIT-27."""
    world = a_world([a_pair(f"n{i}") for i in range(4)], [a_pod(f"n{i}", "100m") for i in range(4)])
    choice = choose(world, SETTINGS, lambda: True)
    assert isinstance(choice, NothingToDo) and choice.errors == ()


def test_a_node_that_other_pods_need_anyway_is_no_replacement() -> None:
    """While one plan waits, its pods count as needing a node; that node is not another plan's."""
    held, small = a_pair("held", "m16"), a_pair("n1", "m8")
    pods = [a_pod("held", "9"), a_pod("n1", "1"), a_pod("n2", "1")]
    world = a_world([held, small, a_pair("n2", "m8")], pods, disrupting=frozenset({"claim-held"}), types=TYPES[2:])
    command = plan(world).commands[0]
    assert ([t.node for t in command.targets], command.replacements) == (["n1"], ())


def test_a_pod_that_has_no_place_anyway_delays_no_disruption() -> None:
    """A pod of a leaving node that fits nowhere: removing another node makes that no worse."""
    leaving = a_pair("old", claim={"deleting_since": NOW})
    pods = [a_pod("old", "64"), a_pod("n1", "1"), a_pod("n2", "1")]
    world = a_world([leaving, a_pair("n1", "m2"), a_pair("n2", "m2")], pods)
    assert len(plan(world).commands[0].targets) == 1


def test_many_small_consolidations_wait_at_the_same_time() -> None:
    """docs/decisions/0001: the pods of nodes that a plan has taken shared new nodes with the next candidates' pods, so
    that the next plan seemed to need two nodes and was found only when the first had been carried out."""
    pairs, pods = [a_pair(f"n{i:02}", "m2") for i in range(30)], [a_pod(f"n{i:02}", cpu="1200m") for i in range(30)]
    world = a_world(pairs, pods, types=(a_type("m2", 2, 0.1), a_type("m4", 4, 0.2)))
    held: list[DisruptionPlan] = []
    taken: list[frozenset[str]] = [frozenset()]
    while isinstance(found := choose(replace(world, disrupting=taken[-1]), SETTINGS, never), DisruptionPlan):
        held.append(found)
        taken.append(taken[-1] | {t.claim for c in found.commands for t in c.targets})

    assert [(len(c.targets), len(c.replacements)) for p in held for c in p.commands] == [(3, 1)] * 10
    for found, before in zip(held, taken, strict=False):  # and each is confirmed where those before it go as well
        assert isinstance(revalidate(found, replace(world, disrupting=before), SETTINGS), Valid)
