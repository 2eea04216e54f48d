"""What are pods worth that run: what must new nodes for them cost at the least?

Only amounts are looked at. Whoever asks wants to know where to look for a saving, and lets a pass judge what is found.
"""

from collections.abc import Sequence
from math import inf

import numpy as np

from dovetail.model.pods import Pod
from dovetail.placement.cluster.index import Index
from dovetail.placement.cost.choices import Cells
from dovetail.placement.cost.policy import node_costs
from dovetail.placement.cost.problem import Problem
from dovetail.placement.cost.values import least_values


def worth_of_pods(index: Index, pods: Sequence[Pod]) -> dict[str, float]:
    """By UID, in dollars an hour: the pod's share of a bound for all of them; nothing where no pool is under the
    policy."""
    room, price = _rows(index)
    sizes = dict.fromkeys(index.vector(pod.requests) for pod in pods)
    if not room or not sizes:
        return {}
    numbers = {size: number for number, size in enumerate(sizes)}
    of_pods = np.array([numbers[index.vector(pod.requests)] for pod in pods], dtype=np.int64)
    items = len(numbers)
    problem = Problem(
        sizes=np.array(list(numbers), dtype=np.float64),
        stock=np.bincount(of_pods, minlength=items).astype(np.int64),
        need=np.zeros(items, dtype=np.int64),
        colour=np.zeros(items, dtype=np.int64),
        room=np.array(room, dtype=np.float64),
        price=np.array(price),
        suits=np.ones((1, len(price)), dtype=bool),
        hosts=None,
        conflicts=np.zeros(items),
        exclusive=None,
    )
    values = least_values(problem, np.random.default_rng(index.settings.cost.seed))
    return {pod.uid: float(values[number]) for pod, number in zip(pods, of_pods.tolist(), strict=True)}


def _rows(index: Index) -> tuple[list[Sequence[int]], list[float]]:
    """The room and the lowest price, node cost included, of every type that the pools under the policy may launch."""
    costs = node_costs(index.templates, index.settings.cost, index.aside)
    room: list[Sequence[int]] = []
    prices: list[float] = []
    for template in index.templates:
        if template.number not in costs:
            continue
        lowest: dict[int, float] = {}
        for by_row in Cells(template).prices:
            for row, price in by_row.items():
                lowest[row] = min(lowest.get(row, inf), price)
        room += [template.fit.room[row] for row in lowest]
        prices += [price + costs[template.number] for price in lowest.values()]
    return room, prices
