"""What must the pods that there are cost at the least, whoever places them?"""

from collections.abc import Iterable

import numpy as np

from acceptance.bench.day.load import App
from acceptance.bench.day.market import Market
from dovetail.model import names
from dovetail.placement.cost.problem import Problem
from dovetail.placement.cost.values import least_values

_RESOURCES = ("cpu", "memory", "pods")


def lowest(groups: Iterable[tuple[App, int]], market: Market) -> float:
    """Dollars an hour: the best of many weightings of resources, for which no type sells a unit for less. Spreads and
    whole nodes are left out, so that what is possible may cost more."""
    found = list(groups)
    if not found:
        return 0.0
    keys = list(market.prices)
    on_demand = np.array([capacity_type == names.CAPACITY_ON_DEMAND for _, _, capacity_type in keys])
    sizes = [[float({**app.requests, "pods": 1}[name]) for name in _RESOURCES] for app, _ in found]
    stock = np.array([pods for _, pods in found], dtype=np.int64)
    problem = Problem(
        sizes=np.array(sizes),
        stock=stock,
        need=np.array([int("nodeSelector" in app.spec) for app, _ in found], dtype=np.int64),
        colour=np.zeros(len(found), dtype=np.int64),
        room=np.array([[float(market.allocatable(kind)[name]) for name in _RESOURCES] for kind, _, _ in keys]),
        price=np.array([market.prices[key] for key in keys]),
        suits=np.stack([np.ones(len(keys), dtype=bool), on_demand]),
        hosts=None,
        conflicts=np.zeros(len(found)),
        exclusive=None,
    )
    return float(least_values(problem, np.random.default_rng(1)) @ stock)
