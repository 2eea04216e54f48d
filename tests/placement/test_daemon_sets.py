"""PLC-83, PLC-117 to PLC-119, PLC-182a to PLC-182d: what DaemonSets take of nodes and ports."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from acceptance.karpenter import KARPENTER_PLACEMENT
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.objects.workloads import DaemonSet
from dovetail.model.pods import Expression, HostPort, NodeTerm, Owner, Pod, PodShape, Toleration
from dovetail.model.pools import Catalogue
from dovetail.model.scheduling.taints import Taint
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import NANO, parse_resources
from dovetail.placement.place_pods import place
from dovetail.placement.settings import CostSettings, PlacementSettings
from tests.placement.builders import (
    TYPES,
    a_bound_pod,
    a_general_pool,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    an_index,
    groups,
    near,
    one_of,
    placed,
    term,
)
from worlds.disruption import NOW, sold_out

ANY = Toleration(operator="Exists")
WEB = (HostPort(address="0.0.0.0", port=80, protocol="TCP"),)
KARPENTERS = PlacementSettings(profile=KARPENTER_PLACEMENT)
CILIUM: dict[str, Any] = {"labels": {"app": "cilium"}}
ON_SMALL = (term(one_of(names.INSTANCE_TYPE, "small")),)


def _daemon_set(name: str = "d", cpu: str = "1", terms: tuple[NodeTerm, ...] = (), **shape: Any) -> DaemonSet:
    pod = a_waiting_pod(name, cpu=cpu, shape=a_shape(required_terms=terms, **shape))
    return DaemonSet(name=name, namespace="default", uid=f"uid-{name}", pod=pod)


def _types(pods: Iterable[Pod], *daemon_sets: DaemonSet, **fields: Any) -> list[str]:
    """The types of the one new node, if there is one."""
    snapshot = a_snapshot(pods, daemon_sets={each.name: each for each in daemon_sets}, **fields)
    return [item.name for node in placed(snapshot).new for item in node.types]


def test_a_daemon_set_takes_room_only_of_the_types_that_it_runs_on() -> None:
    """PLC-117, PLC-119, PLC-182c: what several of them take is added up."""
    pod = a_waiting_pod("p", cpu="3")

    assert _types([pod]) == ["medium", "large", "huge"]
    assert _types([pod], _daemon_set(cpu="2", terms=ON_SMALL)) == ["medium", "large", "huge"]
    assert _types([pod], _daemon_set(cpu="1")) == ["medium", "large", "huge"]
    assert _types([pod], _daemon_set("a"), _daemon_set("b")) == ["large", "huge"]


def test_a_daemon_sets_port_is_taken_only_on_the_types_that_it_runs_on() -> None:
    """PLC-83, PLC-118, PLC-182c."""
    pod = a_waiting_pod("p", shape=a_shape(host_ports=WEB))

    assert _types([pod], _daemon_set(terms=ON_SMALL, host_ports=WEB)) == ["medium", "large", "huge"]
    assert _types([pod], _daemon_set(host_ports=WEB)) == []


@pytest.mark.parametrize(
    ("cpu", "daemon_sets", "blamed"),
    [
        ("16", {"a": "1"}, ("default/a",)),  # beside it nothing is left for the pod
        ("99", {"a": "1"}, ()),  # no type has as much
        ("16", {"a": "1", "b": "1"}, ("default/a", "default/b")),
    ],
)
def test_daemon_sets_but_for_which_a_pod_would_fit_are_named(
    cpu: str, daemon_sets: dict[str, str], blamed: tuple[str, ...]
) -> None:
    made = {name: _daemon_set(name, amount) for name, amount in daemon_sets.items()}
    (refused,) = placed(a_snapshot([a_waiting_pod("p", cpu=cpu)], daemon_sets=made)).refused

    assert [pool.daemon_sets for pool in refused.pools] == [blamed]
    assert ("DaemonSets" in refused.pools[0].remedy) == bool(blamed)


def _asking_for(device: str) -> DaemonSet:
    daemon = _daemon_set("gpu")
    return replace(daemon, pod=replace(daemon.pod, requests={**daemon.pod.requests, device: 1}))


def test_a_daemon_set_that_fits_on_no_type_of_a_pool_counts_on_none_of_its_nodes() -> None:
    """PLQ-69: its pods wait, and the kube-scheduler minds no other pod for them."""
    pod, large = a_waiting_pod("p", cpu="3"), _daemon_set("large", "15")

    assert _types([pod], _daemon_set("a", "99"), _daemon_set("b", "1")) == ["medium", "large", "huge"]
    assert _types([pod], _asking_for("example.com/nothing")) == ["medium", "large", "huge"]
    assert _types([a_waiting_pod("p")], large) == [
        "huge"
    ]  # where there is a type for it, those that are too small are avoided
    assert _types([pod], large, pools=[a_general_pool(requirements=(one_of(names.INSTANCE_TYPE, "large"),))]) == [
        "large"
    ]


def test_a_daemon_set_that_asks_for_a_device_counts_on_the_types_that_have_it() -> None:
    """PLQ-69: for the other pods no dearer type is taken."""
    gpu = replace(TYPES[3], name="gpu", capacity={**TYPES[3].capacity, "nvidia.com/gpu": 1})
    types = [*TYPES[:3], gpu]

    assert _types([a_waiting_pod("p", cpu="3")], _asking_for("nvidia.com/gpu"), types=types) == [
        "medium",
        "large",
        "gpu",
    ]
    assert _types([a_waiting_pod("p", cpu="16")], _asking_for("nvidia.com/gpu"), types=types) == []


def test_a_daemon_set_whose_pod_a_node_could_not_hold_empty_keeps_no_room_of_it() -> None:
    """PLQ-69: the node is as free as the kube-scheduler sees it."""
    for daemon in (_daemon_set("large", "5"), _asking_for("nvidia.com/gpu")):
        world = a_snapshot([a_waiting_pod("p", cpu="4")], [a_joined_pair("n1", cpu="4")], daemon_sets={"d": daemon})

        assert list(placed(world).existing) == ["n1"]
        assert placed(world, PlacementSettings(profile=KARPENTER_PLACEMENT)).existing == {}


def _with_daemon_sets(*made: DaemonSet, **fields: Any) -> Snapshot:
    return a_snapshot(
        fields.pop("pods", [a_waiting_pod("p")]), daemon_sets={each.name: each for each in made}, **fields
    )


def test_where_no_type_holds_all_daemon_sets_those_count_whose_turn_is_first() -> None:
    """PLQ-69: by priority, then by age. The types with room for these are still preferred to smaller ones."""
    young, old = replace(_daemon_set("a", "10"), created=NOW), replace(_daemon_set("b", "9"), created=NOW - 9)
    critical = replace(young, pod=replace(young.pod, priority=2_000_001_000))

    by_age, by_priority = placed(_with_daemon_sets(young, old)), placed(_with_daemon_sets(critical, old))
    for found, counted, name in ((by_age, 9, "default/a"), (by_priority, 10, "default/b")):
        (node,) = found.new
        assert ([item.name for item in node.types], node.requests["cpu"]) == (["huge"], (1 + counted) * NANO)
        assert found.oversized == ((name, "default"),)
    assert not placed(_with_daemon_sets(young, old), PlacementSettings(profile=KARPENTER_PLACEMENT)).new
    assert placed(_with_daemon_sets(young, _daemon_set("c", "6"))).oversized == ()  # the largest type holds both


def test_a_daemon_set_that_fits_on_no_type_within_the_limits_counts_on_no_node_of_the_pool() -> None:
    """PLQ-69."""
    limited = a_general_pool(limits=parse_resources({"cpu": "12"}))
    found = placed(_with_daemon_sets(_daemon_set(cpu="14"), pools=[limited]))

    assert [item.name for node in found.new for item in node.types] == ["small", "medium", "large"]
    assert found.oversized == (("default/d", "default"),)


@pytest.mark.parametrize(
    ("pod", "types"),
    [
        (a_waiting_pod("p", shape=a_shape(node_selector=((names.INSTANCE_TYPE, "small"),))), ["small"]),
        (a_waiting_pod("p", cpu="3"), ["medium", "large"]),
    ],
)
def test_a_pod_that_has_no_type_with_room_for_a_daemon_set_gets_one_that_could_not_hold_it(
    pod: Pod, types: list[str]
) -> None:
    """PLQ-69: the last resort. A pool that has room for both comes first, and so does reserved capacity."""
    others = (replace(TYPES[3], name="larger", capacity={**TYPES[3].capacity, "cpu": 32 * NANO}),)
    wide = replace(
        _with_daemon_sets(
            _daemon_set(cpu="14"), pods=[pod], pools=[a_general_pool("heavy", weight=9), a_general_pool()]
        )
    )
    beside = replace(wide, catalogues={**wide.catalogues, "default": Catalogue(types=(TYPES[0], *others))})

    assert _types([pod], _daemon_set(cpu="14")) == types
    assert not placed(_with_daemon_sets(_daemon_set(cpu="14"), pods=[pod]), KARPENTERS).new
    if pod.requests["cpu"] == 3 * NANO:
        assert [node.pool for node in placed(beside).new] == ["default"]


FULL = "no subnet of its EC2NodeClass has a free address there"
IN_Z1: dict[str, Any] = {"node_selector": ((names.ZONE, "z1"),)}


@pytest.mark.parametrize("closed", ["", FULL])
@pytest.mark.parametrize("daemons", [("14",), ("7", "6")])
def test_a_pod_waits_for_a_type_with_room_for_a_daemon_set_that_is_not_for_sale_for_the_moment(
    daemons: tuple[str, ...], closed: str
) -> None:
    """PLQ-69: or a shortage of minutes makes nodes on which the DaemonSet's pod never runs."""
    sets = [_daemon_set(f"d{number}", cpu) for number, cpu in enumerate(daemons)]
    gone = (*TYPES[:3], sold_out(TYPES[3], closed=closed))
    in_z1 = (*TYPES[:3], sold_out(TYPES[3], "z1", closed=closed))
    chooses = a_shape(node_selector=((names.INSTANCE_TYPE, "small"),))

    assert _types([a_waiting_pod("p")], *sets) == ["huge"]
    for types, shape in ((gone, a_shape()), (in_z1, a_shape(**IN_Z1))):
        found = placed(_with_daemon_sets(*sets, pods=[a_waiting_pod("p", shape=shape)], types=types))
        assert (found.new, found.oversized) == ((), ())
        [said] = [pool for refused in found.refused for pool in refused.pools]
        assert (said.reason, said.daemon_sets) == ("it_offering", ())
        assert (closed or "the cloud has run out of huge on-demand in z1") in said.conflict
    assert _types([a_waiting_pod("p")], *sets, types=in_z1) == ["huge"]  # in another zone
    assert _types([a_waiting_pod("p", shape=chooses)], *sets[:1], types=gone) == ["small"]  # no shortage changes that
    limited = [a_general_pool(limits=parse_resources({"cpu": "12"}))]
    assert "large" in _types([a_waiting_pod("p")], *sets[:1], types=gone, pools=limited)


@pytest.mark.parametrize("lacks", [{"unsuited": "no image of its EC2NodeClass starts on it"}, {}])
def test_nothing_waits_for_a_type_that_is_not_for_sale_for_good(lacks: dict[str, Any]) -> None:
    """PLQ-69."""
    never = replace(sold_out(TYPES[3]), **lacks)
    without_price = replace(never, offerings=tuple(replace(o, unpriced=True) for o in never.offerings))
    found = placed(_with_daemon_sets(_daemon_set(cpu="14"), types=(*TYPES[:3], never if lacks else without_price)))

    assert [item.name for node in found.new for item in node.types] == ["small", "medium", "large"]
    assert found.oversized == (("default/d", "default"),)


def test_a_daemon_set_that_only_a_type_that_is_sold_out_holds_is_blamed_for_no_pod() -> None:
    """PLQ-69: the pod fits beside it there."""
    gone = (TYPES[0], sold_out(TYPES[2]))
    [refused] = placed(_with_daemon_sets(_daemon_set(cpu="1.5"), types=gone)).refused

    assert [(pool.reason, pool.daemon_sets) for pool in refused.pools] == [("it_offering", ())]


def test_minimum_values_leave_a_daemon_set_its_room() -> None:
    """PLQ-69: what holds both is for sale, and minValues alone stands against it."""
    two = Expression(key=names.INSTANCE_TYPE, operator="Exists", min_values=2)
    world = _with_daemon_sets(_daemon_set(cpu="14"), pools=[a_general_pool(requirements=(two,))])
    [refused] = placed(world).refused

    assert [pool.reason for pool in refused.pools] == ["min_values"]
    assert "node.kubernetes.io/instance-type has 1 of 2 of what has room beside all DaemonSets" in (
        refused.pools[0].conflict
    )
    relaxed = placed(world, PlacementSettings(min_values_policy="BestEffort"))
    assert [item.name for node in relaxed.new for item in node.types] == ["huge"]


@pytest.mark.parametrize("daemons", [("1.2", "1.3"), ("0.8", "0.7", "0.6"), ("0.15", "1.9")])
def test_a_pod_that_must_have_a_type_that_holds_each_daemon_set_but_not_all_gets_it(daemons: tuple[str, ...]) -> None:
    """PLQ-69: those count whose turn is first; a larger type in the pool changes nothing of that. Other pods get a
    type that holds all."""
    sets = tuple(_daemon_set(f"d{number}", cpu) for number, cpu in enumerate(daemons))
    pod = a_waiting_pod("p", cpu="0.1", shape=a_shape(required_terms=ON_SMALL))
    together = replace(sets[0], pod=replace(sets[0].pod, shape=a_shape(host_ports=WEB)))
    free = a_waiting_pod("p", cpu="0.1", shape=a_shape(required_terms=ON_SMALL, host_ports=WEB))

    for types in (TYPES, TYPES[:1]):
        (node,) = placed(_with_daemon_sets(*sets, pods=[pod], types=types)).new
        assert [item.name for item in node.types] == ["small"]
        assert not _types([replace(pod, requests={**pod.requests, "cpu": 2 * NANO})], *sets, types=types)
    assert "small" not in _types([a_waiting_pod("p", cpu="0.1")], *sets)
    assert not placed(_with_daemon_sets(*sets, pods=[pod]), KARPENTERS).new
    assert not _types([free], together, *sets[1:])  # whose turn is first has its port too


def test_where_the_limits_leave_only_types_that_are_too_small_for_a_daemon_set_one_of_these_is_taken() -> None:
    """PLQ-69."""
    limited = a_general_pool(limits=parse_resources({"cpu": "20"}))
    full = [a_joined_pair("n1", cpu="12")], [a_bound_pod("b", "n1", cpu="12")]

    found = placed(
        _with_daemon_sets(_daemon_set(cpu="14"), pods=[a_waiting_pod("p"), *full[1]], nodes=full[0], pools=[limited])
    )
    assert [item.name for node in found.new for item in node.types] == ["small", "medium", "large"]


def test_a_pod_that_must_be_beside_a_daemon_set_gets_no_type_that_is_too_small_for_it() -> None:
    """PLQ-66, PLQ-69."""
    agent = _daemon_set(cpu="14", **CILIUM)

    assert _types([a_waiting_pod("p", cpu="2", shape=beside("cilium"))], agent) == ["huge"]
    assert _types([a_waiting_pod("p", cpu="3", shape=beside("cilium"))], agent) == []


def test_a_node_that_could_hold_each_daemon_set_but_not_all_keeps_room_for_those_whose_turn_is_first() -> None:
    """PLQ-69: what runs there already counts as one of them."""
    sets = (_daemon_set("a", "6"), _daemon_set("b", "6"))
    empty = _with_daemon_sets(*sets, pods=[a_waiting_pod("p", cpu="2")], nodes=[a_joined_pair("n1", cpu="8")])

    assert list(placed(empty).existing) == ["n1"]
    assert not placed(empty, KARPENTERS).existing
    assert not placed(replace(empty, pods={"p": a_waiting_pod("p", cpu="3")})).existing


def _that_waits(item: DaemonSet) -> DaemonSet:
    """Of a class that preempts nobody."""
    return replace(item, pod=replace(item.pod, preempts=False))


def _of_priority(item: DaemonSet, priority: int) -> DaemonSet:
    return replace(item, pod=replace(item.pod, priority=priority))


MINUTE = 60.0


@pytest.mark.parametrize(
    ("daemon", "there", "ready_for", "free"),
    [
        (_daemon_set(cpu="7"), {}, 6 * MINUTE, True),
        (_of_priority(_daemon_set(cpu="7"), 5), {"priority": 5}, 6 * MINUTE, True),
        (_of_priority(_daemon_set(cpu="7"), 6), {"priority": 5}, 6 * MINUTE, False),  # it preempts what runs there
        (_that_waits(_of_priority(_daemon_set(cpu="7"), 6)), {"priority": 5}, 6 * MINUTE, True),
        (_daemon_set(cpu="7"), {"deleting_since": NOW}, 6 * MINUTE, False),
        (_daemon_set(cpu="7"), {"phase": "Succeeded"}, 6 * MINUTE, False),
        (_daemon_set(cpu="7"), {}, 4 * MINUTE, False),  # it comes before others do, if it can
        (replace(_daemon_set(cpu="7"), created=NOW - 4 * MINUTE), {}, 6 * MINUTE, False),
        (_daemon_set(cpu="5"), {}, 6 * MINUTE, False),  # it has room, and only lacks its pod
    ],
)
def test_a_daemon_set_that_has_no_room_beside_what_runs_on_a_node_that_stands_keeps_none_of_it(
    daemon: DaemonSet, there: dict[str, Any], ready_for: float, free: bool
) -> None:
    """PLQ-69: else one that anybody makes keeps pods from every node, and the cluster from being consolidated."""
    node, claim = a_joined_pair("n1", cpu="8")
    ready = Condition(type=names.INITIALIZED_CONDITION, status="True", changed=NOW - ready_for)
    runs = replace(a_bound_pod("w", "n1", cpu="2"), **there)
    pair = replace(node, created=NOW - ready_for), replace(claim, conditions=(ready,))
    world = _with_daemon_sets(daemon, pods=[a_waiting_pod("p", cpu="4"), runs], nodes=[pair])

    assert ("n1" in placed(world).existing) == free
    assert not placed(world, KARPENTERS).existing


def test_of_two_daemon_sets_the_one_that_has_room_beside_what_runs_on_a_node_keeps_it() -> None:
    """PLQ-69: also where a pod of the other one runs."""
    node = [a_joined_pair("n1", cpu="8")]
    sets = replace(_daemon_set("a", "3"), created=1.0), replace(_daemon_set("b", "4"), created=2.0)
    runs = a_bound_pod("w", "n1", cpu="2")
    owner = Owner(api_version="apps/v1", kind="DaemonSet", name="c", uid="uid-c", controller=True)
    third = replace(_daemon_set("c", "1"), created=0.5)
    comes = replace(a_bound_pod("c-1", "n1", cpu="1"), owners=(owner,))

    def takes(cpu: str, *pods: Pod, more: tuple[DaemonSet, ...] = ()) -> bool:
        world = _with_daemon_sets(*sets, *more, pods=[a_waiting_pod("p", cpu=cpu), runs, *pods], nodes=node)
        return bool(placed(world).existing)

    assert (takes("3"), takes("4")) == (True, False)
    assert (takes("2", comes, more=(third,)), takes("3", comes, more=(third,))) == (True, False)


def test_the_search_for_cheaper_nodes_leaves_a_node_of_last_resort_as_it_is() -> None:
    """PLQ-69."""
    pods = [a_waiting_pod("p", cpu="3"), *(a_waiting_pod(f"q{n}", cpu="1") for n in range(5))]
    settings = PlacementSettings(cost=CostSettings(everywhere=True, steps=9))
    found = placed(_with_daemon_sets(_daemon_set(cpu="14"), pods=pods), settings)

    assert not found.refused
    assert sorted(pod.name for node in found.new for pod in node.pods) == sorted(pod.name for pod in pods)


def test_karpenter_makes_no_node_beside_a_daemon_set_that_fits_nowhere() -> None:
    settings = PlacementSettings(profile=KARPENTER_PLACEMENT)
    (refused,) = placed(a_snapshot([a_waiting_pod("p")], daemon_sets={"a": _daemon_set("a", "99")}), settings).refused

    assert refused.pools[0].daemon_sets == ("default/a",)


def test_a_daemon_set_that_runs_elsewhere_is_not_blamed() -> None:
    """On the type that would do, only the other one runs."""
    on_small = _daemon_set("small", "2", terms=ON_SMALL)
    made = {"small": on_small, "all": _daemon_set("all", "1")}
    (refused,) = placed(a_snapshot([a_waiting_pod("p", cpu="16")], daemon_sets=made)).refused

    assert refused.pools[0].daemon_sets == ("default/all",)


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    """PLC-82: one that is asked about where it runs has its port there already."""
    running = replace(a_waiting_pod("p", shape=a_shape(host_ports=WEB)), node_name="n1", phase="Running")
    other = replace(running, name="q", uid="uid-q")
    index = an_index(a_snapshot([running], [a_joined_pair("n1")]))

    assert (list(place(index, [running]).existing), list(place(index, [other]).existing)) == (["n1"], [])


def _live(name: str, cpu: str, created: float, **shape: Any) -> Pod:
    owner = Owner(api_version="apps/v1", kind="DaemonSet", name="d", uid="uid-d", controller=True)
    return replace(
        a_waiting_pod(name, cpu=cpu, shape=a_shape(**shape)),
        owners=(owner,),
        node_name="n1",
        phase="Running",
        unschedulable=False,
        created=created,
    )


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_the_newest_live_pod_says_what_a_daemon_set_takes(order: tuple[str, str]) -> None:
    """PLC-182a, PLT-81: admission may have changed its requests; the node that it is pinned to is forgotten."""
    pinned = (term(one_of(names.HOSTNAME, "n1")),)
    pods = {
        "old": _live("old", "1", NOW - 2, required_terms=pinned),
        "new": _live("new", "4", NOW - 1, required_terms=pinned),
    }
    everywhere = (term(one_of(names.OS, "linux")),)
    live = [pods[name] for name in order]

    found = _types(
        [*live, a_waiting_pod("p", cpu="3")], _daemon_set(terms=everywhere), nodes=[a_joined_pair("n1", cpu="5")]
    )
    assert found == ["large", "huge"]


def test_a_pod_of_another_namespace_that_names_the_daemon_set_says_nothing_of_it() -> None:
    """PLC-182a. Nobody checks the owner that a pod names: one pod made every new node the largest."""
    live = _live("theirs", "14", NOW)
    theirs = replace(live, shape=replace(live.shape, namespace="mallory"))

    nodes = [a_joined_pair("n1", cpu="14")]
    beside = _types([theirs, a_waiting_pod("p", cpu="3")], _daemon_set(), nodes=nodes)
    assert beside == _types([a_waiting_pod("p", cpu="3")], _daemon_set(), nodes=[a_joined_pair("n2", cpu="1")])


def test_on_a_node_that_stands_a_daemon_set_counts_by_its_taints_its_labels_and_what_runs() -> None:
    """PLC-182d: what already runs is not kept free twice."""
    tainted = a_joined_pair("n1", cpu="4", taints=(Taint(key="team", effect="NoSchedule"),))
    tolerant = a_waiting_pod("p", cpu="4", shape=a_shape(tolerations=(ANY,)))
    elsewhere = _daemon_set(terms=(term(one_of(names.ZONE, "z2")),))

    def takers(pod: Pod, daemon_set: DaemonSet, node: Any, *others: Pod) -> list[str]:
        snapshot = a_snapshot([pod, *others], [node], daemon_sets={"d": daemon_set})
        return list(placed(snapshot).existing)

    assert takers(tolerant, _daemon_set(), tainted) == ["n1"]
    assert takers(tolerant, _daemon_set(tolerations=(ANY,)), tainted) == []
    assert takers(a_waiting_pod("p", cpu="4"), elsewhere, a_joined_pair("n1", zone="z1", cpu="4")) == ["n1"]
    assert takers(a_waiting_pod("p", cpu="4"), elsewhere, a_joined_pair("n1", zone="z2", cpu="4")) == []
    assert takers(a_waiting_pod("p", cpu="3"), _daemon_set(), a_joined_pair("n1", cpu="4"), _live("d-1", "1", NOW)) == [
        "n1"
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"phase": "Running"},
        {"phase": "Pending"},
        {"phase": "Running", "deleting_since": NOW},  # it takes its room until it has ended
        {"phase": "Failed"},
        {"phase": "Succeeded"},
        {"phase": "Failed", "deleting_since": NOW},
    ],
)
def test_the_room_of_a_daemon_pod_that_has_ended_is_kept_for_its_successor(fields: dict[str, Any]) -> None:
    """PLC-66, PLC-182d: a node under pressure leaves evicted ones behind, in the phase Failed."""
    daemon = replace(_live("d-1", "1", NOW), **fields)
    pods = [a_waiting_pod(f"p{number}", cpu="1") for number in range(4)]

    found = placed(a_snapshot([daemon, *pods], [a_joined_pair("n1", cpu="4")], daemon_sets={"d": _daemon_set()}))
    assert len(found.existing["n1"]) == 3


def test_a_new_node_asks_for_the_least_that_daemon_sets_take_on_any_of_its_types() -> None:
    """PLC-182f."""
    on_medium = (term(one_of(names.INSTANCE_TYPE, "medium")),)
    daemon_sets = {"a": _daemon_set("a", "1", ON_SMALL), "b": _daemon_set("b", "2", on_medium)}
    snapshot = a_snapshot([a_waiting_pod("p", cpu="1")], types=TYPES[:2], daemon_sets=daemon_sets)

    (node,) = placed(snapshot).new
    assert ([item.name for item in node.types], node.requests["cpu"]) == (["small", "medium"], 2 * NANO)


def test_any_of_a_daemon_sets_terms_is_enough_and_preferences_and_soft_taints_do_not_matter() -> None:
    """PLT-83."""
    later = (term(one_of(names.ZONE, "nowhere")), term(one_of(names.OS, "linux")))
    wishing = _daemon_set(preferred_terms=(term(one_of(names.ZONE, "nowhere"), weight=1),))
    soft = a_general_pool(taints=(Taint(key="soft", effect="PreferNoSchedule"),))
    pod = a_waiting_pod("p", cpu="4")

    assert _types([pod]) == ["medium", "large", "huge"]
    assert _types([pod], _daemon_set(terms=later)) == ["large", "huge"]
    assert _types([pod], wishing) == ["large", "huge"]
    assert _types([pod], _daemon_set(), pools=[soft]) == ["large", "huge"]


def beside(app: str) -> PodShape:
    """A pod that must be on one node with pods of that label."""
    return a_shape(affinity=(near(names.HOSTNAME, app=app),))


GPU = Taint(key="gpu", value="", effect="NoSchedule")


def test_a_daemon_set_s_pod_that_will_come_is_company_on_a_new_node() -> None:
    """PLQ-66: several share the node, and one that stands with the daemon's pod is used first."""
    pods = [a_waiting_pod(f"p{i}", shape=beside("cilium")) for i in range(3)]
    daemon = _daemon_set(**CILIUM)
    running = replace(a_bound_pod("agent", "n1"), shape=daemon.pod.shape)
    standing = a_snapshot([*pods, running], nodes=[a_joined_pair("n1", cpu="8")], daemon_sets={"d": daemon})

    assert groups(placed(a_snapshot(pods, daemon_sets={"d": daemon}))) == [["p0", "p1", "p2"]]
    assert placed(standing).existing.keys() == {"n1"}


def test_a_node_to_which_the_daemon_s_pod_does_not_come_is_no_answer() -> None:
    """PLQ-66: neither one that stands without it, nor one of a pool on which it does not run."""
    pod = a_waiting_pod("p", shape=beside("cilium"))
    tainted = a_general_pool("gpu", weight=10, taints=(GPU,))
    tolerant = replace(pod, shape=replace(pod.shape, tolerations=(ANY,)))
    elsewhere = replace(
        _daemon_set(**CILIUM), pod=a_waiting_pod("d", shape=replace(a_shape(**CILIUM), namespace="other"))
    )
    sets = {"d": _daemon_set(**CILIUM)}

    assert [
        n.pool for n in placed(a_snapshot([tolerant], pools=[tainted, a_general_pool()], daemon_sets=sets)).new
    ] == ["default"]
    [refused] = placed(a_snapshot([tolerant], pools=[tainted], daemon_sets=sets)).refused
    assert refused.reasons == ("pod_affinity",)
    assert placed(a_snapshot([pod], nodes=[a_joined_pair("n1")], daemon_sets=sets)).existing == {}
    assert not placed(a_snapshot([pod], daemon_sets={"d": elsewhere})).new
    assert not placed(a_snapshot([pod])).new


def test_karpenter_makes_no_node_for_pods_beside_a_daemon() -> None:
    pod = a_waiting_pod("p", shape=beside("cilium"))
    settings = PlacementSettings(profile=KARPENTER_PLACEMENT)

    assert not placed(a_snapshot([pod], daemon_sets={"d": _daemon_set(**CILIUM)}), settings).new
