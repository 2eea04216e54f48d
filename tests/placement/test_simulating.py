"""Simulations through the door that disruption uses: promised room is kept, and steps do not share what they take."""

from dataclasses import replace

from dovetail.model import names
from dovetail.placement.place_pods import SimulationOptions, StepwiseSimulation, simulate
from tests.placement.builders import a_bound_pod, a_joined_pair, a_snapshot, a_waiting_pod, an_index, groups
from worlds.disruption import NOW


def test_nothing_is_placed_on_a_node_whose_room_is_promised() -> None:
    """Its claim is closed; the pods go to the other node."""
    pods = [a_bound_pod("b", "n1")]
    index = an_index(a_snapshot(pods, [a_joined_pair("n1"), a_joined_pair("n2"), a_joined_pair("n3")]))
    closed = SimulationOptions(closed=frozenset({"claim-n2"}))

    assert list(simulate(index, frozenset({"n1"}), closed).existing) == ["n3"]


def test_a_pod_that_was_promised_room_asks_for_none() -> None:
    """It is left out of the simulation by its UID."""
    index = an_index(a_snapshot([a_waiting_pod("p"), a_waiting_pod("q")]))
    housed = SimulationOptions(housed=frozenset({"uid-p"}))

    assert groups(simulate(index, options=housed)) == [["q"]]


def test_a_step_does_not_count_on_room_that_another_has_taken() -> None:
    """Two nodes give up a pod each, and there is room for one."""
    pods = [a_bound_pod("b1", "n1", cpu="3"), a_bound_pod("b2", "n2", cpu="3")]
    index = an_index(a_snapshot(pods, [a_joined_pair("n1"), a_joined_pair("n2"), a_joined_pair("n3")]))
    steps = StepwiseSimulation(index, frozenset({"n1", "n2"}), later=frozenset(), options=SimulationOptions())

    first, second = (steps.move(index.moving_from(name).pods) for name in ("n1", "n2"))

    assert (list(first.existing), len(first.new)) == (["n3"], 0)
    assert (list(second.existing), groups(second)) == ([], [["b2"]])


def test_the_new_nodes_of_one_step_are_closed_to_the_next() -> None:
    """Each step becomes a command with replacements of its own."""
    pods = [a_bound_pod("b1", "n1"), a_bound_pod("b2", "n2")]
    index = an_index(a_snapshot(pods, [a_joined_pair("n1"), a_joined_pair("n2")]))
    steps = StepwiseSimulation(index, frozenset({"n1", "n2"}), later=frozenset(), options=SimulationOptions())

    assert [groups(steps.move(index.moving_from(name).pods)) for name in ("n1", "n2")] == [[["b1"]], [["b2"]]]


def test_a_pod_that_moves_later_is_not_placed_at_the_start() -> None:
    """Its place is part of the answer to the step that moves it."""
    pod = a_waiting_pod("p")
    index = an_index(a_snapshot([pod], [a_joined_pair("n1"), a_joined_pair("n2")]))
    steps = StepwiseSimulation(index, frozenset({"n1"}), later=frozenset({pod.uid}), options=SimulationOptions())

    assert [list(steps.move(pods).existing) for pods in ([], [pod])] == [[], ["n2"]]


def test_reasons_are_given_for_pods_that_run_and_not_for_pending_ones() -> None:
    """Pending pods had no place before the simulation either (DIS-90)."""
    pods = [a_waiting_pod("p", cpu="100"), a_bound_pod("b", "n1", cpu="100")]
    index = an_index(a_snapshot(pods, [a_joined_pair("n1", cpu="100")]))

    refused = {each.pod.name: each.reasons for each in simulate(index, frozenset({"n1"})).refused}

    assert refused == {"p": (), "b": ("it_fits",)}


def test_a_simulation_moves_the_pods_of_leaving_nodes_too_and_those_that_wait_for_a_claim() -> None:
    """PLC-217: each takes its room before it is promised to another."""
    gone, claim = a_joined_pair("gone")
    _, coming = a_joined_pair("coming")
    waiting = a_waiting_pod("waiting")
    unlaunched = replace(coming, provider_id="", annotations={names.PLANNED_PODS: waiting.uid})
    pods = [a_bound_pod("b", "n1"), a_bound_pod("leaving", "gone"), waiting]
    world = a_snapshot(pods, [a_joined_pair("n1"), (gone, replace(claim, deleting_since=NOW))])
    snapshot = replace(world, claims={**world.claims, unlaunched.name: unlaunched})

    assert groups(simulate(an_index(snapshot), frozenset({"n1"}))) == [["b", "leaving", "waiting"]]


def test_a_simulation_moves_no_pod_that_may_not_move() -> None:
    """PLC-217: a new node for it would stay empty."""
    pods = [a_bound_pod("b", "n1"), replace(a_bound_pod("protected", "n1"), do_not_disrupt="true")]
    index = an_index(a_snapshot(pods, [a_joined_pair("n1")]))

    assert groups(simulate(index, frozenset({"n1"}))) == [["b"]]


def test_a_pod_of_a_leaving_node_may_land_on_a_node_that_still_comes_up_and_no_other_pod_may() -> None:
    """PLC-219, PLT-190, DIS-89."""
    gone, claim = a_joined_pair("gone")
    coming = a_joined_pair("n2", cpu="2", labels={names.INITIALIZED: "false"})
    pods = [a_bound_pod("b", "n1"), a_bound_pod("leaving", "gone")]
    nodes = [a_joined_pair("n1"), (gone, replace(claim, deleting_since=NOW)), coming]

    found = simulate(an_index(a_snapshot(pods, nodes)), frozenset({"n1"}))

    assert sorted(pod.name for pod in found.existing["n2"]) == ["b", "leaving"]
    assert [(each.pod.name, each.reasons) for each in found.refused] == [("b", ("uninitialized_node",))]
