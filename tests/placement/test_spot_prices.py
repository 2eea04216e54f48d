"""What a spot node is counted at under the policy cost, and which types it names."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.model.values.json import Json
from dovetail.placement.cost.spot import expected_price, expected_prices
from dovetail.placement.settings import CostSettings
from tests.placement.test_cost import _answer, _placed, _pod, _pool

_COST = CostSettings(everywhere=True, steps=30, types=1)
_ARCH = "kubernetes.io/arch"


def _types(small: list[float], large: list[float], capacity_type: str = "spot") -> list[Json]:
    """Small types that hold five of the pods, and large ones that hold ten."""
    sized = [("small", 4, number, price) for number, price in enumerate(small)]
    sized += [("large", 8, number, price) for number, price in enumerate(large)]
    return [
        {
            "name": f"{size}-{number}",
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [f"{size}-{number}"]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-1"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity_type]},
            ],
            "capacity": {"cpu": str(cpu), "memory": f"{2 * cpu}Gi", "pods": "50"},
            "offerings": [
                {
                    "requirements": {
                        "karpenter.sh/capacity-type": capacity_type,
                        "topology.kubernetes.io/zone": "zone-1",
                    },
                    "price": price,
                    "available": True,
                }
            ],
        }
        for size, cpu, number, price in sized
    ]


def _of_architecture(each: Json, architecture: str) -> Json:
    """The type under a name of its own, for that architecture."""
    name = f"{each['name']}-{architecture}"
    own = {"key": _ARCH, "operator": "In", "values": [architecture]}
    return {
        **each,
        "name": name,
        "requirements": [{**each["requirements"][0], "values": [name]}, *each["requirements"][1:], own],
    }


def _named(types: list[Json], cost: CostSettings, selector: dict[str, str] | None = None) -> list[set[str]]:
    """The types that each new node for twenty pods names."""
    pool = _pool(None)
    capacity_types = sorted(
        {offering["requirements"]["karpenter.sh/capacity-type"] for t in types for offering in t["offerings"]}
    )
    pool["spec"]["template"]["spec"]["requirements"] = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity_types}
    ]
    pods = [_pod(n, "750m", "512Mi") for n in range(20)]
    for each in pods:
        each["spec"]["nodeSelector"] = selector or {}
    raw = {"nodePools": [pool], "pods": pods, "instanceTypes": {"*": types}}
    placement, _ = _placed(raw, cost)
    assert not placement.refused
    return [set(claim["instanceTypes"]) for claim in _answer(raw, placement)["newNodeClaims"]]


def _is_small(named: set[str]) -> bool:
    """Whether a node with these types may be a small one."""
    return any(name.startswith("small") for name in named)


def test_each_pool_is_the_first_deep_one_with_its_chance() -> None:
    assert expected_price([1.0, 2.0, 4.0], 0.5) == 0.5 * 1 + 0.25 * 2 + 0.25 * 4
    assert expected_price([1.0, 2.0, 4.0], 1.0) == 1.0
    assert expected_price([3.0], 0.1) == 3.0


def test_the_prices_of_all_types_at_once_are_those_of_each() -> None:
    chance = np.random.default_rng(7)
    price = chance.uniform(0.1, 1.0, 12)
    holding = (chance.random((12, 12)) < 0.4) | np.eye(12, dtype=bool)
    found = expected_prices(price, holding, 0.4)
    assert found.tolist() == pytest.approx([expected_price(sorted(price[row]), 0.4) for row in holding], abs=1e-2)


def test_one_cheap_pool_of_spot_capacity_does_not_make_a_size_cheap() -> None:
    """Four small nodes cost less than two large ones only if AWS takes the one cheap pool for all of them."""
    types = _types(small=[0.05, *[0.2] * 19], large=[0.16] * 20)
    assert [_is_small(named) for named in _named(types, replace(_COST, spot_chance=1.0))] == [True] * 4
    assert [_is_small(named) for named in _named(types, _COST)] == [False] * 2


def test_many_cheap_pools_of_spot_capacity_do() -> None:
    types = _types(small=[0.05] * 5 + [0.2] * 15, large=[0.16] * 20)
    assert [_is_small(named) for named in _named(types, _COST)] == [True] * 4


def test_cheap_pools_that_the_pods_cannot_run_on_do_not() -> None:
    amd = [_of_architecture(each, "amd64") for each in _types(small=[0.05, *[0.2] * 19], large=[0.16] * 20)]
    arm = [_of_architecture(each, "arm64") for each in _types(small=[0.05] * 20, large=[])]
    assert [_is_small(named) for named in _named([*amd, *arm], _COST)] == [True] * 4
    assert [_is_small(named) for named in _named([*amd, *arm], _COST, {_ARCH: "amd64"})] == [False] * 2


def test_spot_capacity_that_costs_more_than_other_capacity_is_never_launched_and_does_not_count() -> None:
    types = _types(small=[0.06], large=[0.16], capacity_type="on-demand")
    dear = [{**each, "name": f"dear-{each['name']}"} for each in _types(small=[0.05, *[0.9] * 19], large=[0.95] * 20)]
    for each in dear:
        each["requirements"][0] = {**each["requirements"][0], "values": [each["name"]]}
    assert [_is_small(named) for named in _named([*types, *dear], _COST)] == [True] * 4


def test_a_spot_node_names_the_cheapest_types_and_those_that_cost_hardly_more() -> None:
    prices = [0.05 + 0.005 * number for number in range(30)]
    large = [0.4] * 5
    for named in _named(_types(prices, large), replace(_COST, types=15)):
        assert named == {f"small-{number}" for number in range(15)}
    for named in _named(_types(prices, large), replace(_COST, types=3)):
        assert named == {f"small-{number}" for number in range(6)}  # up to 1.5 times the cheapest


def test_a_node_on_demand_names_all_that_hold_its_pods() -> None:
    """There AWS takes the cheapest."""
    prices = [0.05 + 0.005 * number for number in range(30)]
    for named in _named(_types(prices, [0.4] * 5, "on-demand"), replace(_COST, types=15)):
        assert len(named) == 35
