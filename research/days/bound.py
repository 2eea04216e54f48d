"""What must the pods that there are cost at the least, whoever places them?"""

from collections.abc import Iterable

import numpy as np

from dovetail.model import names
from research.days.load import App
from research.days.market import Market

_RESOURCES = ("cpu", "memory", "pods")
_WEIGHTINGS = 200


def lowest(groups: Iterable[tuple[App, int]], market: Market) -> float:
    """Dollars an hour: the best of many weightings of resources, for which no type sells a unit for less. Spreads and
    whole nodes are left out, so that what is possible may cost more."""
    found = list(groups)
    if not found:
        return 0.0
    keys = list(market.prices)
    room = np.array([[float(market.allocatable(kind)[name]) for name in _RESOURCES] for kind, _, _ in keys])
    sizes = np.array([[float({**app.requests, "pods": 1}[name]) for name in _RESOURCES] for app, _ in found])
    scale = room.max(axis=0)
    weightings = np.concatenate([np.random.default_rng(1).dirichlet(np.full(3, 0.6), _WEIGHTINGS), np.eye(3)])
    per_unit = np.array([market.prices[key] for key in keys]) / (weightings @ (room / scale).T)
    on_demand = np.array([capacity_type == names.CAPACITY_ON_DEMAND for _, _, capacity_type in keys])
    bound = np.array([app.spec.get("nodeSelector") is not None for app, _ in found])
    least = np.where(bound[None, :], per_unit[:, on_demand].min(axis=1)[:, None], per_unit.min(axis=1)[:, None])
    stock = np.array([pods for _, pods in found])
    return float(((weightings @ (sizes / scale).T) * least * stock).sum(axis=1).max())
