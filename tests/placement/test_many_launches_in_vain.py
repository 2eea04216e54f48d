"""Launches in vain are counted whole: however many there were, and for whichever pods (PLQ-33)."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.placement.earlier_claims import launch_in_vain
from dovetail.placement.launch_brake import pods_held_back
from dovetail.placement.settings import BrakeSettings, PlacementSettings
from dovetail.rules.brake.unused_launches import remembered_launches, unused_launch, whose_pods, with_unused_launch
from tests.placement.builders import a_bound_pod, a_general_pool, a_snapshot, a_waiting_pod, groups, placed
from tests.placement.test_earlier_claims import a_joined, with_claims
from tests.placement.test_launch_brake import for_each, of_one_owner, of_teams, stopped, useless
from worlds.disruption import NOW


def in_vain_twice(pods: Iterable[Pod]) -> NodePool:
    """The pool that remembers two nodes in vain for each of these pods."""
    pool, each = a_general_pool(), list(pods)
    for turn in range(2):
        for i, pod in enumerate(each):
            launch = unused_launch(f"c{turn}-{i}", NOW - 900 + 400 * turn + i, [pod.uid], whose_pods([pod]))
            pool = with_unused_launch(pool, launch, NOW)
    return pool


def of_use(count: int, created: float = NOW - 900) -> tuple[list[Pod], list[tuple[Node, NodeClaim]]]:
    """Pods that run, each on the node that was made for it."""
    pods = [a_bound_pod(f"r{i}", f"n{i}") for i in range(count)]
    pairs = [a_joined(f"n{i}", pod, ready_for=600.0) for i, pod in enumerate(pods)]
    return pods, [(node, replace(claim, created=created)) for node, claim in pairs]


@pytest.mark.parametrize("bad", [15, 60])
def test_however_many_pods_have_had_their_two_nodes_none_of_them_gets_a_third(bad: int) -> None:
    """Each is its own owner and most nodes of the pool are of use, so no brake holds them."""
    pods = [a_waiting_pod(f"bad-{i}") for i in range(bad)]
    running, good = of_use(200)
    world = a_snapshot([*pods, *running], nodes=good, pools=[in_vain_twice(pods)])

    assert not pods_held_back(pods, world, world.pods_by_node, PlacementSettings()).why
    assert placed(world).new == ()


def never_up(count: int, pods: int = 1) -> NodePool:
    """The pool that remembers so many nodes that never came up, a second apart, each for so many pods."""
    pool = a_general_pool()
    for i in range(count):
        uids = [f"uid-{i}-{n}" for n in range(pods)]
        pool = with_unused_launch(pool, unused_launch(f"c{i}", NOW - count + i, uids), NOW)
    return pool


@pytest.mark.parametrize(("bad", "good", "stops"), [(200, 100, True), (200, 201, False)])
def test_all_launches_in_vain_are_weighed_against_all_that_were_of_use(bad: int, good: int, stops: bool) -> None:
    running, pairs = of_use(good)
    assert bool(stopped(a_snapshot(running, nodes=pairs, pools=[never_up(bad)]))) is stops


@pytest.mark.parametrize(("limit", "held"), [(100, True), (101, False)])
def test_a_limit_of_a_hundred_holds_at_a_hundred(limit: int, held: bool) -> None:
    assert bool(stopped(a_snapshot(pools=[never_up(100)]), BrakeSettings(launches=limit))) is held


@pytest.mark.parametrize(("ago", "stops"), [(600.0, True), (5.0, False)])
def test_where_launches_in_vain_are_forgotten_only_what_is_as_new_as_the_others_is_weighed(
    ago: float, stops: bool
) -> None:
    """An annotation has room for a few launches of two hundred pods each."""
    pool = never_up(40, pods=200)
    kept = remembered_launches(pool, NOW)
    running, pairs = of_use(len(kept) + 1, created=NOW - ago)

    assert 10 < len(kept) < 40 and kept[-1].at == NOW - 1
    assert bool(stopped(a_snapshot(running, nodes=pairs, pools=[pool]))) is stops


@pytest.mark.parametrize("of", [of_one_owner, of_teams])
def test_useless_nodes_for_pods_of_the_same_three_namespaces_hold_those_three_alone(
    of: Callable[[Iterable[Pod], str], list[Pod]],
) -> None:
    """PLQ-33: one user may have three, of one owner each or of many; standing nodes count as those that have ended."""
    found, claims = useless(12)
    rest = [[a_waiting_pod(f"{n}-{i}") for i in range(12)] for n in (1, 2)]
    each = for_each(claims, found, *rest)
    world = [pod for n, pods in enumerate([found, *rest]) for pod in of(pods, f"mine-{n}")]
    stranger, pool, here = a_waiting_pod("stranger", cpu="7"), a_general_pool(), {pod.uid: pod for pod in world}
    for claim in each:
        launch = launch_in_vain(claim, here, NOW)
        assert launch is not None
        pool = with_unused_launch(pool, launch, NOW)

    for snapshot in (with_claims([*world, stranger], *each), a_snapshot([*world, stranger], pools=[pool])):
        assert not stopped(snapshot)
        assert pods_held_back(world, snapshot, {}, PlacementSettings()).why.keys() == here.keys()
        assert groups(placed(snapshot)) == [["stranger"]]
