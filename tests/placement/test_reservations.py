"""PLC-70 and PLC-183 to PLC-188: which reserved capacity a proposed node holds, and which pods wait for it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from dovetail.model import names
from dovetail.model.places.placements import Placement
from dovetail.model.pods import Expression, Pod
from dovetail.model.pools import Catalogue, InstanceType, Offering
from dovetail.model.snapshot import Snapshot
from dovetail.placement.place_pods import simulate
from dovetail.placement.proposals import proposed_nodes
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import (
    a_general_pool,
    a_shape,
    a_snapshot,
    a_type,
    a_waiting_pod,
    an_index,
    near,
    one_of,
    placed,
    term,
)

RESERVATION_ID = "karpenter.k8s.aws/capacity-reservation-id"
X = {"app": "x"}
APART = a_shape(X, anti_affinity=(near(names.HOSTNAME, app="x"),))


def reserved(type_: InstanceType, reservation: str, count: int, zone: str = "z1") -> InstanceType:
    """The type with a reservation of so many instances beside its other offerings."""
    where = (
        one_of(names.ZONE, zone),
        one_of(names.CAPACITY_TYPE, names.CAPACITY_RESERVED),
        one_of(RESERVATION_ID, reservation),
    )
    offering = Offering(requirements=where, price=0.0001, available=count > 0, reservation_capacity=count)
    others = tuple(one for one in type_.requirements if one.key != names.CAPACITY_TYPE)
    kinds = one_of(names.CAPACITY_TYPE, "on-demand", "spot", names.CAPACITY_RESERVED)
    key = one_of(RESERVATION_ID, reservation)
    return replace(type_, requirements=(*others, kinds, key), offerings=(*type_.offerings, offering))


SMALL, LARGE = a_type("small", "2", 0.1), a_type("large", "8", 0.4)


SETTINGS = PlacementSettings(well_known=names.WELL_KNOWN_LABELS | {RESERVATION_ID})


def a_world(*types: InstanceType, pods: int = 3) -> Snapshot:
    """Pods of which no two may share a node."""
    return a_snapshot([a_waiting_pod(f"p{number}", shape=APART) for number in range(pods)], types=types)


def held(placement: Placement) -> list[list[str]]:
    """The reservations that each new node may be launched into."""
    found = []
    for node in placement.new:
        requirement = node.requirements.get(RESERVATION_ID)
        found.append(sorted(requirement.values) if requirement else [])
    return sorted(found)


def waiting(placement: Placement) -> list[str]:
    """The reasons of the pods that found no place."""
    return [reason for refused in placement.refused for reason in refused.reasons]


def test_nodes_hold_a_reservation_until_none_is_left_and_the_other_pods_wait() -> None:
    """PLC-183, PLC-184, PLC-186: they do not fall back to dearer capacity."""
    found = placed(a_world(reserved(SMALL, "r", 2)), SETTINGS)

    assert (held(found), waiting(found)) == ([["r"], ["r"]], ["reserved_offering"])


def test_the_smallest_count_that_any_pool_reports_is_what_there_is() -> None:
    """PLC-70: two pools share a reservation; the view of one of them is older."""
    one, other = a_general_pool("one", weight=10), a_general_pool("other")
    world = a_snapshot([a_waiting_pod(f"p{n}", shape=APART) for n in range(3)], pools=[one, other])

    for counts in ((3, 1), (1, 3)):
        catalogues = {
            pool.name: Catalogue(types=(reserved(SMALL, "r", count),))
            for pool, count in zip((one, other), counts, strict=True)
        }
        found = placed(replace(world, catalogues=catalogues), SETTINGS)
        assert held(found) == [["r"]]


def test_a_node_that_may_be_two_types_holds_both_their_reservations() -> None:
    """PLC-185, PLC-188: one node a pass, until it is known which of the two it became."""
    found = placed(a_world(reserved(SMALL, "r-small", 1), reserved(LARGE, "r-large", 1)), SETTINGS)

    assert (held(found), len(waiting(found))) == ([["r-large", "r-small"]], 2)


def test_a_reservation_that_a_node_can_no_longer_use_is_given_back() -> None:
    """PLC-185: a second pod makes the node too large for the small type, whose reservation another node takes."""
    types = (reserved(SMALL, "r-small", 1), reserved(LARGE, "r-large", 1))
    enlarging = replace(
        a_waiting_pod("b", cpu="1"), requests={**a_waiting_pod("b", cpu="1").requests, "memory": 10 * 2**30}
    )
    pods = [a_waiting_pod("a", cpu="1.5", shape=APART), enlarging, a_waiting_pod("c", cpu="0.5", shape=APART)]

    found = placed(a_snapshot(pods, types=types), SETTINGS)

    assert (held(found), waiting(found)) == ([["r-large"], ["r-small"]], [])


def test_a_pod_that_waits_for_a_reservation_keeps_its_preferences() -> None:
    """PLC-112: without its preference it would get the reservation of the other zone."""
    first = a_waiting_pod("first", cpu="2", shape=a_shape(X, node_selector=((names.ZONE, "z1"),)))
    wishing = a_shape(X, anti_affinity=APART.anti_affinity, preferred_terms=(term(one_of(names.ZONE, "z1"), weight=1),))
    types = (reserved(SMALL, "r1", 1), reserved(a_type("other", "2", 0.1), "r2", 1, zone="z2"))

    found = placed(a_snapshot([first, a_waiting_pod("p", shape=wishing)], types=types), SETTINGS)

    assert (held(found), waiting(found)) == ([["r1"]], ["reserved_offering"])


def test_a_reservation_of_a_type_that_does_not_suit_is_not_waited_for() -> None:
    """PLC-183: the pod gets other capacity; so does one that may not be in the zone of the reservation."""
    too_large = a_snapshot([a_waiting_pod("p", cpu="4")], types=(reserved(SMALL, "r", 0), LARGE))
    elsewhere = a_shape(node_selector=((names.ZONE, "z2"),))
    other_zone = a_snapshot([a_waiting_pod("p", shape=elsewhere)], types=(reserved(SMALL, "r", 5),))

    for world in (too_large, other_zone):
        found = placed(world, SETTINGS)
        assert (held(found), waiting(found)) == ([[]], [])


def test_a_reservation_that_was_empty_from_the_start_is_not_waited_for() -> None:
    """PLC-183: an offering that is not available suits no pod."""
    found = placed(a_world(reserved(SMALL, "r", 0), pods=1), SETTINGS)

    assert (held(found), waiting(found)) == ([[]], [])


@pytest.mark.parametrize("enabled", [True, False])
def test_with_the_gate_closed_nothing_is_held(enabled: bool) -> None:
    """PLC-183: feature gate ReservedCapacity."""
    found = placed(a_world(reserved(SMALL, "r", 1), pods=2), replace(SETTINGS, reserved_capacity=enabled))

    assert held(found) == ([["r"]] if enabled else [[], []])
    assert len(waiting(found)) == (1 if enabled else 0)


def test_a_simulation_never_waits() -> None:
    """PLC-184: what a disruption asks is where its pods could go."""
    found = simulate(an_index(a_world(reserved(SMALL, "r", 1)), SETTINGS))

    assert (held(found), waiting(found)) == ([[], [], ["r"]], [])


def test_a_second_pod_joins_the_node_that_holds_the_last_of_a_reservation() -> None:
    """PLC-183: what the node holds already counts as left for it."""
    pods = [a_waiting_pod(name, cpu="0.5") for name in "ab"]

    found = placed(a_snapshot(pods, types=(reserved(SMALL, "r", 1),)), SETTINGS)

    assert (held(found), waiting(found)) == ([["r"]], [])


def test_a_node_does_not_lose_all_its_reservations_to_a_later_pod() -> None:
    """PLC-184: a pod for which it would have to become another type gets a node of its own."""
    first = a_waiting_pod("a", cpu="1.5")
    later = replace(a_waiting_pod("b"), requests={**a_waiting_pod("b").requests, "memory": 10 * 2**30})

    found = placed(a_snapshot([first, later], types=(reserved(SMALL, "r", 1), LARGE)), SETTINGS)

    assert held(found) == [[], ["r"]]


def test_a_lighter_pool_does_not_take_a_pod_that_waits_for_the_reservation_of_a_heavier_one() -> None:
    """PLT-151, PLC-160."""
    heavy, light = a_general_pool("heavy", weight=10), a_general_pool("light")
    world = a_snapshot([a_waiting_pod(f"p{n}", shape=APART) for n in range(2)], pools=[heavy, light])
    catalogues = {"heavy": Catalogue(types=(reserved(SMALL, "r", 1),)), "light": Catalogue(types=(LARGE,))}

    found = placed(replace(world, catalogues=catalogues), SETTINGS)

    assert ([node.pool for node in found.new], waiting(found)) == (["heavy"], ["reserved_offering"])


@pytest.mark.parametrize("left", [1, 0])
def test_a_pod_that_waited_keeps_its_pool_and_its_preference_in_the_next_pass(left: int) -> None:
    """PLT-152: whether the reservation has a place again, or EC2 says that it has none."""
    heavy, light = a_general_pool("heavy", weight=10), a_general_pool("light")
    wishing = a_shape(X, anti_affinity=APART.anti_affinity, preferred_terms=(term(one_of(names.ZONE, "z1"), weight=1),))
    pods = [a_waiting_pod("first", cpu="2", shape=APART), a_waiting_pod("p", shape=wishing)]

    def a_pass(count: int, *waiting_pods: Pod) -> Placement:
        world = a_snapshot(waiting_pods, pools=[heavy, light])
        types = {"heavy": Catalogue(types=(reserved(SMALL, "r", count),)), "light": Catalogue(types=(LARGE,))}
        return placed(replace(world, catalogues=types), SETTINGS)

    before, after = a_pass(1, *pods), a_pass(left, pods[1])

    assert ([node.pool for node in before.new], waiting(before)) == (["heavy"], ["reserved_offering"])
    assert [(node.pool, *node.requirements[names.ZONE].values) for node in after.new] == [("heavy", "z1")]
    assert held(after) == ([["r"]] if left else [[]])


def of_three_types(least: int, *kinds: str, **reservations: int) -> Snapshot:
    """A pool that asks for at least so many of three types, of which some have a reservation with so much left."""
    three = {"small": SMALL, "large": LARGE, "largest": a_type("largest", "16", 0.8)}
    types = tuple(reserved(t, f"r-{n}", reservations[n]) if n in reservations else t for n, t in three.items())
    asks = (
        Expression(key=names.INSTANCE_TYPE, operator="Exists", min_values=least),
        one_of(names.CAPACITY_TYPE, *(kinds or (names.CAPACITY_RESERVED, "on-demand"))),
    )
    pods = [a_waiting_pod(f"p{number}", shape=APART) for number in range(2)]
    return a_snapshot(pods, pools=[a_general_pool(requirements=asks)], types=types)


def kinds(placement: Placement) -> list[list[str]]:
    """The capacity types of each claim."""
    nodes, _ = proposed_nodes(placement.new, SETTINGS.well_known)
    return [list(each.values) for node in nodes for each in node.requirements if each.key == names.CAPACITY_TYPE]


@pytest.mark.parametrize("ask", [placed, lambda world, settings: simulate(an_index(world, settings))])
def test_reservations_of_too_few_types_for_a_minimum_are_left_to_others(
    ask: Callable[[Snapshot, PlacementSettings], Placement],
) -> None:
    """PLQ-70: the launch would find these types alone. Replacements are planned by simulations."""
    found = ask(of_three_types(2, small=5), SETTINGS)

    assert (held(found), kinds(found), waiting(found)) == ([[], []], [["on-demand"], ["on-demand"]], [])
    assert held(ask(of_three_types(2, small=5, large=5), SETTINGS)) == [["r-large", "r-small"]] * 2


def test_reservations_that_no_one_launch_may_go_into_do_not_meet_a_minimum_together() -> None:
    """PLQ-70: of those that do, the node holds the ones that meet it."""
    world = of_three_types(2, small=5, large=5, largest=5)
    one, two, three = world.catalogues["default"].types

    def launched_with(item: InstanceType, group: str) -> InstanceType:
        offerings = tuple(replace(o, launched_with=group if o.reservation_capacity else "") for o in item.offerings)
        return replace(item, offerings=offerings)

    def holding(*groups: str) -> list[list[str]]:
        types = tuple(launched_with(each, group) for each, group in zip((one, two, three), groups, strict=True))
        return held(placed(replace(world, catalogues={"default": Catalogue(types=types)}), SETTINGS))

    assert holding("a", "b", "c") == [[], []]
    assert holding("a", "b", "b") == [["r-large", "r-largest"]] * 2


def test_a_pod_waits_while_another_node_holds_what_its_minimum_lacks_and_no_longer() -> None:
    """PLQ-70, PLC-184: once the reservation is full, its node is of other capacity."""
    first, then = (placed(of_three_types(2, small=left, large=5), SETTINGS) for left in (1, 0))

    assert (held(first), waiting(first)) == ([["r-large", "r-small"]], ["reserved_offering"])
    assert (held(then), kinds(then)) == ([[], []], [["on-demand"], ["on-demand"]])


def test_best_effort_lowers_the_minimum_of_a_node_that_holds_reservations_of_fewer_types() -> None:
    """PLQ-70, PLC-123, PLC-125."""
    settings = replace(SETTINGS, min_values_policy="BestEffort")

    found = {least: placed(of_three_types(least, small=5), settings) for least in (1, 2)}

    assert [held(each) for each in found.values()] == [[["r-small"]] * 2] * 2
    assert [
        [
            (node.requirements[names.INSTANCE_TYPE].min_values, node.annotations[names.MIN_VALUES_RELAXED])
            for node in e.new
        ]
        for e in found.values()
    ] == [[(1, "false")] * 2, [(1, "true")] * 2]


def test_a_pool_of_reserved_capacity_alone_says_that_its_minimum_is_not_met() -> None:
    """PLQ-70, PLC-122: of three types one has a reservation, and one cannot be launched with it."""
    world = of_three_types(2, names.CAPACITY_RESERVED, small=5, large=5)
    small, large, _ = world.catalogues["default"].types
    offerings = tuple(replace(o, launched_with="other" if o.reservation_capacity else "") for o in large.offerings)
    types = (small, replace(large, offerings=offerings))

    found = placed(replace(world, catalogues={"default": Catalogue(types=types)}), SETTINGS)

    [said] = {pool.conflict for refused in found.refused for pool in refused.pools}
    assert waiting(found) == ["min_values"] * 2
    assert said == "minValues requirement is not met: node.kubernetes.io/instance-type has 1 of 2"


@pytest.mark.parametrize("ask", [placed, lambda world, settings: simulate(an_index(world, settings))])
def test_a_node_is_not_left_reservations_of_too_few_types_by_a_later_pod(
    ask: Callable[[Snapshot, PlacementSettings], Placement],
) -> None:
    """PLQ-70, PLC-184: a pod that needs the larger types gets a node of its own."""
    world = of_three_types(2, small=5, large=5)
    later = replace(a_waiting_pod("b"), requests={**a_waiting_pod("b").requests, "memory": 10 * 2**30})
    pods = [a_waiting_pod("a", cpu="1.5"), later]

    found = ask(a_snapshot(pods, pools=list(world.pools.values()), types=world.catalogues["default"].types), SETTINGS)

    assert held(found) == [[], ["r-large", "r-small"]]
    assert sorted(kinds(found)) == [["on-demand"], ["reserved"]]
