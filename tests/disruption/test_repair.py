"""Repair as a method of disruption (GCR-20 to GCR-24)."""

from dataclasses import replace
from typing import Any, Final

import pytest

from dovetail.disruption.choose import Decision, decide
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan
from dovetail.messages.workflow_ids import disruption_id
from dovetail.model import names
from dovetail.model.nodes import RepairPolicy
from dovetail.model.pools import Budget, NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import NODES
from dovetail.placement.earlier_claims import earlier_claims
from worlds.disruption import NOW, Pair, a_pair, a_pdb, a_pod, a_pool, a_world, condition
from worlds.made_claims import made_by

MINUTE: Final = 60.0
POLICIES: Final = (
    RepairPolicy(condition="Ready", status="False", toleration=30 * MINUTE, grace=600.0),
    RepairPolicy(condition="GPU", status="False", toleration=10 * MINUTE, reason="Fatal", grace=300.0, priority=50),
    RepairPolicy(condition="GPU", status="False", toleration=10 * MINUTE, reason="Hang", grace=300.0, reboots=True),
    RepairPolicy(condition="GPU", status="False", toleration=30 * MINUTE, reason=""),
)
REPAIRS: Final = DisruptionSettings(repairs=True)
STAYS: Final = a_pool(consolidate_after=None)


def ill(name: str, minutes: float = 31, kind: str = "Ready", reason: str = "", **changes: Any) -> Pair:
    fault = condition(kind, changed=NOW - minutes * MINUTE, status="False", reason=reason or "x")
    well = () if kind == "Ready" else (condition("Ready"),)
    node = {"conditions": (*well, fault), **changes.pop("node", {})}
    return a_pair(name, node=node, **changes)


def a_fleet(*sick: Pair, well: int = 9, pool: NodePool = STAYS, pods: tuple[Any, ...] | None = None) -> Snapshot:
    """Sick nodes with a pod each among full ones."""
    pairs = [*sick, *(a_pair(f"well{number}") for number in range(well))]
    full = [a_pod(f"well{number}", "8") for number in range(well)]
    given = pods if pods is not None else tuple(a_pod(pair.node.name, "6") for pair in sick)
    return replace(a_world(pairs, [*full, *given], [pool]), repair_policies=POLICIES)


def commands(world: Snapshot, settings: DisruptionSettings = REPAIRS) -> tuple[DisruptionCommand, ...]:
    choice = decide(world, settings, never).choice
    return choice.commands if isinstance(choice, DisruptionPlan) else ()


def said(found: Decision) -> set[tuple[str, str, str, str]]:
    return {(notice.kind, notice.name, notice.reason, notice.message) for notice in found.notices}


def test_a_sick_node_is_replaced_first_and_its_drain_is_bounded_by_its_policy() -> None:
    """GCR-20: whatever do-not-disrupt on the Node says."""
    world = a_fleet(ill("n1", node={"annotations": {names.DO_NOT_DISRUPT: "true"}}))

    (command,) = commands(world)

    (target,) = command.targets
    assert (command.reason, command.method, len(command.replacements)) == ("Unhealthy", "repair", 1)
    assert (target.node, target.grace, target.condition) == ("n1", 600.0, "Ready")


def test_with_the_gate_closed_and_while_it_is_tolerated_nothing_begins() -> None:
    assert commands(a_fleet(ill("n1")), DisruptionSettings()) == ()

    choice = decide(a_fleet(ill("n1", minutes=25)), REPAIRS, never).choice
    assert not isinstance(choice, DisruptionPlan) and choice.next_due == NOW + 5 * MINUTE


def test_one_at_a_time_the_highest_priority_first_until_age_makes_up_for_it() -> None:
    """GCR-21."""
    old, fatal = ill("n1", minutes=35), ill("n2", minutes=11, kind="GPU", reason="Fatal")
    older = ill("n1", minutes=95)

    assert [[t.node for t in c.targets] for c in commands(a_fleet(old, fatal, well=20))] == [["n2"]]
    assert [[t.node for t in c.targets] for c in commands(a_fleet(older, fatal, well=20))] == [["n1"]]


def test_a_fault_that_a_reboot_clears_is_rebooted_in_place() -> None:
    """GCR-19."""
    (command,) = commands(a_fleet(ill("n1", minutes=11, kind="GPU", reason="Hang")))

    assert (command.reboots, command.replacements, command.summary) == (True, (), "reboot: [n1] (savings: $0.00)")


@pytest.mark.parametrize(
    ("budget", "goes"),
    [
        (Budget(nodes="0", reasons=("Unhealthy",)), False),
        (Budget(nodes="0"), False),
        (Budget(nodes="1", reasons=("Unhealthy",)), True),
        (Budget(nodes="0", reasons=("Drifted",)), True),
    ],
)
def test_budgets_pace_it_and_sick_nodes_do_not_use_up_their_own(budget: Budget, goes: bool) -> None:
    """GCR-22: else the first sick node would hold up its own repair."""
    world = a_fleet(ill("n1"), ill("n2", minutes=20), pool=a_pool(consolidate_after=None, budgets=(budget,)))

    assert bool(commands(world)) is goes


def test_a_node_that_is_being_rebooted_uses_up_the_budget() -> None:
    pool = a_pool(consolidate_after=None, budgets=(Budget(nodes="1"),))
    rebooted = ill("n2", claim={"annotations": {names.REBOOT_GRACE: "600s"}})

    assert commands(a_fleet(ill("n1"), rebooted, pool=pool)) == ()
    assert len(commands(a_fleet(ill("n1"), pool=pool))) == 1


def test_a_node_that_was_never_initialised_needs_no_budget() -> None:
    """GCR-22: it runs nothing to protect, and nothing else replaces it."""
    pool = a_pool(consolidate_after=None, budgets=(Budget(nodes="0"),))
    labels = {key: value for key, value in a_pair("n1").node.labels.items() if key != names.INITIALIZED}

    (command,) = commands(a_fleet(ill("n1", node={"labels": labels}), pool=pool, pods=()))
    assert (command.targets[0].node, command.replacements) == ("n1", ())


def test_more_than_a_fifth_of_a_pool_stops_its_repair_and_node_claim_and_pool_say_so() -> None:
    """GCR-23."""
    world = a_fleet(ill("n1"), ill("n2"), ill("n3", minutes=1), well=6)
    found = decide(world, REPAIRS, never)
    message = 'more than 20% of nodes in nodepool "a" are unhealthy'

    assert not isinstance(found.choice, DisruptionPlan)
    expected = {("Node", "n1"), ("NodeClaim", "claim-n1"), ("NodePool", "a")}
    assert {(kind, name, "NodeRepairBlocked", message) for kind, name in expected} <= said(found)
    assert len(commands(a_fleet(ill("n1"), ill("n2"), ill("n3", minutes=1), well=9))) == 1


def test_do_not_repair_keeps_it_and_is_said_once_it_is_due() -> None:
    """GCR-18."""
    kept = {"annotations": {names.DO_NOT_REPAIR: "true"}}
    message = f'Repair is blocked through the "{names.DO_NOT_REPAIR}" annotation'

    found = decide(a_fleet(ill("n1", node=kept)), REPAIRS, never)
    early = decide(a_fleet(ill("n1", minutes=1, node=kept)), REPAIRS, never)

    assert not isinstance(found.choice, DisruptionPlan)
    assert ("Node", "n1", "DisruptionBlocked", message) in said(found)
    assert message not in {words for *_, words in said(early)}


@pytest.mark.parametrize("bound", ["policy", "claim", "none"])
def test_pods_that_hold_it_leave_with_the_bound_and_need_room_before(bound: str) -> None:
    """GCR-20: a bound must be there."""
    labels = {"app": "db"}
    kind, minutes = ("Ready", 31) if bound == "policy" else ("GPU", 31)
    claim = {"termination_grace": 60.0} if bound == "claim" else {}
    pods = (a_pod("n1", "3", labels=labels), a_pod("n1", "3", do_not_disrupt="true"))
    world = a_fleet(ill("n1", minutes=minutes, kind=kind, claim=claim), pods=pods)
    pdb = a_pdb(labels=labels, allowed=0)
    world = replace(world, pdbs={f"{pdb.namespace}/{pdb.name}": pdb})

    found = decide(world, REPAIRS, never)

    message = "Repair requires a termination grace period to bypass blocking pods"
    assert (("Node", "n1", "DisruptionBlocked", message) in said(found)) is (bound == "none")
    if bound != "none":
        assert isinstance(found.choice, DisruptionPlan)
        (command,) = found.choice.commands
        assert {pod.uid for pod in command.replacements[0].pods} == {pod.uid for pod in pods}


def test_a_claim_without_a_pool_is_left_alone() -> None:
    """GCR-24."""
    pair = ill("n1")
    bare = {key: value for key, value in pair.claim.labels.items() if key != names.NODE_POOL}
    of_node = {key: value for key, value in pair.node.labels.items() if key != names.NODE_POOL}
    alone = replace(pair, claim=replace(pair.claim, labels=bare), node=replace(pair.node, labels=of_node))

    assert commands(a_fleet(alone)) == ()


def test_a_node_of_a_static_pool_is_replaced_from_the_template_within_its_limit() -> None:
    room, full = ({NODES: count} for count in (11, 10))
    for limits, goes in ((room, True), (full, False)):
        pool = a_pool(replicas=10, limits=limits)
        (found,) = [commands(a_fleet(ill("n1"), pool=pool))]
        assert [c.method for c in found] == (["repair"] if goes else [])


@pytest.mark.parametrize(("reason", "goes"), [("Hang", True), ("Fatal", False)])
def test_a_pause_of_launches_holds_what_a_static_pool_replaces_and_not_what_is_rebooted(
    reason: str, goes: bool
) -> None:
    pool = a_pool(replicas=10, annotations={names.PAUSED: "launches"})

    found = commands(a_fleet(ill("n1", minutes=11, kind="GPU", reason=reason), pool=pool))

    assert [command.reboots for command in found] == ([True] if goes else [])


FIRST: Final = replace(REPAIRS, terminates_first=frozenset(DisruptionReason))
AT_LIMIT: Final = "static NodePool is at its node limit and cannot stage a replacement"


def a_full_static(*sick: Pair, well: int = 9, **pool: Any) -> Snapshot:
    count = len(sick) + well
    return a_fleet(*sick, well=well, pool=a_pool(**{"replicas": count, "limits": {NODES: count}, **pool}))


@pytest.mark.parametrize(("reason", "name"), [("Unhealthy", "repair"), ("Drifted", "staticDrift")])
def test_a_static_pool_at_its_limit_says_so_or_lets_one_node_leave_first(reason: str, name: str) -> None:
    """DIS-77: in 1.15 behind a gate for each."""
    sick = ill("n1") if reason == "Unhealthy" else a_pair("n1", also=(names.DRIFTED,))
    other = ill("n2") if reason == "Unhealthy" else a_pair("n2", also=(names.DRIFTED,))
    world = a_full_static(sick, other)

    closed = decide(world, REPAIRS, never)
    (command,) = commands(world, FIRST)

    assert ("Node", "n1", "DisruptionBlocked", AT_LIMIT) in said(closed)
    assert not isinstance(closed.choice, DisruptionPlan)
    assert (command.method, command.reason, [t.node for t in command.targets]) == (name, reason, ["n1"])
    assert (command.replacements, command.terminates_first) == ((), "static-at-limit")
    assert command.summary.startswith("terminate-first: [n1]")


@pytest.mark.parametrize("away", ["leaving", "starting", "missing", "pool not ready"])
def test_the_next_leaves_only_once_the_last_one_is_replaced(away: str) -> None:
    pools: dict[str, Any] = {"conditions": ()} if away == "pool not ready" else {}
    if away == "missing":
        pools = {"replicas": 12, "limits": {NODES: 11}}
    starting = {"labels": {k: v for k, v in a_pair("n2").node.labels.items() if k != names.INITIALIZED}}
    other = {
        "leaving": a_pair("n2", claim={"deleting_since": NOW - 1}),
        "starting": a_pair("n2", node=starting),
    }.get(away, a_pair("n2"))

    assert not any(c.reason == "Unhealthy" for c in commands(a_full_static(ill("n1"), other, **pools), FIRST))


def test_nodes_that_were_never_up_and_are_sick_do_not_wait_for_each_other() -> None:
    """And the drift of another waits for them."""
    labels = {k: v for k, v in a_pair("n1").node.labels.items() if k != names.INITIALIZED}
    sick = [ill(name, node={"labels": {**labels, names.HOSTNAME: name}}) for name in ("n1", "n2")]

    (command,) = commands(a_full_static(*sick), FIRST)
    tolerated = decide(a_full_static(sick[0], ill("n2", minutes=1, node={"labels": sick[1].node.labels})), FIRST, never)
    drifted = decide(a_full_static(sick[0], a_pair("n3", also=(names.DRIFTED,))), replace(FIRST, repairs=False), never)

    assert (command.reason, command.terminates_first, len(command.targets)) == ("Unhealthy", "static-at-limit", 1)
    for found, who in ((tolerated, "n2"), (drifted, "n1")):
        assert not isinstance(found.choice, DisruptionPlan)
        says = {example for refusal in found.choice.refusals for example in refusal.examples}
        assert any(each.endswith(f"No node leaves first: {who} is not up yet") for each in says)


@pytest.mark.parametrize("age", [60.0, 3600.0])
def test_a_node_that_should_be_up_by_now_and_holds_up_the_others_is_named_in_an_event(age: float) -> None:
    labels = {k: v for k, v in a_pair("n2").node.labels.items() if k != names.INITIALIZED}
    stuck = a_pair("n2", node={"labels": labels}, claim={"created": NOW - age})

    found = decide(a_full_static(a_pair("n1", also=(names.DRIFTED,)), stuck), FIRST, never)

    message = "No node leaves first: n2 is not up yet"
    assert (("Node", "n1", "DisruptionBlocked", message) in said(found)) is (age > 300.0)


def test_a_static_pool_whose_limit_is_below_its_replicas_says_so() -> None:
    world = a_full_static(a_pair("n1", also=(names.DRIFTED,)), replicas=12)
    choice = decide(world, FIRST, never).choice

    assert not isinstance(choice, DisruptionPlan)
    assert "n1: No node leaves first: NodePool a has 10 of 12 replicas" in {
        example for refusal in choice.refusals for example in refusal.examples
    }


@pytest.mark.parametrize("drains", [True, False])
def test_a_replacement_that_falls_ill_is_repaired_though_the_node_before_it_still_drains(drains: bool) -> None:
    """Its pods are not ready, so a PDB holds those of the node before it: each would wait for the other for ever."""
    new = ill("new", minutes=180, kind="GPU", reason="Fatal", claim={"annotations": made_by("plan7")})
    owned = {"annotations": {names.OWNER: disruption_id("c", "plan7")}, "deleting_since": NOW - 180 * MINUTE}
    old = [a_pair("old", claim=owned)] if drains else []
    world = a_fleet(new, pods=(a_pod("new", "3", ready=False), *(a_pod(pair.node.name, "3") for pair in old)))
    pairs = {pair.claim.name: pair for pair in old}
    world = replace(
        world,
        claims={**world.claims, **{name: pair.claim for name, pair in pairs.items()}},
        nodes={**world.nodes, **{pair.node.name: pair.node for pair in pairs.values()}},
    )

    (command,) = commands(world)

    assert ([target.node for target in command.targets], len(command.replacements)) == (["new"], 1)


def test_a_node_whose_device_never_comes_is_repaired_though_a_pod_waits_for_it() -> None:
    """Another pod runs there, so it is not given up as one that never came up. The pod is planned for anew then."""
    waits, runs = a_pod(cpu="4"), a_pod("n1", "1")
    labels = {key: value for key, value in a_pair("n1").node.labels.items() if key != names.INITIALIZED}
    notes = {**made_by("p", reason="provisioned"), names.PLANNED_PODS: f"{waits.uid},{runs.uid}"}
    sick = ill("n1", minutes=120, kind="GPU", reason="Fatal", node={"labels": labels}, claim={"annotations": notes})
    up = condition(names.INITIALIZED_CONDITION, status="Unknown", reason="ResourceNotRegistered")
    others = tuple(each for each in sick.claim.conditions if each.type != names.INITIALIZED_CONDITION)
    sick = replace(sick, claim=replace(sick.claim, conditions=(*others, up)))
    world = a_fleet(sick, pods=(waits, runs))

    (command,) = commands(world)
    leaving = replace(world, claims={**world.claims, "claim-n1": replace(sick.claim, deleting_since=NOW)})

    assert [target.node for target in command.targets] == ["n1"]
    assert earlier_claims(world, [waits], {}, 3).awaited == {waits.uid: "claim-n1"}
    assert earlier_claims(leaving, [waits], {}, 3).awaited == {}
