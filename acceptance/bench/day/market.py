"""Instance types of three families and their prices, those of spot moving from hour to hour."""

from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from acceptance.bench.plain_types import ZONES, plain_offering, plain_type
from acceptance.binding.nodes import TYPE
from acceptance.binding.nodes import Node as BoundNode
from dovetail.model import names
from dovetail.model.pools import Catalogue, InstanceType

_FAMILIES: Final = {"c": (2, 0.0425), "m": (4, 0.048), "r": (8, 0.063)}  # GiB and dollars an hour for each cpu
_GENERATIONS: Final = {"5": 1.0, "5a": 0.9, "6i": 1.0, "6a": 0.9, "7i": 1.05, "7a": 1.2}
_SIZES: Final = {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "8xlarge": 32}
_OVERHEAD: Final = {"cpu": "100m", "memory": "512Mi"}

Key = tuple[str, str, str]  # instance type, zone, capacity type


class Market:
    """The types, and what each offering costs now."""

    def __init__(self, chance: np.random.Generator) -> None:
        self._chance = chance
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
        for (name, zone, capacity_type), price in self.prices.items():
            if capacity_type == names.CAPACITY_SPOT:
                listed = self.prices[name, zone, names.CAPACITY_ON_DEMAND]
                moved = price * float(np.exp(self._chance.normal(0.0, 0.05)))
                self.prices[name, zone, capacity_type] = min(max(moved, 0.2 * listed), 0.9 * listed)
        self.catalogue = self._catalogue()

    def _catalogue(self) -> Catalogue:
        return Catalogue(types=tuple(self._priced(name, kind) for name, kind in self._types.items()))

    def _priced(self, name: str, kind: InstanceType) -> InstanceType:
        offerings = tuple(
            plain_offering(zone, capacity_type, self.prices[name, zone, capacity_type])
            for zone in ZONES
            for capacity_type in (names.CAPACITY_ON_DEMAND, names.CAPACITY_SPOT)
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
