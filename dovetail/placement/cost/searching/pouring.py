"""What is a pod worth, and which types are the nodes to be of? Both say what the pods cost if they could be poured.

Poured pods fill every node to the brim, and nodes may be had in part. Two players find the least that it costs: one
moves pods to the choices that are cheap for them, the other sets for each choice what its resources cost, together the
price of a node, so that what is in demand there costs most. Each does more of what it regrets not to have done (regret
matching), and on the average they come to the least. At the prices of the one a pod is worth what it costs where it is
cheapest, which no answer of these choices goes below in sum; where the other has the pods are the nodes.
"""

from dataclasses import dataclass, replace

import numpy as np

from dovetail.placement.cost.problem import Flags, Floats, Integers, Problem
from dovetail.placement.cost.searching.cheapest import SLACK

_CHOICES = 1_500  # that are compared with one another; of more, those that sell some mix of resources cheapest
_MIXES = 24
_TURNS = 200
_WORK = 4_000_000  # pairs of a kind of pods and a choice that are looked at together, at most
_FEW_TURNS = 30
_FINE = 2.0  # kinds of pods for each doubling of the ratio of two resources
_HARDLY = 0.01  # of a node's price: a resource that costs less there costs nothing; it was not played long enough
_NONE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Poured:
    """What each item's pods are worth, and how many nodes of each choice there would be."""

    worth: Floats
    nodes: Floats


def poured(problem: Problem) -> Poured:
    """The pods of a problem, poured."""
    sizes, kept = problem.sizes, _worth_trying(problem)
    room, price = np.maximum(problem.room[kept], _NONE), np.maximum(problem.price[kept], _NONE)
    fits = _fits(problem, kept)
    kind, first = _kinds(problem, fits)
    pods: Floats = np.bincount(kind, weights=problem.stock).astype(np.float64)
    total = np.stack([np.bincount(kind, weights=problem.stock * size) for size in sizes.T], axis=1)
    nodes = np.zeros(len(problem.price))
    nodes[kept], costs = _played(total / pods[:, None], pods, fits[first], room, price)
    worth = np.full(len(sizes), np.inf)
    for fit, cost in zip(fits.T, costs, strict=True):
        np.minimum(worth, np.where(fit, (sizes * cost).sum(axis=1), np.inf), out=worth)
    return Poured(np.maximum(worth, _NONE), nodes)


def _fits(problem: Problem, choices: Integers) -> Flags:
    """Which of the choices suit and hold a pod, by item."""
    fits: Flags = problem.suits[:, choices][problem.need]
    for size, held in zip(problem.sizes.T, problem.room[choices].T, strict=True):
        fits &= size[:, None] * (1 - SLACK) <= held
    return fits


def _cheap_for_some(problem: Problem) -> Integers:
    """All choices, or of very many those that sell some mix of resources cheapest to some of the pods, and for each
    pod that none of these holds the cheapest one that does: what follows compares each with each."""
    if len(problem.price) <= _CHOICES:
        return np.arange(len(problem.price))
    resources = problem.room.shape[1]
    mixes = np.vstack([np.random.default_rng(0).dirichlet(np.full(resources, 0.6), _MIXES), np.eye(resources)])
    scale = np.maximum(problem.sizes.max(axis=0), _NONE)
    unit = problem.price / np.maximum(mixes @ (np.maximum(problem.room, 0) / scale).T, _NONE)  # (mixes, choices)
    lowest_ratio = np.full(len(problem.price), np.inf)
    for need in np.unique(problem.need):
        suiting = np.flatnonzero(problem.suits[need])
        ratio = unit[:, suiting] / unit[:, suiting].min(axis=1, keepdims=True)
        lowest_ratio[suiting] = np.minimum(lowest_ratio[suiting], ratio.min(axis=0))
    kept = np.argsort(lowest_ratio, kind="stable")[:_CHOICES]
    homeless = np.flatnonzero(~_fits(problem, kept).any(axis=1))
    every = np.arange(len(lowest_ratio))
    beside = [int(_fits(_only(problem, item), every)[0].argmax()) for item in homeless.tolist()]
    found: Integers = np.unique(np.concatenate([kept, np.array(beside, dtype=np.int64)]))
    return found


def _only(problem: Problem, item: int) -> Problem:
    return replace(problem, sizes=problem.sizes[item : item + 1], need=problem.need[item : item + 1])


def _worth_trying(problem: Problem) -> Integers:
    """The choices without those for which another one suits and holds all the same pods, with as much room for a
    dollar."""
    some = _cheap_for_some(problem)
    room, price = problem.room[some], np.maximum(problem.price[some], _NONE)
    holds, per_dollar = np.minimum(room, problem.sizes.max(axis=0)), np.maximum(room, 0) / price[:, None]
    beaten = np.ones((len(room), len(room)), dtype=bool)  # by the other
    for amounts in (*holds.T, *per_dollar.T):
        beaten &= amounts[None, :] >= amounts[:, None]
    for suits in problem.suits[:, some]:
        beaten &= suits[None, :] | ~suits[:, None]
    beaten &= ~(beaten.T & np.tri(len(beaten), dtype=bool).T)  # of equal ones the first stays
    found: Integers = some[~beaten.any(axis=1)]
    return found


def _kinds(problem: Problem, fits: Flags) -> tuple[Integers, Integers]:
    """Items whose pods may go to the same choices and want resources in nearly the same ratio, as one kind: per item
    its kind, and the first item of each."""
    shares = problem.sizes / np.maximum((problem.sizes * problem.stock[:, None]).sum(axis=0), _NONE)
    ratio = shares / np.maximum(shares.max(axis=1, keepdims=True), _NONE)
    ratio = np.rint(_FINE * np.log2(np.maximum(ratio, 2.0**-6))).astype(np.int8)
    alike = np.concatenate([ratio.view(np.uint8), np.packbits(fits, axis=1)], axis=1)
    _, first, kind = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    return kind.reshape(-1), first


def _played(sizes: Floats, pods: Floats, fits: Flags, room: Floats, price: Floats) -> tuple[Floats, Floats]:
    """Nodes of each choice, and what each resource costs there."""
    unit, amounts = price[:, None] / room, sizes * pods[:, None]
    even = fits / fits.sum(axis=1, keepdims=True)
    going, regret_going, went = even, np.zeros(fits.shape), np.zeros(fits.shape)
    pay, regret_pay, paid = np.full(room.shape, 1 / room.shape[1]), np.zeros(room.shape), np.zeros(room.shape)
    turns = max(_FEW_TURNS, min(_TURNS, _WORK // fits.size))
    for turn in range(1, turns + 1):
        load = np.einsum("kc,kr->cr", going, amounts) * unit
        regret_pay = np.maximum(regret_pay + load - (pay * load).sum(axis=1, keepdims=True), 0)
        pay = _matched(regret_pay, pay)
        cost = np.einsum("kr,cr->kc", sizes, pay * unit)
        regret_going = np.maximum(regret_going + (going * cost).sum(axis=1, keepdims=True) - cost, 0) * fits
        going = _matched(regret_going, even)
        went += turn * going
        paid += turn * pay
    went /= went.sum(axis=1, keepdims=True)
    paid[paid < _HARDLY * paid.sum(axis=1, keepdims=True)] = 0.0
    paid /= paid.sum(axis=1, keepdims=True)
    load = np.einsum("kc,kr->cr", went, amounts) / room
    return load.max(axis=1), paid * unit


def _matched(regret: Floats, otherwise: Floats) -> Floats:
    """Each as often as it is regretted, in each row."""
    all_of_it = regret.sum(axis=1, keepdims=True)
    return np.where(all_of_it > 0, regret / np.where(all_of_it > 0, all_of_it, 1.0), otherwise)
