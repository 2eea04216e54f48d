"""Cheaper nodes: a policy that is off by default, whose answers obey every rule and are never dearer."""

import gzip
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.bench.inputs import standing_nodes
from acceptance.checker.check import violations
from acceptance.placement_worlds import settings_of, snapshot_of
from acceptance.vectors.kind_placement import answer_of, total_cost
from dovetail.model import names
from dovetail.model.json import Json
from dovetail.model.placements import Placement
from dovetail.placement.place_pods import Index, place
from dovetail.placement.settings import DOVETAIL, CostSettings, PlacementSettings
from tests.properties.clusters import clusters
from tests.recorded import BENCHMARKS

_COST = CostSettings(everywhere=True, steps=9, types=1)
quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def _types(count: int = 20) -> list[Json]:
    """Types of one cpu and 2 GiB each more, at a price in proportion."""
    offered = {"karpenter.sh/capacity-type": "on-demand", "topology.kubernetes.io/zone": "zone-1"}
    return [
        {
            "name": f"type-{number}",
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [f"type-{number}"]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-1"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            ],
            "capacity": {"cpu": str(number), "memory": f"{2 * number}Gi", "pods": "50"},
            "offerings": [{"requirements": offered, "price": 0.1 * number, "available": True}],
        }
        for number in range(1, count + 1)
    ]


def _pool(annotations: Json | None) -> Json:
    return {
        "metadata": {"name": "default", "uid": "np", "annotations": annotations or {}},
        "spec": {
            "template": {
                "metadata": {},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"},
                    "requirements": [],
                },
            }
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def _pod(number: int, cpu: str, memory: str, apart: bool = False) -> Json:
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]
    }
    if apart:
        term = {"labelSelector": {"matchLabels": {"app": "apart"}}, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {
        "metadata": {
            "name": f"p{number:03d}",
            "namespace": "default",
            "uid": f"{number * 7919 % 1000:03d}-{number}",
            "labels": {"app": "apart" if apart else "free"},
        },
        "spec": spec,
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }


def _world(*pods: Json, types: int = 20, annotations: Json | None = None) -> Json:
    return {"nodePools": [_pool(annotations)], "pods": list(pods), "instanceTypes": {"*": _types(types)}}


def _mixed() -> list[Json]:
    """Pods that must be apart, one half asking for cpu and the other for memory, and small ones to fill with."""
    found = [_pod(n, *(("1900m", "512Mi") if n % 2 else ("200m", "3500Mi")), apart=True) for n in range(20)]
    return found + [_pod(20 + n, *(("700m", "200Mi") if n % 2 else ("100m", "1400Mi"))) for n in range(60)]


def _placed(raw: Json, cost: CostSettings) -> tuple[Placement, PlacementSettings]:
    chosen = replace(settings_of(raw, DOVETAIL), cost=cost)
    return place(Index(snapshot_of(raw), chosen)), chosen


def _answer(raw: Json, placement: Placement) -> Json:
    return answer_of(placement, {pod["metadata"]["name"] for pod in raw["pods"] if not pod["spec"].get("nodeName")})


def _dollars(raw: Json, cost: CostSettings) -> float:
    return total_cost(*_placed(raw, cost))


def test_pods_that_complement_each_other_cost_less_together() -> None:
    raw = _world(*_mixed())
    placement, _ = _placed(raw, _COST)
    assert _dollars(raw, _COST) < 0.9 * _dollars(raw, CostSettings())
    assert not placement.refused
    assert violations(raw, _answer(raw, placement)) == []


def test_a_pool_with_a_limit_saves_as_well() -> None:
    """A new node is charged for the largest type that it names: a limit must not be used up by names."""
    raw = _world(*_mixed())
    raw["nodePools"][0]["spec"]["limits"] = {"cpu": "300"}
    for types in (1, 3):
        cost = replace(_COST, types=types)
        placement, _ = _placed(raw, cost)

        assert not placement.refused
        assert _dollars(raw, cost) < 0.9 * _dollars(raw, CostSettings())
        assert violations(raw, _answer(raw, placement)) == []
        assert min(len(claim["instanceTypes"]) for claim in _answer(raw, placement)["newNodeClaims"]) >= types


@pytest.mark.parametrize("rigid", ["ports", "company", "architecture"])
def test_a_pod_that_stays_where_it_is_keeps_none_of_the_others_there(rigid: str) -> None:
    raw = _world(*_mixed())
    for number, pod in enumerate(raw["pods"][20::6]):
        labels = pod["metadata"]["labels"] = {"app": f"rigid-{number // 2}"}
        term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
        if rigid == "ports":
            pod["spec"]["containers"][0]["ports"] = [{"hostPort": 8000 + number, "containerPort": 80}]
        elif rigid == "company":
            pod["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        else:
            spread = {"maxSkew": 5, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": "kubernetes.io/arch"}
            pod["spec"]["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": labels}}]
    for each in raw["instanceTypes"]["*"]:
        each["requirements"].append({"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]})
    placement, _ = _placed(raw, _COST)

    assert not placement.refused and placement.unjudged == ()
    assert _dollars(raw, _COST) < 0.9 * _dollars(raw, CostSettings())
    assert violations(raw, _answer(raw, placement)) == []


@pytest.mark.slow
def test_where_reservations_are_promised_the_search_goes_on_with_other_types() -> None:
    """A node that may be of a type whose reservations are all promised would have to wait for one. A recorded
    benchmark's pods and types, with reservations for small types."""
    raw = _recorded("real_1000")["input"]
    types = _recorded("instance_types_real")["instanceTypes"]
    for number, listed in enumerate([each for each in types if float(each["capacity"]["cpu"]) < 8][::60]):
        where = {**listed["offerings"][0]["requirements"], "karpenter.sh/capacity-type": "reserved"}
        where["karpenter.test.sh/reservation-id"] = f"r-{number}"
        price = listed["offerings"][0]["price"] / 1e6
        reserved = {"requirements": where, "price": price, "available": True, "reservationCapacity": 2}
        listed["offerings"].append(reserved)
        for each in listed["requirements"]:
            if each["key"] == "karpenter.sh/capacity-type":
                each["values"] = [*each["values"], "reserved"]
        identity = {"key": "karpenter.test.sh/reservation-id", "operator": "In", "values": [f"r-{number}"]}
        listed["requirements"].append(identity)
    raw = {**raw, "pods": raw["pods"][::8], "instanceTypes": {"*": types}}
    (before, of_before), (placement, chosen) = _placed(raw, CostSettings()), _placed(raw, _COST)

    assert placement.unjudged == () and not placement.refused and not before.refused
    assert total_cost(placement, chosen) < 0.7 * total_cost(before, of_before)
    assert violations(raw, _answer(raw, placement)) == []


def _recorded(name: str) -> Json:
    found: Json = orjson.loads(gzip.decompress((BENCHMARKS / f"{name}.json.gz").read_bytes()))
    return found


def test_without_the_policy_nothing_changes() -> None:
    raw = _world(*_mixed())
    assert _placed(raw, CostSettings())[0] == _placed(raw, CostSettings(steps=1, types=1, node_cost=9))[0]


def test_the_same_seed_and_steps_give_the_same_answer() -> None:
    raw = _world(*_mixed())
    assert _answer(raw, _placed(raw, _COST)[0]) == _answer(raw, _placed(raw, _COST)[0])


def test_a_pool_asks_for_the_policy_by_its_annotation() -> None:
    asked, unasked = _world(*_mixed(), annotations={names.PLACEMENT: "cost"}), _world(*_mixed())
    assert _dollars(asked, CostSettings(steps=9)) < _dollars(unasked, CostSettings(steps=9))


def test_a_pool_keeps_the_default_where_all_others_save() -> None:
    raw = _world(*_mixed(), annotations={names.PLACEMENT: "default"})
    assert _dollars(raw, _COST) == _dollars(_world(*_mixed()), CostSettings())


def test_a_policy_that_is_unknown_is_named_and_the_default_used() -> None:
    raw = _world(*_mixed(), annotations={names.PLACEMENT: "cheap"})
    placement, chosen = _placed(raw, _COST)
    [fault] = placement.unjudged
    assert (fault.kind, fault.name) == ("NodePool", "default")
    assert "metadata.annotations[dovetail.sh/placement]: 'cheap' is no policy" in fault.message
    assert total_cost(placement, chosen) == _dollars(_world(*_mixed()), CostSettings())


@pytest.mark.parametrize("text", ["-1", "1e308", "nan"])
def test_a_node_cost_that_is_none_is_named_and_the_default_used(text: str) -> None:
    raw = _world(*_mixed(), annotations={names.PLACEMENT: "cost", names.NODE_COST: text})
    placement, chosen = _placed(raw, _COST)
    assert f"metadata.annotations[dovetail.sh/node-cost]: '{text}' is no cost" in placement.unjudged[0].message
    assert total_cost(placement, chosen) == _dollars(_world(*_mixed()), CostSettings())


def test_a_pool_with_too_few_types_is_named_and_the_default_used() -> None:
    raw = _world(*_mixed(), types=6, annotations={names.PLACEMENT: "cost"})
    placement, _ = _placed(raw, CostSettings(steps=9))
    assert "6 instance types are left, and the policy cost keeps at least 15" in placement.unjudged[0].message


def test_a_node_keeps_fifteen_types_to_choose_from() -> None:
    placement, _ = _placed(_world(*_mixed(), types=20), replace(_COST, types=15))
    assert min(len(node.types) for node in placement.new) >= 15


def test_pods_that_fewer_types_suit_keep_fifteen_of_these() -> None:
    """Every second type is for arm64, and so is every second pod: the others are no choice for it."""
    types = _types(40)
    for number, each in enumerate(types):
        arch = "arm64" if number % 2 else "amd64"
        each["requirements"].append({"key": names.ARCH, "operator": "In", "values": [arch]})
    pods = [_pod(number, "1500m", "1Gi") for number in range(40)]
    for each in pods[::2]:
        each["spec"]["nodeSelector"] = {names.ARCH: "arm64"}
    raw = {**_world(*pods), "instanceTypes": {"*": types}}
    placement, _ = _placed(raw, replace(_COST, types=15))
    assert not placement.refused
    assert min(len(node.types) for node in placement.new) >= 15
    assert _dollars(raw, replace(_COST, types=15)) <= _dollars(raw, CostSettings())


def test_a_pod_that_only_the_largest_types_hold_keeps_its_node_and_the_others_save() -> None:
    raw = _world(*_mixed(), _pod(99, "19", "30Gi"), types=20)
    plain, chosen = _placed(raw, CostSettings())
    placement, _ = _placed(raw, replace(_COST, types=15))
    assert not placement.refused
    assert not placement.unjudged
    assert total_cost(placement, chosen) < total_cost(plain, chosen)


def test_a_pod_that_must_be_apart_from_pods_placed_before_it_stays_refused() -> None:
    """Its group is first asked about in the second pass when all others have their place, and must know of them."""
    raw = _world(*_mixed(), _pod(99, "10m", "10Mi"))
    term = {"labelSelector": {"matchLabels": {"app": "free"}}, "topologyKey": "topology.kubernetes.io/zone"}
    spec, metadata = raw["pods"][-1]["spec"], raw["pods"][-1]["metadata"]
    metadata["labels"] = {"app": "alone"}
    spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    plain, chosen = _placed(raw, CostSettings())
    placement, _ = _placed(raw, _COST)
    assert total_cost(placement, chosen) < total_cost(plain, chosen)
    assert [refused.pod.name for refused in placement.refused] == ["p099"]
    assert violations(raw, _answer(raw, placement)) == []


def test_a_search_that_fails_costs_nothing_but_the_saving() -> None:
    raw = _world(*_mixed())
    with patch("dovetail.placement.cost.cheaper.Search", side_effect=RuntimeError("no idea")):
        placement, chosen = _placed(raw, _COST)
    assert total_cost(placement, chosen) == _dollars(raw, CostSettings())
    assert "no idea" in placement.unjudged[0].message


def test_what_a_node_costs_beside_its_instance_makes_fewer_nodes() -> None:
    free = [_pod(n, "900m", "1800Mi") for n in range(40)]
    few, _ = _placed(_world(*free, annotations={names.NODE_COST: "5"}), _COST)
    many, _ = _placed(_world(*free), _COST)
    assert len(few.new) <= len(many.new)
    assert len(few.new) <= 3


def test_few_nodes_are_made_where_many_cost_the_same() -> None:
    """A cpu costs the same at every size here: what seventeen nodes hold three hold as cheaply."""
    sizes = (("1300m", "1Gi"), ("700m", "3Gi"), ("300m", "500Mi"))
    raw = _world(*[_pod(n, *sizes[n % 3]) for n in range(60)])
    placement, chosen = _placed(raw, replace(_COST, steps=100))
    assert len(placement.new) <= 4
    assert total_cost(placement, chosen) < 0.85 * _dollars(raw, CostSettings())


def test_a_node_is_hardly_larger_than_its_pods_ask_for() -> None:
    placement, _ = _placed(_world(*_mixed()), _COST)
    cpu = {kind["name"]: 10**9 * int(kind["capacity"]["cpu"]) for kind in _types()}
    shares = [min(cpu[t.name] for t in node.types) / node.requests["cpu"] for node in placement.new]
    assert 1 <= min(shares) < 1.1


def test_when_its_time_is_up_at_once_there_is_an_answer_all_the_same() -> None:
    raw = _world(*_mixed())
    placement, chosen = _placed(raw, replace(_COST, stopwatch=lambda _: lambda: True))
    assert not placement.refused
    assert total_cost(placement, chosen) <= _dollars(raw, CostSettings())


@quick
@given(clusters())
def test_a_cheaper_answer_obeys_every_rule_and_places_as_many(raw: Json) -> None:
    """The checker shares no code with the engine."""
    _judge(raw)


@pytest.mark.soak
@settings(quick, max_examples=10_000)
@given(clusters())
def test_the_same_holds_for_ten_thousand_clusters(raw: Json) -> None:
    _judge(raw)


def _judge(raw: Json) -> None:
    plain, chosen = _placed(raw, CostSettings())
    cheaper, _ = _placed(raw, replace(_COST, seed=len(raw["pods"])))
    assert violations(raw, _answer(raw, cheaper)) == []
    assert {refused.pod.uid for refused in cheaper.refused} <= {refused.pod.uid for refused in plain.refused}
    assert total_cost(cheaper, chosen) <= total_cost(plain, chosen) + 1e-6


@given(st.integers(0, 3))
@settings(max_examples=4, deadline=None)
def test_no_seed_makes_an_answer_dearer(seed: int) -> None:
    raw = _world(*_mixed())
    assert _dollars(raw, replace(_COST, seed=seed, steps=3)) <= _dollars(raw, CostSettings())


def _in_two_zones(raw: Json) -> Json:
    """The same, with all types in a second zone at half of the price."""
    for kind in raw["instanceTypes"]["*"]:
        kind["requirements"][1]["values"] = ["zone-1", "zone-2"]
        [offering] = kind["offerings"]
        elsewhere = {**offering["requirements"], names.ZONE: "zone-2"}
        kind["offerings"].append({**offering, "requirements": elsewhere, "price": offering["price"] / 2})
    return raw


def _preferring(pod: Json, *asked: tuple[str, str]) -> Json:
    """The pod with these preferences, the heaviest first."""
    pod["spec"]["affinity"] = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100 - number,
                    "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
                }
                for number, (key, value) in enumerate(asked)
            ]
        }
    }
    return pod


@pytest.mark.parametrize("staying", [False, True])
def test_a_preference_that_nobody_asked_for_and_that_holds_is_kept(staying: bool) -> None:
    """Only the heaviest one is asked for. The default puts these pods beside those that must be in the dear zone.
    `staying`: some have a host port and stay where they are, when those leave that must be in that zone."""
    raw = _in_two_zones(_world(*_mixed()))
    for pod in raw["pods"][:20]:
        pod["spec"]["nodeSelector"] = {names.ZONE: "zone-1"}
    both = (names.CAPACITY_TYPE, names.CAPACITY_ON_DEMAND), (names.ZONE, "zone-1")
    preferring = {_preferring(pod, *both)["metadata"]["name"] for pod in raw["pods"][20:40]}

    def held(placement: Placement) -> set[str]:
        zones = [(node.requirements.get(names.ZONE), node.pods) for node in placement.new]
        return preferring & {pod.name for zone, pods in zones if zone and zone.values == {"zone-1"} for pod in pods}

    for pod in raw["pods"][20:40:3] if staying else ():
        pod["spec"]["containers"][0]["ports"] = [{"hostPort": 8000, "containerPort": 80}]
    plain, chosen = _placed(raw, CostSettings())
    placement, _ = _placed(raw, _COST)
    assert len(held(plain)) > 10
    assert held(plain) <= held(placement)
    assert total_cost(placement, chosen) < 0.9 * total_cost(plain, chosen)


def test_pods_on_nodes_that_stand_keep_theirs() -> None:
    """A spread's pods get other zones in the kube-scheduler's order than in Karpenter's, the largest first."""
    sizes = ("2", "1Gi"), *[("100m", "100Mi")] * 3, *[("500m", "300Mi")] * 2
    spreading = [_pod(100 + number, *size) for number, size in enumerate(sizes)]
    chosen_by = {"labelSelector": {"matchLabels": {"app": "spread"}}, "topologyKey": names.ZONE}
    for pod in spreading:
        pod["metadata"]["labels"] = {"app": "spread"}
        spread = {**chosen_by, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        pod["spec"]["topologySpreadConstraints"] = [spread]
    standing = standing_nodes(2, 0, bound_per_node=4)
    for objects in (standing["nodes"], standing["nodeClaims"]):
        for number, each in enumerate(objects):
            each["metadata"]["labels"][names.ZONE] = f"zone-{1 + number}"
    raw = _in_two_zones(_world(*_mixed(), *spreading, *standing["pods"]))
    raw |= {"nodes": standing["nodes"], "nodeClaims": standing["nodeClaims"]}
    plain, chosen = _placed(raw, CostSettings())
    placement, _ = _placed(raw, _COST)
    assert _answer(raw, plain)["existing"]
    assert total_cost(placement, chosen) < total_cost(plain, chosen), "a cheaper answer was taken"
    assert _answer(raw, placement)["existing"] == _answer(raw, plain)["existing"]


def test_no_pod_moves_to_a_lighter_pool_where_the_heavier_one_has_limits() -> None:
    raw = _world(*_mixed())
    heavy = orjson.loads(orjson.dumps(raw["nodePools"][0]))
    heavy["metadata"] = {"name": "heavy", "uid": "heavy"}
    heavy["spec"] |= {"weight": 10, "limits": {"memory": "60Gi"}}
    raw["nodePools"].append(heavy)

    def on_heavy(placement: Placement) -> set[str]:
        return {pod.name for node in placement.new if node.pool == "heavy" for pod in node.pods}

    plain, chosen = _placed(raw, CostSettings())
    placement, _ = _placed(raw, _COST)
    assert 0 < len(on_heavy(plain)) < 80
    assert on_heavy(plain) <= on_heavy(placement)
    assert total_cost(placement, chosen) <= total_cost(plain, chosen)
