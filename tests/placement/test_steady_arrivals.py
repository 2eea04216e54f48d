"""Where pods keep coming, a first node has room for the next ones, and every rule holds as before (PLQ-67)."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from acceptance.checker.check import violations
from acceptance.placement_worlds import settings_of, snapshot_of
from acceptance.vectors.kind_placement import answer_of
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.own.claim_memory import LeftKind, with_memory
from dovetail.model.places.placements import Placement
from dovetail.model.pods import HostPort, Owner
from dovetail.model.values.json import Json
from dovetail.model.values.resources import CPU
from dovetail.placement.cost import steady
from dovetail.placement.place_pods import Index, place
from dovetail.placement.settings import DOVETAIL, CostSettings, PlacementSettings
from tests.placement.builders import (
    a_bound_pod,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_type,
    a_waiting_pod,
    near,
    spread,
)
from tests.placement.test_cost import quick
from tests.properties.clusters import clusters

NOW = 100_000.0
COST = PlacementSettings(cost=CostSettings(everywhere=True, steps=9, types=1))


def _full(*ages: float, marks: dict[str, str] | None = None) -> list[tuple[Node, NodeClaim]]:
    """Full nodes of 40 cpus that were launched so many seconds ago."""
    found = [a_joined_pair(f"n{number}", cpu="40") for number in range(len(ages))]
    return [
        (node, replace(claim, created=NOW - age, annotations=marks or {}))
        for (node, claim), age in zip(found, ages, strict=True)
    ]


def _placed(nodes: list[tuple[Node, NodeClaim]], chosen: PlacementSettings = COST, waiting: int = 1) -> Placement:
    running = [a_bound_pod(f"b-{node.name}", node.name, cpu="40") for node, _ in nodes]
    pods = [*running, *(a_waiting_pod(f"p{number}") for number in range(waiting))]
    return place(Index(replace(a_snapshot(pods, nodes), now=NOW), chosen))


def _cpus(placement: Placement) -> int:
    assert {pod.name[0] for node in placement.new for pod in node.pods} == {"p"}
    assert not placement.refused
    return sum(node.requests[CPU] for node in placement.new) // 10**9


def test_a_node_has_room_for_what_comes_next_where_nodes_were_launched_again_and_again() -> None:
    assert _cpus(_placed(_full(100.0, 300.0, 500.0))) == 1 + min(steady.MOST, int(120 * steady.SHARE))


@pytest.mark.parametrize(
    "nodes",
    [
        _full(100.0, 1000.0, 2000.0),
        _full(100.0, 100.0, 100.0),
        _full(100.0, 300.0, 500.0, marks=with_memory({}, moved_from=(LeftKind("m5.large", "spot", 1.0),))),
    ],
    ids=["one launch lately", "one moment", "launched by consolidation"],
)
def test_else_it_holds_just_its_pods(nodes: list[tuple[Node, NodeClaim]]) -> None:
    assert _cpus(_placed(nodes)) == 1


def test_no_node_is_made_for_what_may_come_alone() -> None:
    nodes = _full(100.0, 300.0, 500.0)
    pods = [*(a_bound_pod(f"b-{node.name}", node.name, cpu="40") for node, _ in nodes), a_waiting_pod("p", cpu="3")]
    only = replace(a_snapshot(pods, nodes, types=(a_type("four", "4", 0.2),)), now=NOW)
    assert [[pod.name for pod in node.pods] for node in place(Index(only, COST)).new] == [["p"]]


@pytest.mark.parametrize(
    ("asks", "room"),
    [
        ({"anti_affinity": (near(names.HOSTNAME, app="a"),)}, 0),
        ({"anti_affinity": (near(names.ZONE, app="a"),)}, 0),
        ({"anti_affinity": (near(names.HOSTNAME, app="other"),)}, steady.MOST),
        ({"preferred_anti_affinity": (replace(near(names.HOSTNAME, app="a"), weight=1),)}, steady.MOST),
        ({"spread": (spread(names.HOSTNAME, app="a"),)}, 0),
        ({"spread": (spread(names.HOSTNAME, skew=2, app="a"),)}, steady.MOST),
        ({"spread": (spread(names.ZONE, app="a"),)}, steady.MOST),
        ({"host_ports": (HostPort(address="", port=80, protocol="TCP"),)}, 0),
    ],
    ids=["host", "zone", "others", "prefers", "one a host", "two a host", "over zones", "port"],
)
def test_no_room_is_paid_for_pods_that_could_not_run_beside_their_like(asks: dict[str, Any], room: int) -> None:
    nodes = _full(100.0, 300.0, 500.0)
    running = [a_bound_pod(f"b-{node.name}", node.name, cpu="40") for node, _ in nodes]
    pods = [*running, a_waiting_pod("p", shape=a_shape({"app": "a"}, **asks))]
    assert _cpus(place(Index(replace(a_snapshot(pods, nodes), now=NOW), COST))) == 1 + room


@pytest.mark.parametrize(
    ("kind", "age", "app", "room"),
    [
        ("ReplicaSet", steady.RECENT_SECONDS, "a", steady.MOST),
        ("ReplicaSet", steady.RECENT_SECONDS - 1, "a", 0),
        ("ReplicaSet", steady.RECENT_SECONDS - 1, "other", steady.MOST),
        ("StatefulSet", 0.0, "a", steady.MOST),
        ("Job", 0.0, "a", steady.MOST),
    ],
    ids=["grows", "is rolled out", "is the first", "a set that keeps its owner", "a job"],
)
def test_no_room_is_paid_for_pods_of_a_roll_out(kind: str, age: float, app: str, room: int) -> None:
    """Another ReplicaSet of the same pods, but for the label of each, has run for long."""
    nodes = _full(100.0, 300.0, 500.0)
    running = [a_bound_pod(f"b-{node.name}", node.name, cpu="40") for node, _ in nodes]
    owner = Owner(api_version="any/v1", kind=kind, name="mine", uid="mine", controller=True)
    mine, before = a_shape({"app": "a", "pod-template-hash": "2"}), a_shape({"app": app, "pod-template-hash": "1"})
    running[0] = replace(running[0], shape=mine, owners=(owner,), created=NOW - age)
    running[1] = replace(running[1], shape=before, created=NOW - 5000.0)
    pods = [*running, replace(a_waiting_pod("p", shape=mine), owners=(owner,), created=NOW)]
    assert _cpus(place(Index(replace(a_snapshot(pods, nodes), now=NOW), COST))) == 1 + room


def test_under_the_default_policy_nothing_is_expected() -> None:
    assert _cpus(_placed(_full(100.0, 300.0, 500.0), PlacementSettings())) == 1


def test_a_large_batch_fills_nodes_by_itself() -> None:
    assert _cpus(_placed(_full(100.0, 300.0, 500.0), waiting=steady.LARGE)) == steady.LARGE


@quick
@given(clusters())
def test_answers_with_room_for_more_obey_every_rule_and_place_as_many(raw: Json) -> None:
    """The checker shares no code with the engine."""
    _judge(raw)


@pytest.mark.soak
@settings(quick, max_examples=10_000)
@given(clusters())
def test_the_same_holds_for_ten_thousand_clusters(raw: Json) -> None:
    _judge(raw)


def _judge(raw: Json) -> None:
    plain = settings_of(raw, DOVETAIL)
    chosen = replace(plain, cost=replace(COST.cost, seed=len(raw["pods"])))
    before = place(Index(snapshot_of(raw), plain))
    with patch.object(steady, "_is_steady", lambda claims, now: True), patch.object(steady, "SHARE", 1.0):
        found = place(Index(snapshot_of(raw), chosen))
    waiting = {pod["metadata"]["name"] for pod in raw["pods"] if not pod["spec"].get("nodeName")}
    assert violations(raw, answer_of(found, waiting)) == []
    assert {refused.pod.uid for refused in found.refused} <= {refused.pod.uid for refused in before.refused}
