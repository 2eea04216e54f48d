"""PLC-165 to PLC-181: which pods a group counts, and where."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.workloads import SelectorSource
from dovetail.model.places.placements import NewNode
from dovetail.model.pods import Pod, PodShape, Toleration
from dovetail.model.scheduling.taints import Taint
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import (
    a_bound_pod,
    a_general_pool,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    groups,
    near,
    one_of,
    placed,
    selecting,
    spread,
    term,
)
from worlds.disruption import NOW

X = {"app": "x"}
OVER_ZONES = spread(names.ZONE, app="x")
FULL = "4"  # cpu of a pod that leaves no room on the node that it is on


def _zones(
    pods: Iterable[Pod], nodes: Iterable[tuple[Node, NodeClaim]] = (), settings: PlacementSettings | None = None
) -> list[list[str]]:
    """The zones that new nodes are bound to; none: any will do."""
    found = placed(a_snapshot(pods, nodes), settings).new
    return sorted(_zones_of(node) for node in found)


def _zones_of(node: NewNode) -> list[str]:
    item = node.requirements.get(names.ZONE)
    return sorted(item.values) if item is not None else []


def _bound(name: str, **fields: Any) -> Pod:
    return a_bound_pod(name, "n1", cpu=FULL, shape=a_shape(X), **fields)


def test_pods_that_move_are_not_counted_where_they_are() -> None:
    """PLC-165: both zones that were theirs and another are free again."""
    node, claim = a_joined_pair("n1", zone="z1", cpu="8")
    shape = a_shape(X, spread=(OVER_ZONES,))
    pods = [a_bound_pod(name, "n1", cpu=FULL, shape=shape) for name in ("p", "q")]

    assert _zones(pods, [(node, replace(claim, deleting_since=NOW))]) == [["z1"], ["z2"]]


@pytest.mark.parametrize(
    ("bound", "zone"),
    [
        (_bound("b"), "z2"),
        (replace(_bound("b"), phase="Failed"), "z1"),
        (replace(_bound("b"), deleting_since=NOW - 1), "z1"),
        (replace(_bound("b"), shape=replace(a_shape(X), namespace="other")), "z1"),
        (replace(_bound("b"), shape=a_shape({"app": "y"})), "z1"),
    ],
)
def test_a_spread_counts_the_living_pods_of_its_namespace_that_it_selects(bound: Pod, zone: str) -> None:
    """PLC-172, PLC-173, PLT-114."""
    pod = a_waiting_pod("p", cpu="8", shape=a_shape(X, spread=(OVER_ZONES,)))

    assert _zones([bound, pod], [a_joined_pair("n1", zone="z1")]) == [[zone]]


def test_pods_of_other_namespaces_do_not_keep_each_other_away() -> None:
    """PLC-167, PLC-173: in one pass too."""
    shape = a_shape(X, anti_affinity=(near(names.HOSTNAME, app="x"),))
    pods = [a_waiting_pod("a", shape=shape), a_waiting_pod("b", shape=replace(shape, namespace="other"))]

    assert groups(placed(a_snapshot(pods))) == [["a", "b"]]


@pytest.mark.parametrize(("keys", "zone"), [((), "z2"), (("revision",), "z1"), (("unknown",), "z2")])
def test_a_spread_over_revisions_counts_those_of_its_own_pods(keys: tuple[str, ...], zone: str) -> None:
    """PLC-168, PLT-121: a key that the pod lacks adds nothing."""
    before = replace(_bound("b"), shape=a_shape({**X, "revision": "1"}))
    spreading = replace(OVER_ZONES, match_label_keys=keys)
    pod = a_waiting_pod("p", cpu="8", shape=a_shape({**X, "revision": "2"}, spread=(spreading,)))

    assert _zones([before, pod], [a_joined_pair("n1", zone="z1")]) == [[zone]]


@pytest.mark.parametrize(("policy", "zone"), [("Ignore", "z2"), ("Honor", "z1")])
def test_a_spread_that_honours_taints_counts_no_pods_behind_them(policy: Any, zone: str) -> None:
    """PLC-170, PLT-122."""
    node = a_joined_pair("n1", zone="z1", taints=(Taint(key="team", effect="NoSchedule"),))
    spreading = replace(OVER_ZONES, node_taints_policy=policy)

    assert _zones([_bound("b"), a_waiting_pod("p", cpu="8", shape=a_shape(X, spread=(spreading,)))], [node]) == [[zone]]


def test_the_first_of_a_group_cannot_start_where_taints_keep_it_away() -> None:
    """PLC-171: for affinity the taints of pools always count; the metric by zone tells."""
    taint = (Taint(key="team", effect="NoSchedule"),)
    pools = [
        a_general_pool("a", requirements=(one_of(names.ZONE, "z1"),), taints=taint),
        a_general_pool("b", requirements=(one_of(names.ZONE, "z2"),)),
    ]
    pod = a_waiting_pod("p", shape=a_shape(X, affinity=(near(names.ZONE, app="x"),)))

    assert dict(placed(a_snapshot([pod], pools=pools)).by_zone) == {"z2": 1}


@pytest.mark.parametrize(("node_selector", "together"), [((), True), (((names.ARCH, "amd64"),), False)])
def test_a_pod_on_a_new_node_whose_label_is_not_known_yet_does_not_count(
    node_selector: tuple[tuple[str, str], ...], together: bool
) -> None:
    """PLQ-9: every type is amd64, but nothing has said so of the node that the first pod gets."""
    counted = a_shape(X, node_selector=((names.ZONE, "z1"), *node_selector))
    spreading = a_shape(X, node_selector=((names.ARCH, "amd64"),), spread=(OVER_ZONES,))
    pods = [a_waiting_pod("a", cpu="2", shape=counted), a_waiting_pod("b", shape=spreading)]

    assert groups(placed(a_snapshot(pods))) == ([["a", "b"]] if together else [["a"], ["b"]])


@pytest.mark.parametrize(("tolerations", "zone"), [((), "z2"), ((Toleration(operator="Exists"),), "z1")])
def test_a_group_has_the_zones_that_the_first_of_its_pods_tolerates(
    tolerations: tuple[Toleration, ...], zone: str
) -> None:
    """PLQ-17: the second pod tolerates everything; where the first one does not, z1 is unknown to both."""
    pools = [
        a_general_pool(
            "a", weight=1, requirements=(one_of(names.ZONE, "z1"),), taints=(Taint(key="t", effect="NoSchedule"),)
        ),
        a_general_pool("b", requirements=(one_of(names.ZONE, "z2"),)),
    ]
    near_its_own = (near(names.ZONE, app="x"),)
    first = a_waiting_pod("first", cpu="99", shape=a_shape(X, affinity=near_its_own, tolerations=tolerations))
    second = a_waiting_pod(
        "second", shape=a_shape(X, affinity=near_its_own, tolerations=(Toleration(operator="Exists"),))
    )

    (node,) = placed(a_snapshot([first, second], pools=pools)).new

    assert ([pod.name for pod in node.pods], _zones_of(node)) == (["second"], [zone])


def test_a_spread_counts_a_pod_only_where_one_zone_is_left() -> None:
    """PLC-181: the first pod may be in either of two zones, and counts in neither."""
    first = a_waiting_pod("a", cpu="2", shape=a_shape(X, required_terms=(term(one_of(names.ZONE, "z1", "z2")),)))
    spreading = replace(OVER_ZONES, node_taints_policy="Honor")
    second = a_waiting_pod("b", cpu="1", shape=a_shape(X, spread=(spreading,)))

    assert groups(placed(a_snapshot([first, second]))) == [["a", "b"]]


IGNORE = PlacementSettings(preference_policy="Ignore")


@pytest.mark.parametrize(
    "shape",
    [
        a_shape(X, preferred_anti_affinity=(replace(near(names.HOSTNAME, app="x"), weight=1),)),
        a_shape(X, spread=(spread(names.HOSTNAME, when="ScheduleAnyway", app="x"),)),
    ],
)
def test_pods_that_prefer_to_be_apart_are_together_where_preferences_are_ignored(shape: PodShape) -> None:
    """PLC-100, PLT-33."""
    snapshot = a_snapshot([a_waiting_pod(name, cpu="100m", shape=shape) for name in "pq"])

    assert (groups(placed(snapshot)), groups(placed(snapshot, IGNORE))) == ([["p"], ["q"]], [["p", "q"]])


def test_a_pod_that_prefers_to_be_near_others_goes_anywhere_where_preferences_are_ignored() -> None:
    """PLC-100, PLT-33."""
    shape = a_shape(preferred_affinity=(replace(near(names.ZONE, app="x"), weight=1),))
    pods, nodes = [_bound("b"), a_waiting_pod("p", cpu="8", shape=shape)], [a_joined_pair("n1", zone="z1")]

    assert (_zones(pods, nodes), _zones(pods, nodes, IGNORE)) == ([["z1"]], [[]])


def test_a_preferred_zone_is_given_up_before_a_soft_spread() -> None:
    """PLC-101, PLC-106, PLC-107."""
    soft = spread(names.ZONE, when="ScheduleAnyway", app="x")
    shape = a_shape(X, spread=(soft,), preferred_terms=(term(one_of(names.ZONE, "z1"), weight=1),))

    assert _zones([_bound("b"), a_waiting_pod("p", cpu="8", shape=shape)], [a_joined_pair("n1", zone="z1")]) == [["z2"]]


@pytest.mark.parametrize(("services", "zone"), [((), []), (("x",), ["z2"])])
def test_a_default_spread_without_a_selector_is_none(services: tuple[str, ...], zone: list[str]) -> None:
    """PLC-57: where no Service and no controller selects the pod."""
    sources = {
        name: SelectorSource(kind="Service", name=name, namespace="default", selector=selecting(app=name))
        for name in services
    }
    snapshot = a_snapshot(
        [_bound("b"), a_waiting_pod("p", cpu="8", shape=a_shape(X))],
        [a_joined_pair("n1", zone="z1")],
        selector_sources=sources,
    )
    settings = PlacementSettings(default_spread=(replace(OVER_ZONES, selector=None),))

    (node,) = placed(snapshot, settings).new
    assert _zones_of(node) == zone


@pytest.mark.parametrize("key", [names.ZONE, names.HOSTNAME])
def test_a_spread_without_a_selector_spreads_nothing(key: str) -> None:
    """PLC-173, PLT-110."""
    shape = a_shape(X, spread=(replace(spread(key, app="x"), selector=None),))

    assert groups(placed(a_snapshot([a_waiting_pod(name, cpu="100m", shape=shape) for name in "pqr"]))) == [
        ["p", "q", "r"]
    ]


def test_spreads_over_one_key_all_hold() -> None:
    """PLT-119: by the first alone the pod would be in z1."""
    shape = a_shape({"app": "x", "team": "a"}, spread=(spread(names.ZONE, team="a"), OVER_ZONES))

    assert _zones([_bound("b"), a_waiting_pod("p", cpu="8", shape=shape)], [a_joined_pair("n1", zone="z1")]) == [["z2"]]


def test_a_preferred_affinity_that_cannot_be_met_is_given_up() -> None:
    """PLT-127, PLC-104."""
    shape = a_shape(preferred_affinity=(replace(near(names.ZONE, app="nobody"), weight=1),))

    assert groups(placed(a_snapshot([a_waiting_pod("p", shape=shape)]))) == [["p"]]


def test_a_preference_that_contradicts_a_requirement_is_given_up_and_one_that_agrees_is_met() -> None:
    """PLT-26."""
    required = (term(one_of(names.ZONE, "z1", "z2")),)
    shapes = [
        a_shape(required_terms=required, preferred_terms=(term(one_of(names.ZONE, zone), weight=1),))
        for zone in ("z2", "z3")
    ]

    assert [_zones([a_waiting_pod("p", shape=shape)]) for shape in shapes] == [[["z2"]], [["z1", "z2"]]]
