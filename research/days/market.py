"""Instance types of three families and their prices, those of spot moving from hour to hour.

By price and capacity the cloud takes the cheapest of the spot pools that have much capacity left. Which these are
changes from hour to hour as well; where all of them are deep, it takes the cheapest.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Final

import numpy as np

from acceptance.bench.inputs.plain_types import ZONES, plain_offering, plain_type
from acceptance.binding.nodes import TYPE
from acceptance.binding.nodes import Node as BoundNode
from dovetail.disruption.nodes.offerings import price_of
from dovetail.model import names
from dovetail.model.pools import Catalogue, InstanceType

_FAMILIES: Final = {"c": (2, 0.0425), "m": (4, 0.048), "r": (8, 0.063)}  # GiB and dollars an hour for each cpu
_GENERATIONS: Final = {"5": 1.0, "5a": 0.9, "6i": 1.0, "6a": 0.9, "7i": 1.05, "7a": 1.2}
_SIZES: Final = {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "8xlarge": 32}
_OVERHEAD: Final = {"cpu": "100m", "memory": "512Mi"}

_MOST_TYPES: Final = 60  # that a launch names
_CAPACITY_TYPES: Final = (names.CAPACITY_ON_DEMAND, names.CAPACITY_SPOT)

Key = tuple[str, str, str]  # instance type, zone, capacity type


class Market:
    """The types, and what each offering costs now."""

    def __init__(
        self, chance: np.random.Generator, deep: float = 1.0, depths: np.random.Generator | None = None
    ) -> None:
        """`deep`: of each spot pool, the chance that it has much capacity in an hour, drawn from `depths`."""
        self._chance = chance
        self.steady = False  # True: prices stay as they are
        self._deep, self._depths = deep, depths or np.random.default_rng(0)
        self._shallow: set[Key] = set()
        self._types: dict[str, InstanceType] = {}
        self.prices: dict[Key, float] = {}
        for family, (memory, per_cpu) in _FAMILIES.items():
            for generation, factor in _GENERATIONS.items():
                for size, cpu in _SIZES.items():
                    name = f"{family}{generation}.{size}"
                    self._types[name] = plain_type(name, {"cpu": str(cpu), "memory": f"{memory * cpu}Gi"}, _OVERHEAD)
                    for zone in ZONES:
                        listed = per_cpu * factor * cpu
                        self.prices[name, zone, names.CAPACITY_ON_DEMAND] = listed
                        share = float(chance.uniform(0.3, 0.5))
                        self.prices[name, zone, names.CAPACITY_SPOT] = listed * share
        self.catalogue = self._catalogue()

    def pass_an_hour(self) -> None:
        """Spot prices move by some percent, up to nine tenths of the list price."""
        spot = [key for key in self.prices if key[2] == names.CAPACITY_SPOT]
        self._shallow = {key for key in spot if self._depths.random() >= self._deep}
        if self.steady:
            return
        for (name, zone, capacity_type), price in self.prices.items():
            if capacity_type == names.CAPACITY_SPOT:
                listed = self.prices[name, zone, names.CAPACITY_ON_DEMAND]
                moved = price * float(np.exp(self._chance.normal(0.0, 0.05)))
                self.prices[name, zone, capacity_type] = min(max(moved, 0.2 * listed), 0.9 * listed)
        self.catalogue = self._catalogue()

    def take(self, catalogue: Catalogue) -> None:
        """What these types cost from now on."""
        self.catalogue = catalogue
        for kind in catalogue.types:
            for zone, capacity_type in product(ZONES, _CAPACITY_TYPES):
                self.prices[kind.name, zone, capacity_type] = price_of(kind, zone, capacity_type) or 0.0

    def launched_as(self, types: Sequence[str], allowed: Mapping[str, Collection[str]]) -> Key:
        """Which offering a launch becomes that names these types, the cheapest first, and allows these zones and
        capacity types: spot capacity where it is allowed and costs no more than what else is."""
        offered = [
            (self.prices[key], key)
            for key in product(types[:_MOST_TYPES], ZONES, _CAPACITY_TYPES)
            if key[1] in allowed.get(names.ZONE, key) and key[2] in allowed.get(names.CAPACITY_TYPE, key)
        ]
        other = min((each for each in offered if each[1][2] != names.CAPACITY_SPOT), default=None)
        spot = [each for each in offered if each[1][2] == names.CAPACITY_SPOT and (not other or each[0] <= other[0])]
        deep = [each for each in spot if each[1] not in self._shallow]
        found = min(deep or spot, default=other)
        assert found is not None, f"nothing is offered: {types}, {allowed}"
        return found[1]

    def _catalogue(self) -> Catalogue:
        return Catalogue(types=tuple(self._priced(name, kind) for name, kind in self._types.items()))

    def _priced(self, name: str, kind: InstanceType) -> InstanceType:
        offerings = tuple(
            plain_offering(zone, capacity_type, self.prices[name, zone, capacity_type])
            for zone in ZONES
            for capacity_type in _CAPACITY_TYPES
        )
        return replace(kind, offerings=offerings)

    def allocatable(self, name: str) -> dict[str, int]:
        """What a node of the type has for pods."""
        kind = self._types[name]
        return {key: amount - kind.overhead.get(key, 0) for key, amount in kind.capacity.items()}

    def capacity(self, name: str) -> dict[str, int]:
        """What a node of the type has."""
        return dict(self._types[name].capacity)


def as_bound(name: str, key: Key, market: Market) -> BoundNode:
    """The node as the model of the kube-scheduler sees it."""
    kind, zone, capacity_type = key
    labels = {names.HOSTNAME: name, names.ZONE: zone, names.CAPACITY_TYPE: capacity_type, TYPE: kind}
    room = market.allocatable(kind)
    amounts = {"cpu": Fraction(room["cpu"], 10**9), "memory": Fraction(room["memory"]), "pods": Fraction(room["pods"])}
    return BoundNode(name, labels, (), amounts)
