"""The model of the kube-scheduler: what it filters and prefers, and what an answer comes to in the end."""

from typing import Any

import numpy as np
import pytest

from acceptance.binding.nodes import HOSTNAME, Node
from acceptance.binding.pods import Kinds
from acceptance.binding.rounds import Coming, after_binding
from acceptance.binding.scheduler import Cluster, bound
from acceptance.checker.values import amounts
from dovetail.model.values.json import Json, ReadOnlyJson

ZONE = "topology.kubernetes.io/zone"
TAINT = {"key": "only", "value": "mine", "effect": "NoSchedule"}


def node(name: str, cpu: str = "4", memory: str = "8Gi", zone: str = "a", taints: tuple[Json, ...] = ()) -> Node:
    room = amounts({"cpu": cpu, "memory": memory, "pods": "10"})
    return Node(name, {HOSTNAME: name, ZONE: zone}, taints, room, 1.0)


def pod(name: str, cpu: str = "1", memory: str = "1Gi", labels: Json | None = None, **spec: Any) -> Json:
    requests = {"cpu": cpu, "memory": memory}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}], **spec},
    }


def term(key: str, **labels: str) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def required(kind: str, key: str, **labels: str) -> Json:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term(key, **labels)]}}


def test_the_emptier_node_is_taken() -> None:
    found = bound([node("small"), node("large", "16", "32Gi")], [pod(f"p{n}") for n in range(3)])
    assert found == {"p0": "large", "p1": "large", "p2": "large"}


def test_a_node_that_gets_more_even_is_preferred() -> None:
    first = [pod("cpu", "3", "1Gi"), pod("memory", "500m", "7Gi")]
    found = bound([node("a"), node("b")], [*first, pod("next", "1", "100Mi")])
    assert found["next"] == found["memory"] != found["cpu"]


def test_what_does_not_fit_waits() -> None:
    assert bound([node("a")], [pod("p", "5")]) == {}


def test_taints_and_selectors_keep_pods_off() -> None:
    nodes = [node("tainted", taints=(TAINT,)), node("b", zone="b")]
    tolerant = pod("tolerant", nodeSelector={ZONE: "a"}, tolerations=[{"key": "only", "operator": "Exists"}])
    assert bound(nodes, [pod("p"), tolerant, pod("q", nodeSelector={ZONE: "a"})]) == {"p": "b", "tolerant": "tainted"}


def test_pods_that_must_be_apart_are_and_keep_others_off_too() -> None:
    apart: dict[str, Any] = {"labels": {"app": "x"}, "affinity": required("podAntiAffinity", HOSTNAME, app="x")}
    found = bound([node("a"), node("b")], [pod("p", **apart), pod("q", **apart), pod("r", labels={"app": "x"})])
    assert {found["p"], found["q"]} == {"a", "b"}
    assert "r" not in found


def test_affine_pods_go_to_one_zone() -> None:
    affine: dict[str, Any] = {"labels": {"app": "x"}, "affinity": required("podAffinity", ZONE, app="x")}
    nodes = [node("a1"), node("a2"), node("b1", zone="b"), node("b2", zone="b")]
    found = bound(nodes, [pod(f"p{n}", **affine) for n in range(6)])
    assert len({name[0] for name in found.values()}) == 1
    assert len(found) == 6


def test_a_required_spread_fills_no_zone_beyond_its_skew() -> None:
    spread = {**term(ZONE, app="x"), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spec: dict[str, Any] = {"labels": {"app": "x"}, "topologySpreadConstraints": [spread]}
    nodes = [node("a", "8", "16Gi"), node("b", "1", "16Gi", zone="b")]
    found = bound(nodes, [pod(f"p{n}", **spec) for n in range(5)])
    assert sorted(found.values()) == ["a", "a", "b"]


def test_what_is_preferred_weighs_more_than_room() -> None:
    preferred = [{"weight": 1, "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    assert bound([node("a", "8", "16Gi"), node("b", zone="b")], [pod("p", affinity=affinity)]) == {"p": "b"}


def test_host_ports_are_taken_once() -> None:
    ports = [{"name": "c", "ports": [{"hostPort": 80}], "resources": {}}]
    assert len(bound([node("a")], [pod("p", containers=ports), pod("q", containers=ports)])) == 1


def cluster_of(nodes: list[Node], pods: list[Json]) -> Cluster:
    kinds = Kinds()
    for each in pods:
        kinds.of(each)
    found = Cluster(nodes, kinds, np.random.default_rng(1))
    found.up[:] = True
    return found


def names(left: list[ReadOnlyJson]) -> list[str]:
    return [each["metadata"]["name"] for each in left]


def test_the_nominated_node_is_taken_though_another_is_preferred() -> None:
    cluster = cluster_of([node("small"), node("large", "16", "32Gi")], [p := pod("p")])
    assert cluster.bind_what_fits([p], {"p": 0}) == []
    assert cluster.bound == {"p": 0}


def test_a_pod_whose_nominated_node_does_not_hold_it_tries_all() -> None:
    cluster = cluster_of([node("small", "1"), node("large")], [p := pod("p", "3")])
    assert cluster.bind_what_fits([p], {"p": 0}) == []
    assert cluster.bound == {"p": 1}


@pytest.mark.parametrize(("priority", "bound_first"), [(0, False), (1, True)])
def test_the_room_of_nominated_pods_is_kept_from_all_but_higher_priorities(priority: int, bound_first: bool) -> None:
    first, nominated = pod("first", "3", priority=priority), pod("nominated", "3")
    cluster = cluster_of([node("a")], [first, nominated])
    assert names(cluster.bind_what_fits([first, nominated], {"nominated": 0})) == (
        ["nominated"] if bound_first else ["first"]
    )


def test_nobody_is_nominated_to_a_node_that_is_not_up() -> None:
    pods = [pod("p"), pod("q", "4")]
    cluster = cluster_of([node("a"), node("b", "8")], pods)
    cluster.up[1] = False
    assert names(cluster.bind_what_fits(pods, {"p": 1, "q": 1})) == ["q"]
    assert cluster.bound == {"p": 0}
    cluster.up[1] = True
    assert cluster.bind_what_fits([pods[1]], {"q": 1}) == []


def test_a_pod_that_finds_nothing_gives_up_the_room_and_is_nominated_again() -> None:
    """Two pods of a spread are nominated to one node, and each sees the other as if it ran: the first finds nothing and
    is no longer nominated, so that the second is bound. The other zone gets its pod, and then the first one fits."""
    spread = {**term(ZONE, app="x"), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spec: dict[str, Any] = {"labels": {"app": "x"}, "topologySpreadConstraints": [spread]}
    pods = [pod("a1", **spec), pod("a2", **spec), pod("b1", **spec)]
    cluster = cluster_of([node("a", "2"), node("b", "1", zone="b")], pods)
    assert cluster.bind_what_fits(pods, {"a1": 0, "a2": 0, "b1": 1}) == []
    assert list(cluster.bound) == ["a2", "b1", "a1"]


def test_pods_that_are_nominated_elsewhere_in_the_zone_do_not_count_for_a_spread() -> None:
    spread = {**term(ZONE, app="x"), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spec: dict[str, Any] = {"labels": {"app": "x"}, "topologySpreadConstraints": [spread]}
    pods = [pod("p", **spec), pod("q", "4", **spec)]
    cluster = cluster_of([node("a1"), node("a2", "6"), node("b", "1m", zone="b")], pods)
    cluster.bind_what_fits(pods[:1], {"p": 0, "q": 1})
    assert cluster.bound == {"p": 0}


def test_pods_keep_apart_from_nominated_ones_too() -> None:
    apart: dict[str, Any] = {"labels": {"app": "x"}, "affinity": required("podAntiAffinity", HOSTNAME, app="x")}
    pods = [pod("p", **apart), pod("q", **apart), pod("r", labels={"app": "x"})]
    cluster = cluster_of([node("a"), node("b", "2")], pods)
    assert names(cluster.bind_what_fits(pods, {"q": 0, "r": 1})) == ["p"]
    assert cluster.bound == {"q": 0, "r": 1}


def test_a_nominated_pod_is_company_only_beside_one_that_runs() -> None:
    """Affinity must hold with the nominated pods and without them."""
    affine: dict[str, Any] = {"labels": {"app": "x"}, "affinity": required("podAffinity", ZONE, app="x")}
    follower = pod("f", affinity=required("podAffinity", ZONE, app="x"))
    cluster = cluster_of([node("a")], [follower, pod("leader", "3", **affine)])
    assert cluster.place(cluster.kinds.of(follower)) == -1
    cluster.nominate("leader", cluster.kinds.of(pod("leader", "3", **affine)), 0)
    assert cluster.place(cluster.kinds.of(follower)) == -1


def test_pods_that_are_left_over_get_further_nodes_which_count() -> None:
    """Two small pods share the node that was meant for the large one."""
    kind = {
        "name": "t",
        "requirements": [{"key": ZONE, "operator": "In", "values": ["a"]}],
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"},
        "offerings": [{"requirements": {ZONE: "a"}, "price": 0.5, "available": True}],
    }
    pods = [pod("s1", "2"), pod("s2", "2"), pod("large", "4")]
    pool = {"metadata": {"name": "default"}, "spec": {"template": {"metadata": {}, "spec": {}}}}
    given = {"nodePools": [pool], "instanceTypes": {"*": [kind]}, "pods": pods}

    def claim(*names: str) -> Json:
        return {"nodePool": "default", "pods": names, "instanceTypes": ["t"], "requirements": []}

    def again(now: ReadOnlyJson) -> Json:
        waiting = [p["metadata"]["name"] for p in now["pods"] if "nodeName" not in p["spec"]]
        return {"newNodeClaims": [claim(*waiting)] if waiting else [], "errors": {}}

    answer = {"newNodeClaims": [claim("s1", "s2"), claim("large")], "errors": {}}
    together = after_binding(given, answer, again, Coming(groups=1))
    assert (together.cost, together.left, together.nodes) == (1.5, (1, 0), 3)
    one_by_one = after_binding(given, answer, again, Coming())
    assert (one_by_one.cost, one_by_one.left) == (1.0, (0,))
    nominated = after_binding(given, answer, again, Coming(groups=1), nominates=True)
    assert (nominated.cost, nominated.left, nominated.nodes) == (1.0, (0,), 2)
    assert nominated.where["s1"] == nominated.where["s2"] != nominated.where["large"]
