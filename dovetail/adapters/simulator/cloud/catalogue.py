"""What a world's cloud sells: its instance types, zones and prices, and the NodeClasses that it understands.

A world sells the types of upstream's simulator unless its file declares its own catalogue: so a cluster recorded
elsewhere can be taken over with the types, zones and provider ids that its objects name. Every reader gets the
catalogue over its own connection; equal declarations are one object.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, Final

import orjson

from dovetail.adapters.simulator.cloud.default_types import (
    CAPACITY_TYPES,
    REGION,
    ZONES,
    CapacityPool,
    SimulatedOffering,
    SimulatedType,
    default_types,
)
from dovetail.model import names
from dovetail.model.pods import Expression
from dovetail.model.values.resources import parse_resources

EMBEDDED_CLASS: Final = ("dovetail.sh", "EmbeddedNodeClass")
EC2_CLASS: Final = ("karpenter.k8s.aws", "EC2NodeClass")

SETTING: Final = "shelf"  # files of worlds hold it under this name


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: offerings are worked out once; equal only to itself
class WorldCatalogue:
    """Everything that is for sale in one world."""

    types: Mapping[str, SimulatedType]
    zones: Mapping[str, Mapping[str, str]]  # each with the labels that nodes there have beside the zone's name
    region: str = REGION
    scheme: str = "embedded"  # how provider ids begin
    node_classes: tuple[tuple[str, str], ...] = (EMBEDDED_CLASS,)

    @cached_property
    def offerings(self) -> tuple[SimulatedOffering, ...]:
        """Everything that is for sale, cheapest first."""
        return tuple(sorted(self._offerings()))

    def provider_id(self, zone: str, identity: str) -> str:
        """The id under which Nodes and NodeClaims name an instance."""
        return f"{self.scheme}:///{zone}/{identity}"

    def is_of_this_cloud(self, provider_id: str) -> bool:
        """Whether an id belongs to this cloud."""
        return provider_id.startswith(f"{self.scheme}:///")

    def labels_of(self, pool: CapacityPool) -> dict[str, str]:
        """The labels of an instance from that capacity pool."""
        return {
            **dict(self.types[pool.instance_type].labels),
            **self.zones[pool.zone],
            names.ZONE: pool.zone,
            names.REGION: self.region,
            names.CAPACITY_TYPE: pool.capacity_type,
        }

    def requirements_of(self, sold: SimulatedType, zones: tuple[str, ...]) -> tuple[Expression, ...]:
        """What a type requires of every label (CLD-11); labels that it cannot have are DoesNotExist."""
        fixed = [Expression(key=key, operator="In", values=(value,)) for key, value in sold.labels]
        absent = [] if any(key == names.WINDOWS_BUILD for key, _ in sold.labels) else [names.WINDOWS_BUILD]
        return (
            *fixed,
            Expression(key=names.ZONE, operator="In", values=zones),
            *self._zone_requirements(zones),
            Expression(key=names.REGION, operator="In", values=(self.region,)),
            Expression(key=names.CAPACITY_TYPE, operator="In", values=tuple(sorted(CAPACITY_TYPES))),
            *(Expression(key=key, operator="DoesNotExist") for key in absent),
        )

    def _zone_requirements(self, zones: tuple[str, ...]) -> Iterator[Expression]:
        for key in sorted({key for zone in zones for key in self.zones[zone]}):
            yield Expression(key=key, operator="In", values=tuple(sorted(self.zones[zone][key] for zone in zones)))

    def _offerings(self) -> Iterator[SimulatedOffering]:
        for sold in self.types.values():
            for zone in self.zones:
                for capacity_type in CAPACITY_TYPES:
                    pool = CapacityPool(sold.name, zone, capacity_type)
                    yield SimulatedOffering(price=sold.price_of(capacity_type), pool=pool)


@cache
def default_catalogue() -> WorldCatalogue:
    """What a world without a declared catalogue sells."""
    return WorldCatalogue(types=default_types(), zones={zone: {} for zone in ZONES})


def read_catalogue(connection: sqlite3.Connection) -> WorldCatalogue:
    row = connection.execute("SELECT value FROM settings WHERE name = ?", (SETTING,)).fetchone()
    return declared(row["value"]) if row else default_catalogue()


@lru_cache(maxsize=8)
def declared(text: str) -> WorldCatalogue:
    """The catalogue of a declaration: region, scheme, nodeClasses, zones with labels, types with what they have."""
    body: dict[str, Any] = orjson.loads(text)
    return WorldCatalogue(
        region=body["region"],
        scheme=body["scheme"],
        node_classes=tuple((group, kind) for group, kind in body["nodeClasses"]),
        zones=body["zones"],
        types={entry["name"]: _type(entry) for entry in body["types"]},
    )


def _type(entry: Mapping[str, Any]) -> SimulatedType:
    return SimulatedType(
        name=entry["name"],
        labels=tuple(sorted(entry["labels"].items())),
        capacity=parse_resources(entry["capacity"]),
        overhead=parse_resources(entry["overhead"]),
        price=entry["price"],
    )
