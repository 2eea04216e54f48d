"""A pod that we nominated for the node that was made for it counts as before: pending, with that node (PLQ-36)."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.own.claim_memory import memory_of, with_memory
from dovetail.model.places.kept_places import kept_by, needs_a_node
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import parse_resources
from dovetail.placement.place_pods import simulate
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import CostSettings, PlacementSettings
from dovetail.placement.triggers import pending_uids
from tests.placement.builders import (
    a_bound_pod,
    a_general_pool,
    a_joined_pair,
    a_snapshot,
    a_waiting_pod,
    an_index,
    groups,
    placed,
)
from tests.placement.test_earlier_claims import TINY, a_joined

ROOM = parse_resources({"cpu": "2", "memory": "8Gi", "pods": "110"})


def kept(name: str, **fields: Any) -> Pod:
    return a_waiting_pod(name, nominated_node="n1", **fields)


def joining(*pods: Pod, keeps: bool = True, **fields: Any) -> tuple[Node, NodeClaim]:
    """The node n1, which is not initialised, and the claim that was made for these pods."""
    node, claim = a_joined("n1", *pods, ready_for=-1.0, room=ROOM)
    marks = with_memory({}, keeps_places=keeps)
    return node, replace(claim, annotations={**claim.annotations, **marks}, **fields)


def world(pods: list[Pod], pair: tuple[Node, NodeClaim]) -> Snapshot:
    return a_snapshot(pods, [pair])


def test_a_pod_that_we_nominated_gets_no_second_node_and_keeps_its_room() -> None:
    pod, large = kept("web"), a_waiting_pod("large", cpu="2")
    snapshot = world([pod, large], joining(pod))

    placement = placed(snapshot)

    assert groups(placement) == [["large"]]
    assert {name: [p.name for p in pods] for name, pods in placement.existing.items()} == {"n1": ["web"]}
    assert pending_uids(snapshot) == {pod.uid, large.uid}


@pytest.mark.parametrize("before", ["dovetail.sh/keep-places", ""])
def test_a_place_that_0_1_0_keeps_is_kept_also_once_more_is_remembered_of_its_claim(before: str) -> None:
    pod = kept("web")
    node, claim = joining(pod, keeps=False)
    marked = replace(claim, annotations={**claim.annotations, **({before: "true"} if before else {})})
    later = replace(marked, annotations=with_memory(marked.annotations, replacement_for="Drifted"))

    assert [kept_by(pod, world([pod], (node, each))) is not None for each in (marked, later)] == [bool(before)] * 2


@pytest.mark.parametrize("why", ["another's claim", "no mark", "no such node"])
def test_a_nomination_by_others_is_theirs(why: str) -> None:
    """PLC-20: the kube-scheduler makes room for the pod."""
    pod, other = kept("web"), kept("other")
    node, claim = joining(*([other] if why == "another's claim" else [pod]), keeps=why != "no mark")
    pod = replace(pod, nominated_node="elsewhere") if why == "no such node" else pod
    snapshot = world([pod], (node, claim))

    assert kept_by(pod, snapshot) is None
    assert not needs_a_node(pod, snapshot)
    assert pending_uids(snapshot) == frozenset()
    assert not placed(snapshot).new


def test_a_pod_whose_node_leaves_gets_another_one_though_its_nomination_still_stands() -> None:
    pod = kept("web")

    assert groups(placed(world([pod], joining(pod, deleting_since=1.0)))) == [["web"]]


@pytest.mark.parametrize(("stands", "seconds", "nodes"), [(True, 15.0, 0), (False, 15.0, 1), (True, 25.0, 1)])
def test_a_nomination_that_stands_has_not_been_tried_and_is_waited_for(
    stands: bool, seconds: float, nodes: int
) -> None:
    """The kube-scheduler pauses for up to ten seconds, and each try in vain takes the nomination away."""
    pod = kept("web") if stands else a_waiting_pod("web")
    node, claim = a_joined("n1", pod, ready_for=seconds, room=TINY)
    claim = replace(claim, annotations=with_memory(claim.annotations, keeps_places=True))

    assert len(placed(world([pod], (node, claim))).new) == nodes


def test_a_pod_whose_node_is_gone_before_its_claim_needs_one() -> None:
    pod = kept("web")
    _, claim = joining(pod, deleting_since=1.0)
    snapshot = replace(a_snapshot([pod]), claims={claim.name: claim})

    assert kept_by(pod, snapshot) == claim
    assert groups(placed(snapshot)) == [["web"]]


def test_in_a_simulation_its_room_is_taken_and_it_stops_nothing() -> None:
    """DIS-90: it had no place before; and no pod of the node that leaves is promised its room."""
    pod, bound = kept("web", cpu="2"), a_bound_pod("b", "n2")
    snapshot = a_snapshot([pod, bound], [joining(pod), a_joined_pair("n2")])

    placement = simulate(an_index(snapshot), frozenset({"n2"}))

    assert groups(placement) == [["b"]]
    large = replace(pod, requests={**pod.requests, "cpu": 10**12})
    without_room = a_snapshot([large, bound], [joining(large), a_joined_pair("n2")])
    assert [(r.pod.name, r.pools) for r in simulate(an_index(without_room)).refused] == [("web", ())]


@pytest.mark.parametrize(
    ("annotations", "cost", "marked"),
    [
        ({}, CostSettings(types=1), False),
        ({}, CostSettings(types=1, everywhere=True), True),
        ({names.PLACEMENT: "cost"}, CostSettings(types=1), True),
        ({names.PLACEMENT: "cost"}, CostSettings(types=1, keep_places=False), False),
        ({names.PLACEMENT: "default"}, CostSettings(types=1, everywhere=True), False),
        ({}, CostSettings(types=99, everywhere=True), False),  # too few types: the pool is not under the policy
    ],
)
def test_claims_of_pools_under_the_policy_keep_places(
    annotations: dict[str, str], cost: CostSettings, marked: bool
) -> None:
    snapshot = a_snapshot([a_waiting_pod("web")], pools=[replace(a_general_pool(), annotations=annotations)])

    plan, _ = plan_provisioning(snapshot, PlacementSettings(cost=cost), lambda: False)

    [node] = plan.proposed
    assert memory_of(dict(node.annotations)).keeps_places == marked
