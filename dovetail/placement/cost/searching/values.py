"""What is a pod worth: the least that its resources cost on the types that suit it.

For a weighting of the resources no type sells a unit for less than its best one does, so the weighted amounts of a pod
times that price bound from below what it adds to any answer. The weighting with the highest bound for all pods is
taken.
"""

import numpy as np

from dovetail.placement.cost.problem import Floats, Problem

_WEIGHTINGS = 200


def _weightings(resources: int, chance: np.random.Generator) -> Floats:
    drawn = chance.dirichlet(np.full(resources, 0.6), _WEIGHTINGS)
    return np.concatenate([drawn, np.eye(resources), np.full((1, resources), 1 / resources)])


def least_values(problem: Problem, chance: np.random.Generator) -> Floats:
    """Per item the share of the bound that is its own; above zero."""
    scale = np.maximum(problem.room.max(axis=0, initial=0.0), 1e-9)
    sizes, room = problem.sizes / scale, np.maximum(problem.room, 0.0) / scale
    weightings = _weightings(sizes.shape[1], chance)
    worth = np.zeros(len(sizes))
    per_unit = problem.price[None, :] / np.maximum(weightings @ room.T, 1e-12)  # (weightings, choices)
    needs = np.unique(problem.need)
    least = np.stack([per_unit[:, problem.suits[need]].min(axis=1) for need in needs])  # (needs, weightings)
    demand = np.stack([(sizes * problem.stock[:, None])[problem.need == need].sum(axis=0) for need in needs])
    best = int(np.argmax((least * (demand @ weightings.T)).sum(axis=0)))
    for number, need in enumerate(needs):
        members = problem.need == need
        worth[members] = least[number, best] * (sizes[members] @ weightings[best])
    return np.maximum(worth, 1e-9)
