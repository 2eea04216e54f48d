"""What a world's cloud sells: its instance types, zones and prices, and the NodeClasses that it understands.

A world sells the types of upstream's simulator unless its file declares a shelf of its own: so a cluster recorded
elsewhere can be taken over with the types, zones and provider ids that its objects name. The trap avoided: two shelves
in one world; every reader asks for it with its own connection, and one declared text is one shelf.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, Final

import orjson

from dovetail.adapters.simulator.cloud.catalogue import (
    CAPACITY_TYPES,
    REGION,
    ZONES,
    MachineType,
    Offer,
    machine_types,
)
from dovetail.model import names
from dovetail.model.pods import Expression
from dovetail.model.resources import parse_resources

EMBEDDED_CLASS: Final = ("dovetail.sh", "EmbeddedNodeClass")
EC2_CLASS: Final = ("karpenter.k8s.aws", "EC2NodeClass")

_SETTING: Final = "shelf"


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: offers are worked out once; equal only to itself
class Shelf:
    """Everything that is for sale in one world."""

    machines: Mapping[str, MachineType]
    zones: Mapping[str, Mapping[str, str]]  # each with the labels that a node has for being there, beside its name
    region: str = REGION
    scheme: str = "embedded"  # how provider ids begin
    node_classes: tuple[tuple[str, str], ...] = (EMBEDDED_CLASS,)

    @cached_property
    def offers(self) -> tuple[Offer, ...]:
        """Everything that is for sale, cheapest first."""
        return tuple(sorted(self._offers()))

    def provider_id(self, zone: str, identity: str) -> str:
        """The id under which Nodes and NodeClaims name an instance."""
        return f"{self.scheme}:///{zone}/{identity}"

    def is_sold_here(self, provider_id: str) -> bool:
        """Whether an id is of this cloud."""
        return provider_id.startswith(f"{self.scheme}:///")

    def labels_of(self, offer: Offer) -> dict[str, str]:
        """The labels of an instance bought that way."""
        return {
            **dict(self.machines[offer.instance_type].labels),
            **self.zones[offer.zone],
            names.ZONE: offer.zone,
            names.REGION: self.region,
            names.CAPACITY_TYPE: offer.capacity_type,
        }

    def requirements_of(self, machine: MachineType, zones: tuple[str, ...]) -> tuple[Expression, ...]:
        """What a type promises for every label (C-11): those it cannot have are DoesNotExist."""
        fixed = [Expression(key=key, operator="In", values=(value,)) for key, value in machine.labels]
        absent = [] if any(key == names.WINDOWS_BUILD for key, _ in machine.labels) else [names.WINDOWS_BUILD]
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

    def _offers(self) -> Iterator[Offer]:
        for machine in self.machines.values():
            for zone in self.zones:
                for capacity_type in CAPACITY_TYPES:
                    price = machine.price_of(capacity_type)
                    yield Offer(price=price, instance_type=machine.name, zone=zone, capacity_type=capacity_type)


@cache
def simulators_shelf() -> Shelf:
    """What a world sells that declares nothing."""
    return Shelf(machines=machine_types(), zones={zone: {} for zone in ZONES})


def read_shelf(connection: sqlite3.Connection) -> Shelf:
    """What this world sells."""
    row = connection.execute("SELECT value FROM settings WHERE name = ?", (_SETTING,)).fetchone()
    return declared(row["value"]) if row else simulators_shelf()


def write_shelf(connection: sqlite3.Connection, declaration: Mapping[str, Any]) -> None:
    """Declare what this world sells: see `declared` for the form."""
    text = orjson.dumps(declaration).decode()
    declared(text)  # one that cannot be read is an error now, not of whoever opens the world next
    connection.execute(
        "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (_SETTING, text),
    )


@lru_cache(maxsize=8)
def declared(text: str) -> Shelf:
    """The shelf of a declaration: region, scheme, nodeClasses, zones with their labels, types with what they have."""
    body: dict[str, Any] = orjson.loads(text)
    return Shelf(
        region=body["region"],
        scheme=body["scheme"],
        node_classes=tuple((group, kind) for group, kind in body["nodeClasses"]),
        zones=body["zones"],
        machines={entry["name"]: _machine(entry) for entry in body["types"]},
    )


def _machine(entry: Mapping[str, Any]) -> MachineType:
    return MachineType(
        name=entry["name"],
        labels=tuple(sorted(entry["labels"].items())),
        capacity=parse_resources(entry["capacity"]),
        overhead=parse_resources(entry["overhead"]),
        price=entry["price"],
    )
