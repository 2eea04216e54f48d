"""Gauges of what is left out, and gauges that no object can spoil."""

from dataclasses import replace

from dovetail.model.objects.judging import Unjudged
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.duties import PROVISIONING, Duties
from dovetail.telemetry.metrics.exposition import measured
from dovetail.telemetry.metrics.instruments import OWN_PREFIX
from dovetail.telemetry.metrics.ours.faults import HELP, MOST_NAMED, Faults
from tests.metrics.shown import shown
from worlds.disruption import a_pair, a_pod, a_world
from worlds.fakes import on_duty


def lines_of(faults: Faults, snapshot: Snapshot, duties: Duties | None = None) -> list[str]:
    samples = faults.samples(snapshot, duties or on_duty())
    return [line for line in measured(samples, HELP, OWN_PREFIX) if not line.startswith("#")]


def test_what_is_left_out_is_named_and_counted_as_long_as_it_exists() -> None:
    pod, faults = a_pod("n1", name="odd"), Faults()
    slip = Unreadable(kind="NodePool", name="slip", field="spec", message="no duration")
    world = replace(a_world([a_pair("n1")], [pod]), unreadable=(slip,))
    unjudged = Unjudged(kind="Pod", name="default/odd", uid=pod.uid, step="disruption", message="no")
    faults.judged("disruption", (unjudged,))
    faults.judged("provisioning", (unjudged,))

    assert lines_of(faults, world) == [
        'dovetail_object_set_aside{kind="NodePool",namespace="",name="slip",why="unreadable"} 1',
        'dovetail_object_set_aside{kind="Pod",namespace="default",name="odd",why="unjudged"} 1',
        'dovetail_objects_set_aside{kind="NodePool",why="unreadable"} 1',
        'dovetail_objects_set_aside{kind="Pod",why="unjudged"} 1',
    ]
    assert lines_of(faults, replace(world, pods={}, unreadable=())) == []


def test_the_next_decision_says_what_stands() -> None:
    pod, faults = a_pod("n1"), Faults()
    world = a_world([a_pair("n1")], [pod])
    faults.judged("disruption", (Unjudged(kind="Pod", name=pod.key, uid=pod.uid, step="s", message="m"),))
    faults.judged("disruption", ())
    assert lines_of(faults, world) == []


def test_thousands_of_objects_are_counted_and_some_are_named() -> None:
    odd = tuple(Unreadable(kind="Pod", name=f"a/p{n}", field="spec", message="m") for n in range(3000))
    lines = lines_of(Faults(), replace(a_world([]), unreadable=odd))
    assert lines[-1] == 'dovetail_objects_set_aside{kind="Pod",why="unreadable"} 3000'
    assert len(lines) == MOST_NAMED + 1


def test_an_amount_that_no_float_can_hold_spoils_no_scrape() -> None:
    huge = replace(a_pod("n1", name="huge"), requests={"memory": 10**400, "cpu": -(10**400), "pods": 1})
    world = a_world([a_pair("n1"), a_pair("n2")], [huge])

    found = {(s.name, dict(s.labels).get("node_name", "")) for s in shown(world)}

    assert {("nodes_total_pod_requests", "n1"), ("nodes_allocatable", "n1"), ("nodes_allocatable", "n2")} <= found
    assert ("cluster_utilization_percent", "") in found


def test_a_node_that_cannot_be_shown_leaves_the_others_in_place() -> None:
    world = a_world([a_pair("n1"), a_pair("n2", node={"created": None})], [a_pod("n1", name="p")])

    found = {(s.name, dict(s.labels).get("node_name", "")) for s in shown(world)}

    assert ("nodes_allocatable", "n1") in found and ("nodes_allocatable", "n2") not in found
    assert ("pods_state", "") in found and ("cluster_state_node_count", "") in found


def test_a_fault_is_told_by_the_worker_that_found_it_and_an_unreadable_object_by_one() -> None:
    pod, faults = a_pod("n1"), Faults()
    slip = Unreadable(kind="NodePool", name="slip", field="spec", message="no duration")
    world = replace(a_world([a_pair("n1")], [pod]), unreadable=(slip,))
    unjudged = (Unjudged(kind="Pod", name=pod.key, uid=pod.uid, step="s", message="m"),)
    faults.judged("disruption", unjudged)
    faults.judged("provisioning", unjudged)

    planner = lines_of(faults, world, on_duty(lambda loop: loop == PROVISIONING))
    neither = lines_of(faults, world, on_duty(lambda loop: False))

    assert planner[-1:] == ['dovetail_objects_set_aside{kind="Pod",why="unjudged"} 1']
    assert not any("NodePool" in line for line in planner)
    assert neither == []
