"""A finished pass as a problem, and what its numbers stand for."""

from dataclasses import dataclass

import numpy as np

from dovetail.model.pods import Pod
from dovetail.placement.constraints.demands import Demand
from dovetail.placement.constraints.reservations import NONE, Held
from dovetail.placement.cost.problem import Integers, Problem
from dovetail.placement.cost.searching.filling import Bin, Filler, priced
from dovetail.placement.cost.spot import SpotCell
from dovetail.placement.facts.states import Needs, State
from dovetail.placement.facts.templates import Template

Fixed = tuple[tuple[str, str], ...]  # the domains that a pod keeps, by label


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A type in one group of its offerings, for one pair of zone and capacity type (or what else offerings name)."""

    template: Template
    cell: State
    row: int


@dataclass(slots=True, eq=False)
class Item:
    demand: Demand
    fixed: Fixed
    kept: Needs  # what pods prefer and have, without asking for it
    pods: list[Pod]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Pods of one draft: those that stay together on it, or those that may move."""

    number: int  # of the draft
    template: Template
    pods: list[Pod]
    kept: tuple[Needs, ...] = ()  # what those that stay prefer and have; who asked for it may leave
    held: Held = NONE  # the reservations that the draft might launch into
    fixed: Fixed = ()  # the domains in which affinity counts them; who asked for these may leave as well


@dataclass(slots=True, eq=False)
class Compiled:
    """The problem, and what its numbers stand for."""

    problem: Problem
    items: list[Item]
    choices: list[Choice]
    frozen: list[Part]
    moving: list[Part]
    spot: dict[Template, list[SpotCell]]  # the spot capacity that each pool may launch
    dealt: bool  # domains were dealt for pods that come in the kube-scheduler's order

    def undecided(self) -> set[str]:
        """The UIDs of the pods that may be in any domain."""
        return {pod.uid for item in self.items if not item.fixed for pod in item.pods}

    def bins(self, filler: Filler) -> tuple[list[Bin], Integers]:
        """The drafts that take part, as they are; and how many pods of each item are on drafts that no choice holds."""
        item_of = {pod.uid: number for number, item in enumerate(self.items) for pod in item.pods}
        found, left = [], np.zeros(len(self.items), dtype=np.int64)
        for draft in self.moving:
            numbers = np.array([item_of[pod.uid] for pod in draft.pods], dtype=np.int64)
            items, counts = np.unique(numbers, return_counts=True)
            made = priced(filler, items, counts)
            if made is None:
                left[items] += counts
            else:
                found.append(made)
        return found, left
