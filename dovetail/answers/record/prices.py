"""What instances cost and how large they are, by the current catalogues."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dovetail.answers.record.entries import Entry
from dovetail.disruption.nodes.costs import node_price
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import Catalogue, InstanceType
from dovetail.model.values.resources import CPU, MEMORY


@dataclass(frozen=True, slots=True)
class PricedSize:
    """An instance's price per hour and its size. `dollars`: None if its price is not known."""

    dollars: float | None
    cpu: float
    memory: float
    spot: bool = False

    @property
    def room(self) -> "Room":
        return (
            Room(0.0, 0.0, self.cpu, self.memory) if self.spot else Room(self.cpu, self.memory, self.cpu, self.memory)
        )

    def nodes_in(self, room: "Room") -> float:
        """How many nodes of that size fit the room. An on-demand node was launched for pods that may not run on
        spot."""
        found = min(room.cpu / self.cpu, room.memory / self.memory)
        return found if self.spot else min(found, room.firm_cpu / self.cpu, room.firm_memory / self.memory)


class Room(NamedTuple):
    """Room for pods: on nodes that are not spot, and on all nodes."""

    firm_cpu: float
    firm_memory: float
    cpu: float
    memory: float

    def plus(self, other: "Room", share: float = 1.0) -> "Room":
        return Room(
            self.firm_cpu + other.firm_cpu * share,
            self.firm_memory + other.firm_memory * share,
            self.cpu + other.cpu * share,
            self.memory + other.memory * share,
        )


NOTHING: Final = Room(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of each NodePool's instance types by the current catalogues."""

    types: Mapping[str, Mapping[str, InstanceType]]
    _sizes: dict[tuple[str, str, str, str], PricedSize | None] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, catalogues: Mapping[str, Catalogue]) -> "Prices":
        return cls({pool: {each.name: each for each in found.types} for pool, found in catalogues.items()})

    def size(self, pool: str, instance_type: str, zone: str, capacity_type: str) -> PricedSize | None:
        """None if the pool no longer has such a type."""
        key = (pool, instance_type, zone, capacity_type)
        if key not in self._sizes:
            self._sizes[key] = self._size(*key)
        return self._sizes[key]

    def _size(self, pool: str, instance_type: str, zone: str, capacity_type: str) -> PricedSize | None:
        known = self.types.get(pool, {}).get(instance_type)
        if known is None:
            return None
        price = node_price(known, zone, capacity_type) or None
        cpu, memory = float(known.capacity.get(CPU, 0)), float(known.capacity.get(MEMORY, 0))
        return PricedSize(price, cpu, memory, capacity_type == names.CAPACITY_SPOT)

    def of_entry(self, entry: Entry) -> PricedSize | None:
        """The price of the instance that a launch or a termination is about."""
        return self.size(entry.pool, entry.instance_type, entry.zone, entry.capacity_type)

    def of_claim(self, claim: NodeClaim) -> PricedSize | None:
        kept = [claim.labels.get(key, "") for key in (names.INSTANCE_TYPE, names.ZONE, names.CAPACITY_TYPE)]
        return self.size(claim.labels.get(names.NODE_POOL, ""), *kept)
