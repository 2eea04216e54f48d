"""PLC-62 to PLC-69, PLC-76: what a node that is there, or on its way, is taken for."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from acceptance.karpenter import KARPENTER_PLACEMENT
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.objects.workloads import DaemonSet, Volume, VolumeClaim
from dovetail.model.pods import Pod, VolumeUse
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.resources import parse_resources
from dovetail.placement.place_pods import simulate
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import (
    TYPES,
    a_bound_pod,
    a_general_pool,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    an_index,
    near,
    one_of,
    placed,
    term,
)
from worlds.disruption import NOW

GPU = "example.com/gpu"
Pair = tuple[Node, NodeClaim]


def _takers(pods: Iterable[Pod], *nodes: Pair, **fields: object) -> list[str]:
    return list(placed(a_snapshot(pods, nodes, **fields)).existing)  # type: ignore[arg-type]


def _without(pair: Pair, *labels: str) -> Pair:
    node, claim = pair
    kept = {key: value for key, value in node.labels.items() if key not in labels}
    return replace(node, labels=kept), replace(claim, labels=kept)


def test_until_a_node_is_registered_the_taints_of_its_claim_count() -> None:
    """PLC-63."""
    node, claim = _without(a_joined_pair("n1"), names.REGISTERED, names.INITIALIZED)
    taint = (Taint(key="team", effect="NoSchedule", value="a"),)

    assert _takers([a_waiting_pod("p")], (replace(node, taints=taint), claim)) == [claim.name]
    assert _takers([a_waiting_pod("p")], (node, replace(claim, taints=taint))) == []


def test_a_claim_whose_node_is_gone_is_no_room() -> None:
    """TRM-4: deleted, and its finalizer taken off by hand. Neither for other pods nor for those that it was made
    for."""
    node, claim = a_joined_pair("n1")
    stood = tuple(Condition(type=kind, status="True", changed=NOW - 90.0) for kind in ("Registered", "Initialized"))
    claim = replace(claim, conditions=stood, node_name="n1")
    lost = replace(a_snapshot([a_waiting_pod("p")]), claims={claim.name: claim})
    planned = replace(claim, conditions=stood[:1], annotations={names.PLANNED_PODS: "uid-p"})

    assert _takers([a_waiting_pod("p")], (node, claim)) == ["n1"]
    assert (placed(lost).existing, len(placed(lost).new)) == ({}, 1)
    assert len(placed(replace(lost, claims={claim.name: planned})).new) == 1


@pytest.mark.parametrize("reported", [True, False])
def test_a_node_that_comes_up_counts_before_it_says_which_type_it_is(reported: bool) -> None:
    """STA-5: Karpenter knows the claim alone until the Node has the label. What the kubelet reports of its room is
    truer than what the claim promises, and a pod that runs there already takes its part of it."""
    node, claim = _without(a_joined_pair("n1", cpu="4"), names.REGISTERED, names.INITIALIZED)
    assert names.INSTANCE_TYPE not in node.labels
    less = parse_resources({"cpu": "3", "memory": "32Gi", "pods": "110"})
    coming = (
        replace(node, capacity=less, allocatable=less) if reported else replace(node, capacity={}, allocatable={}),
        claim,
    )
    agent = a_bound_pod("agent", "n1")

    takers = [_takers([agent, a_waiting_pod("p", cpu=cpu)], coming) for cpu in ("2", "3", "4")]

    assert takers == [["claim-n1"], [] if reported else ["claim-n1"], []]


def test_a_node_of_a_pool_that_has_lost_its_claim_takes_pods() -> None:
    """STA-5: Karpenter leaves it out as long as it is neither initialised nor says which type it is."""
    node, _ = _without(a_joined_pair("n1"), names.REGISTERED, names.INITIALIZED)
    world = a_snapshot([a_waiting_pod("p")], [a_joined_pair("n2", cpu="0")])

    found = placed(replace(world, nodes={**world.nodes, "n1": node}))

    assert list(found.existing) == ["n1"]


def test_until_a_node_is_initialised_its_claim_stands_in_for_an_amount_of_zero() -> None:
    """PLC-63, PLT-96: a device plugin starts later than the kubelet, which reports none of its devices."""
    node, claim = a_joined_pair("n1")
    coming, _ = _without((node, claim), names.INITIALIZED)
    asked = replace(a_waiting_pod("p"), requests={**a_waiting_pod("p").requests, GPU: 1})
    zero, one = ({**node.capacity, GPU: amount} for amount in (0, 1))

    def takers(of: Node) -> list[str]:
        return _takers(
            [asked], (replace(of, capacity=zero, allocatable=zero), replace(claim, capacity=one, allocatable=one))
        )

    assert (takers(coming), takers(node)) == (["n1"], [])


def test_no_taint_of_an_initialised_node_is_passing() -> None:
    """PLC-65, PLQ-24: neither the start-up taint that returns nor that of a node that is not ready."""
    for taint in (
        Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),
        Taint(key="starts", effect="NoSchedule"),
    ):
        node, claim = a_joined_pair("n1", taints=(taint,))
        starting = replace(claim, startup_taints=(Taint(key="starts", effect="NoSchedule"),))
        coming, _ = _without((node, claim), names.INITIALIZED)

        assert (_takers([a_waiting_pod("p")], (node, starting)), _takers([a_waiting_pod("p")], (coming, starting))) == (
            [],
            ["n1"],
        )


def test_every_taint_of_a_node_without_a_claim_counts() -> None:
    """PLC-65, BEH-104: nobody here knows that it is still starting."""
    node, claim = _without(
        a_joined_pair("n1", taints=(Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),)), names.INITIALIZED
    )
    starting = a_snapshot([a_waiting_pod("p")], [(node, claim)])

    found = [[*placed(each).existing] for each in (starting, replace(starting, claims={}))]

    assert found == [["n1"], []]


def test_pods_that_have_ended_take_no_room() -> None:
    """PLC-66."""
    ended = replace(a_bound_pod("ended", "n1", cpu="4"), phase="Succeeded")

    assert _takers([ended, a_waiting_pod("p", cpu="4")], a_joined_pair("n1", cpu="4")) == ["n1"]


def test_what_daemon_sets_will_still_take_is_kept_free() -> None:
    """PLC-66, PLC-182d."""
    daemons = {"default/d": DaemonSet(name="d", namespace="default", pod=a_waiting_pod("d", cpu="1"))}

    assert _takers([a_waiting_pod("p", cpu="3")], a_joined_pair("n1", cpu="4"), daemon_sets=daemons) == ["n1"]
    assert _takers([a_waiting_pod("p", cpu="4")], a_joined_pair("n1", cpu="4"), daemon_sets=daemons) == []


def test_nodes_are_tried_by_name_in_whatever_order_they_come() -> None:
    """PLC-67."""
    assert _takers([a_waiting_pod("p")], a_joined_pair("b"), a_joined_pair("a")) == ["a"]
    assert _takers([a_waiting_pod("p")], a_joined_pair("a"), a_joined_pair("b")) == ["a"]


def test_a_node_without_a_hostname_label_has_its_name_for_one() -> None:
    """PLC-69: for volumes that are on it, for DaemonSets that select it, and for pods that others keep away."""
    pair = _without(a_joined_pair("n1", cpu="4"), names.HOSTNAME)
    here = (term(one_of(names.HOSTNAME, "n1")),)
    volumes = {"v": Volume(name="v", driver="d", node_terms=here)}
    claims = {
        "default/data": VolumeClaim(
            name="data", namespace="default", volume_name="v", phase="Bound", bind_completed=True
        )
    }
    with_volume = a_waiting_pod("p", shape=a_shape(volumes=(VolumeUse(claim_name="data"),)))
    daemon = DaemonSet(
        name="d", namespace="default", pod=a_waiting_pod("d", cpu="2", shape=a_shape(required_terms=here))
    )
    apart = a_shape({"app": "x"}, anti_affinity=(near(names.HOSTNAME, app="x"),))

    assert _takers([with_volume], pair, volume_claims=claims, volumes=volumes) == ["n1"]
    assert _takers([a_waiting_pod("p", cpu="3")], pair, daemon_sets={"default/d": daemon}) == []
    assert _takers([a_bound_pod("one", "n1", shape=apart), a_waiting_pod("other", shape=apart)], pair) == []


def test_nothing_fits_on_a_node_that_is_overdrawn_in_anything() -> None:
    """PLC-76: also a pod that asks for none of it."""
    greedy = a_bound_pod("greedy", "n1")
    overdrawn = replace(greedy, requests={**greedy.requests, GPU: 1})
    node, claim = a_joined_pair("n1")
    none_left = (replace(node, allocatable={**node.allocatable, GPU: 0}), claim)

    assert _takers([greedy, a_waiting_pod("p")], none_left) == ["n1"]
    assert _takers([overdrawn, a_waiting_pod("p")], none_left) == []


@pytest.mark.parametrize("by", ["a pod", "a DaemonSet"])
def test_what_a_node_does_not_list_cannot_be_overdrawn(by: str) -> None:
    """PLC-66: a device's plugin has gone, and who asked for the device is still there, or expected."""
    pod = a_waiting_pod("d", cpu="100m")
    asks = replace(pod, requests={**pod.requests, GPU: 1})
    there = [replace(a_bound_pod("greedy", "n1"), requests=asks.requests)] if by == "a pod" else []
    daemons = {} if there else {"default/d": DaemonSet(name="d", namespace="default", pod=asks)}
    too_much = replace(a_waiting_pod("q"), requests={**a_waiting_pod("q").requests, GPU: 1})

    assert _takers([*there, a_waiting_pod("p")], a_joined_pair("n1"), daemon_sets=daemons) == ["n1"]
    assert _takers([*there, too_much], a_joined_pair("n1"), daemon_sets=daemons) == []


def test_nothing_fits_on_a_type_that_daemon_sets_overdraw_in_anything() -> None:
    """PLC-76, PLC-119: also a pod that asks for none of it."""
    pod = a_waiting_pod("d", cpu="100m")
    asks = replace(pod, requests={**pod.requests, GPU: 1})
    two = {name: DaemonSet(name=name, namespace="default", pod=asks) for name in ("d", "e")}
    only = (replace(TYPES[0], capacity={**TYPES[0].capacity, GPU: 1}),)
    both = (*only, replace(TYPES[1], capacity={**TYPES[1].capacity, GPU: 2}))
    on_only = a_waiting_pod("p", shape=a_shape(node_selector=((names.INSTANCE_TYPE, TYPES[0].name),)))
    karpenters = PlacementSettings(profile=KARPENTER_PLACEMENT)

    assert placed(a_snapshot([a_waiting_pod("p")], types=only, daemon_sets={"d": two["d"]})).new
    for pod, types in ((on_only, both), (a_waiting_pod("p"), only)):
        world = a_snapshot([pod], types=types, daemon_sets=two)
        assert placed(world, karpenters).new == ()
        assert placed(world).new  # PLQ-69: one of them will never be there


@pytest.mark.parametrize(("limit", "new"), [("6", 0), ("12", 1)])
def test_a_node_counts_against_a_limit_with_its_capacity_and_not_with_what_is_left_of_it(limit: str, new: int) -> None:
    """PLC-62: 4 cpu, of which the system keeps all but one."""
    node, claim = a_joined_pair("n1", cpu="4")
    allocatable = {**node.allocatable, **parse_resources({"cpu": "1"})}
    pair = (replace(node, allocatable=allocatable), replace(claim, allocatable=allocatable))
    pool = a_general_pool(limits=parse_resources({"cpu": limit}))

    assert len(placed(a_snapshot([a_waiting_pod("p", cpu="3")], [pair], [pool])).new) == new


@pytest.mark.parametrize("limits", [{"nodes": 1}, parse_resources({"cpu": "4"})])
def test_a_node_that_is_imagined_gone_does_not_count_against_a_limit(limits: dict[str, int]) -> None:
    """PLC-62: or a pool at its limit could never replace a node."""
    snapshot = a_snapshot([a_bound_pod("p", "n1")], [a_joined_pair("n1", cpu="4")], [a_general_pool(limits=limits)])

    assert len(simulate(an_index(snapshot), frozenset({"n1"})).new) == 1
