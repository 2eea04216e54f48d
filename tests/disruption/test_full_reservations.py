"""Nodes whose only place is the one that they hold in a full capacity reservation (DIS-201 to DIS-204)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from dovetail.disruption.choose import Decision, decide
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan
from dovetail.model import names
from dovetail.model.nodes import RepairPolicy
from dovetail.model.pods import Expression, Pod
from dovetail.model.pools import Budget, InstanceType, NodePool, Offering
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import NODES
from worlds.disruption import NOW, Pair, a_pair, a_pod, a_pool, a_type, a_world, an_offering, condition

ID: Final = "test.sh/reservation-id"
WELL_KNOWN: Final = names.WELL_KNOWN_LABELS | {ID}
CLOSED: Final = DisruptionSettings(repairs=True, well_known=WELL_KNOWN)
OPEN: Final = replace(CLOSED, terminates_first=frozenset(DisruptionReason))
RESERVED_ONLY: Final = (Expression(key=names.CAPACITY_TYPE, operator="In", values=(names.CAPACITY_RESERVED,)),)
EITHER: Final = (Expression(key=names.CAPACITY_TYPE, operator="In", values=("reserved", "on-demand")),)
FULL: Final = "static NodePool's capacity reservations are full and cannot stage a replacement"
SICK: Final = RepairPolicy(condition="Ready", status="False", toleration=1800.0, grace=600.0)


def offered(*reservations: tuple[str, int], closed: Sequence[str] = (), on_demand: bool = True) -> InstanceType:
    """The type m8, on demand and out of reservations with so many instances left; those that are `closed` have none,
    for another reason than that they are full."""
    plain = a_type("m8", 8, 0.4, zones=("z1",))
    found = [replace(an_offering("z1", "on-demand", 0.4), available=on_demand)]
    for name, left in reservations:
        one = an_offering("z1", names.CAPACITY_RESERVED, 0.00001, available=left > 0 and name not in closed)
        asks = (*one.requirements, Expression(key=ID, operator="In", values=(name,)))
        full = left <= 0 and name not in closed
        found.append(replace(one, requirements=asks, reservation_capacity=left, full=full))
    kinds = Expression(key=names.CAPACITY_TYPE, operator="In", values=("on-demand", "reserved"))
    others = [each for each in plain.requirements if each.key != names.CAPACITY_TYPE]
    ids = tuple(name for name, _ in reservations)
    return replace(
        plain,
        requirements=(*others, kinds, Expression(key=ID, operator="In", values=ids)),
        offerings=tuple[Offering, ...](found),
    )


def reserved(name: str, reservation: str = "r", *, why: str = "", pool: str = "a", **changes: Any) -> Pair:
    """A node in a reservation; `why`: it has drifted, or is sick."""
    pair = a_pair(
        name, pool=pool, capacity_type="reserved", also=(names.DRIFTED,) if why == "Drifted" else (), **changes
    )
    kept = {ID: reservation}
    claim = replace(pair.claim, labels={**pair.claim.labels, **kept})
    node = replace(pair.node, labels={**pair.node.labels, **kept})
    if why == "Unhealthy":
        node = replace(node, conditions=(condition("Ready", changed=NOW - 7200, status="False"),))
    return Pair(node=node, claim=claim)


def world_of(
    pairs: Sequence[Pair],
    *pools: NodePool,
    types: Sequence[InstanceType] = (offered(("r", 0)),),
    pods: Sequence[Pod] | None = None,
) -> Snapshot:
    given = [a_pod(pair.node.name, "6") for pair in pairs] if pods is None else pods
    made = pools or (a_pool(requirements=RESERVED_ONLY, consolidate_after=None),)
    return replace(a_world(pairs, given, made, types=types), repair_policies=(SICK,))


def well(count: int, pool: str = "a", reservation: str = "r") -> list[Pair]:
    return [reserved(f"{pool}-well{number}", reservation, pool=pool) for number in range(count)]


def static(name: str = "a", replicas: int = 10, **changes: Any) -> NodePool:
    return a_pool(name, **{"requirements": RESERVED_ONLY, "replicas": replicas, "limits": {NODES: 20}, **changes})


def commands(world: Snapshot, settings: DisruptionSettings = OPEN) -> tuple[DisruptionCommand, ...]:
    choice = decide(world, settings, never).choice
    return choice.commands if isinstance(choice, DisruptionPlan) else ()


def left_first(world: Snapshot, settings: DisruptionSettings = OPEN) -> list[tuple[str, str]]:
    """The nodes that leave before their replacement, with the reason why."""
    found = commands(world, settings)
    assert all(len(each.targets) == 1 and not each.replacements for each in found if each.terminates_first)
    return [(each.targets[0].node, each.terminates_first) for each in found if each.terminates_first]


def events(found: Decision) -> dict[str, str]:
    """What the Events of nodes say of a disruption that is blocked."""
    return {n.name: n.message for n in found.notices if (n.kind, n.reason) == ("Node", "DisruptionBlocked")}


def examples(found: Decision) -> str:
    assert not isinstance(found.choice, DisruptionPlan)
    return "; ".join(each for refusal in found.choice.refusals for each in refusal.examples)


REASONS: Final = pytest.mark.parametrize("why", ["Drifted", "Unhealthy"])


@REASONS
@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_a_node_in_a_full_reservation_says_so_or_leaves_before_its_replacement(why: str, kind: str) -> None:
    """DIS-201, DIS-202: behind a gate for each reason; one of two that are due."""
    pairs = [reserved("n1", why=why), reserved("n2", why=why), *well(8)]
    world = world_of(pairs, *([static()] if kind == "static" else ()))

    closed = decide(world, CLOSED, never)
    [(node, reason)] = left_first(world)

    assert (node, reason) == ("n1", "no-reserved-capacity")
    assert not isinstance(closed.choice, DisruptionPlan), "no claim is made that cannot launch"
    assert events(closed)["n1"] == FULL if kind == "static" else "reservation r is full" in events(closed)["n1"]
    other = {"Drifted": DisruptionReason.UNHEALTHY, "Unhealthy": DisruptionReason.DRIFTED}[why]
    assert left_first(world, replace(OPEN, terminates_first=frozenset({other}))) == []


@REASONS
@pytest.mark.parametrize("kind", ["static", "dynamic"])
@pytest.mark.parametrize("room", ["reservation", "another", "on-demand"])
def test_where_there_is_another_place_the_replacement_comes_first(why: str, kind: str, room: str) -> None:
    types = {
        "reservation": offered(("r", 1)),
        "another": offered(("r", 0), ("other", 1)),
        "on-demand": offered(("r", 0)),
    }[room]
    asks = EITHER if room == "on-demand" else RESERVED_ONLY
    pool = static(requirements=asks) if kind == "static" else a_pool(requirements=asks, consolidate_after=None)
    pairs = [reserved("n1", why=why), *well(9)]

    found = commands(world_of(pairs, pool, types=(types,)))

    assert [(len(each.replacements), each.terminates_first) for each in found] == [(1, "")]


def test_a_static_pool_replaces_no_more_first_than_its_reservations_have_left() -> None:
    pairs = [*(reserved(f"n{number}", why="Drifted") for number in range(3)), *well(7)]

    found = commands(world_of(pairs, static(), types=(offered(("r", 2)),)))

    assert [len(each.replacements) for each in found] == [1, 1]


@REASONS
@pytest.mark.parametrize("kind", ["static", "dynamic"])
@pytest.mark.parametrize("where", ["shortage", "on-demand", "another"])
def test_who_frees_no_place_that_its_replacement_could_take_stays(why: str, kind: str, where: str) -> None:
    """DIS-203: its reservation takes nobody for another reason; it is on demand, with an old label or none; or it is
    in a reservation that is offered no more."""
    pair = reserved("n1", "gone" if where == "another" else "r", why=why)
    if where == "on-demand":
        bought = {names.CAPACITY_TYPE: "on-demand"}
        pair = Pair(
            node=replace(pair.node, labels={**pair.node.labels, **bought}),
            claim=replace(pair.claim, labels={**pair.claim.labels, **bought}),
        )
    types = offered(("r", 0), closed=["r"] if where == "shortage" else [])
    world = world_of([pair, *well(9)], *([static()] if kind == "static" else ()), types=(types,))

    found = decide(world, OPEN, never)

    assert not isinstance(found.choice, DisruptionPlan)
    assert "n1" in events(found)
    if kind == "static":
        assert events(found)["n1"] == FULL


def test_on_demand_that_is_short_is_waited_for() -> None:
    """As Karpenter does: the reservation is not all that the NodePool asks for."""
    world = world_of(
        [reserved("n1", why="Drifted"), *well(9)],
        static(requirements=EITHER),
        types=(offered(("r", 0), on_demand=False),),
    )

    assert [(len(each.replacements), each.terminates_first) for each in commands(world)] == [(1, "")]


def test_the_one_that_frees_a_place_goes_before_those_that_do_not() -> None:
    old = [reserved(f"m{number}", "gone", why="Drifted") for number in range(3)]
    pool = static(replicas=4, budgets=(Budget(nodes="1"),))
    world = world_of([*old, reserved("n1", why="Drifted")], pool)

    found = decide(world, OPEN, never)

    assert left_first(world) == [("n1", "no-reserved-capacity")]
    assert events(found)["m0"] == FULL


AWAY: Final = ("leaving", "marked", "starting", "rebooting", "launching")


def away(how: str, pool: str) -> Pair:
    """Another node of the reservation, or a claim that may become one."""
    if how == "launching":
        pair = a_pair("late", pool=pool)
        asks = (*RESERVED_ONLY, Expression(key=ID, operator="In", values=("other", "r")))
        bare = {names.NODE_POOL: pool}
        return replace(
            pair, claim=replace(pair.claim, labels=bare, requirements=asks, provider_id="", node_name="", conditions=())
        )
    ways: dict[str, dict[str, Any]] = {
        "leaving": {"claim": {"deleting_since": NOW - 1}},
        "marked": {"claim": {"annotations": {names.OWNER: "c/disrupt/0199-1"}}},
        "rebooting": {"claim": {"annotations": {names.REBOOT_GRACE: "600s"}}},
    }
    pair = reserved("late", pool=pool, **ways.get(how, {}))
    if how == "starting":
        labels = {key: value for key, value in pair.node.labels.items() if key != names.INITIALIZED}
        pair = replace(pair, node=replace(pair.node, labels=labels))
    return pair


@REASONS
@pytest.mark.parametrize("kind", ["static", "dynamic"])
@pytest.mark.parametrize("how", AWAY)
@pytest.mark.parametrize("whose", ["its own pool", "another pool"])
def test_the_next_of_a_reservation_leaves_only_once_the_last_one_is_replaced(
    why: str, kind: str, how: str, whose: str
) -> None:
    """DIS-204: whoever shares the reservation, and whatever made the other go."""
    mine: NodePool = (
        static(replicas=11 if whose == "its own pool" else 10)
        if kind == "static"
        else a_pool(requirements=RESERVED_ONLY, consolidate_after=None)
    )
    other = a_pool("b", requirements=RESERVED_ONLY, consolidate_after=None)
    pairs = [reserved("n1", why=why), *well(9)]
    world = world_of(
        [*pairs, away(how, "a" if whose == "its own pool" else "b")],
        mine,
        other,
        pods=[a_pod(pair.node.name, "6") for pair in pairs],
    )
    if how == "launching":
        nodes = {name: node for name, node in world.nodes.items() if name != "late"}
        world = replace(world, nodes=nodes)
    whole = replace(
        world,
        claims={n: c for n, c in world.claims.items() if n != "claim-late"},
        nodes={n: node for n, node in world.nodes.items() if n != "late"},
    )
    if kind == "static":
        whole = replace(whole, pools={**whole.pools, "a": static()})

    assert left_first(world) == []
    assert left_first(whole) == [("n1", "no-reserved-capacity")]


def test_two_static_pools_of_one_reservation_let_one_node_go_together() -> None:
    pairs = [reserved("n1", why="Drifted"), reserved("n2", why="Drifted", pool="b"), *well(4), *well(4, "b")]

    assert left_first(world_of(pairs, static(replicas=5), static("b", 5))) == [("n1", "no-reserved-capacity")]


@pytest.mark.parametrize("apart", [True, False])
def test_of_two_reservations_one_node_each_goes_where_the_pods_of_one_cannot_take_the_place_of_the_other(
    apart: bool,
) -> None:
    pairs = [reserved("n1", why="Drifted"), reserved("n2", "s", why="Drifted", pool="b"), *well(8)]
    pools = [
        a_pool(name, requirements=(*RESERVED_ONLY, Expression(key=ID, operator="In", values=(kept,))))
        for name, kept in (("a", "r"), ("b", "s"))
    ]
    kept_to = {pair.node.name: ((names.NODE_POOL, pair.node.labels[names.NODE_POOL]),) for pair in pairs}
    pods = [a_pod(name, "6", shape={"node_selector": where} if apart else {}) for name, where in kept_to.items()]
    world = world_of(pairs, *pools, types=(offered(("r", 0), ("s", 0)),), pods=pods)

    assert [node for node, _ in left_first(world)] == (["n1", "n2"] if apart else ["n1"])


def test_drift_waits_while_pods_wait_for_the_place_that_would_be_free_and_repair_does_not() -> None:
    """The pods of the last one that left may be among them; a sick node would wait for a queue for ever."""
    for why, goes in (("Drifted", False), ("Unhealthy", True)):
        pairs = [reserved("n1", why=why), *well(9)]
        pods = [*(a_pod(pair.node.name, "6") for pair in pairs), a_pod(cpu="4")]
        elsewhere = [*pods[:-1], a_pod(cpu="64")]

        assert bool(left_first(world_of(pairs, pods=pods))) is goes
        assert bool(left_first(world_of(pairs, pods=elsewhere))) is True


def test_pods_that_need_more_than_the_place_keep_the_node() -> None:
    """Two pods that may not share a node any more: one of them would be left without."""
    pairs = [reserved("n1", why="Drifted"), *well(9)]
    pods = [a_pod(pair.node.name, "6") for pair in pairs[1:]]
    both = [a_pod("n1", "6"), a_pod("n1", "6")]

    assert left_first(world_of(pairs, pods=[*pods, *both])) == []
    assert left_first(world_of(pairs, pods=[*pods, both[0]])) == [("n1", "no-reserved-capacity")]


@REASONS
def test_an_explanation_says_for_whom_it_waits(why: str) -> None:
    world = world_of(
        [reserved("n1", why=why), *well(8), away("starting", "a")],
        pods=[a_pod("n1", "6")] + [a_pod(f"a-well{number}", "6") for number in range(8)],
    )

    assert "n1: No node leaves first: late is not up yet" in examples(decide(world, OPEN, never))


@pytest.mark.parametrize(("larger", "kind"), [((), "on-demand"), ((("s", 5),), "reserved")])
def test_a_replacement_is_on_demand_where_reservations_are_of_too_few_types(
    larger: tuple[tuple[str, int], ...], kind: str
) -> None:
    """PLQ-70: a claim for the reservation of one type could not have two to choose from."""
    two = (*EITHER, Expression(key=names.INSTANCE_TYPE, operator="Exists", min_values=2))
    other = [
        replace(each, values=("m16",)) if each.key == names.INSTANCE_TYPE else each
        for each in offered(*larger).requirements
    ]
    types = (offered(("r", 5)), replace(offered(*larger), name="m16", requirements=tuple(other)))
    pair = a_pair("n1", also=(names.DRIFTED,))

    [command] = commands(world_of([pair], a_pool(requirements=two, consolidate_after=None), types=types))

    [replacement] = command.replacements
    assert {e.key: e.values for e in replacement.requirements}[names.CAPACITY_TYPE] == (kind,)
