"""What a world's cloud sells: its instance types, zones and prices, and the NodeClasses that it understands.

A world sells the types of upstream's simulator unless its file declares its own catalogue: so a cluster recorded
elsewhere can be taken over with the types, zones and provider ids that its objects name. Every reader gets the
catalogue over its own connection; equal declarations are one object.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final

import orjson

from dovetail.adapters.kwok import names as kwok
from dovetail.adapters.kwok.choosing import place_of
from dovetail.adapters.kwok.instance_types import ZONES, OfferingKey, SoldType, prices_of
from dovetail.adapters.kwok.instance_types import default_types as kwok_types
from dovetail.adapters.kwok.node_class import RESERVED
from dovetail.model import names
from dovetail.model.values.resources import parse_resources

EMBEDDED_CLASS: Final = ("dovetail.sh", "EmbeddedNodeClass")
EC2_CLASS: Final = ("karpenter.k8s.aws", "EC2NodeClass")

# Custom labels with which a pool may narrow its choice.
FAMILY: Final = "embedded.dovetail.sh/instance-family"
CPU_COUNT: Final = "embedded.dovetail.sh/instance-cpu"
MEMORY_MIB: Final = "embedded.dovetail.sh/instance-memory"

_FAMILIES: Final = ("c", "s", "m")  # in this order: it decides between types of one price
REGION: Final = "test-region"
SETTING: Final = "shelf"  # files of worlds hold it under this name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorldCatalogue:
    """Everything that is for sale in one world; equal only to itself."""

    types: Mapping[str, SoldType]
    zones: Mapping[str, Mapping[str, str]]  # each with the labels that nodes there have beside the zone's name
    scheme: str = "embedded"  # how provider ids begin
    node_classes: tuple[tuple[str, str], ...] = (EMBEDDED_CLASS,)

    def provider_id(self, zone: str, identity: str) -> str:
        """The id under which Nodes and NodeClaims name an instance."""
        return f"{self.scheme}:///{zone}/{identity}"

    def is_of_this_cloud(self, provider_id: str) -> bool:
        return provider_id.startswith(f"{self.scheme}:///")

    def place_of(self, pool: OfferingKey) -> dict[str, str]:
        """The labels of an instance from there that its type does not have."""
        return {**self.zones[pool.zone], **place_of(pool)}

    def labels_of(self, pool: OfferingKey) -> dict[str, str]:
        return {key: values[0] for key, values in self.types[pool.instance_type].labels.items()} | self.place_of(pool)


@lru_cache(maxsize=32)
def sold_in(catalogue: WorldCatalogue, zones: tuple[str, ...], families: tuple[str, ...]) -> tuple[SoldType, ...]:
    """The types as they are sold there; all families where none is named."""
    keys = sorted({key for zone in zones for key in catalogue.zones[zone]})
    labels = {key: tuple(sorted(catalogue.zones[zone][key] for zone in zones)) for key in keys}
    return tuple(
        replace(
            sold,
            labels={**sold.labels, **labels},
            prices={pool: price for pool, price in sold.prices.items() if pool.zone in zones},
        )
        for sold in catalogue.types.values()
        if not families or sold.labels.get(FAMILY, ("",))[0] in families
    )


@cache
def default_catalogue() -> WorldCatalogue:
    """What a world without a declared catalogue sells: the types of the cloud kwok, under labels of its own."""
    types = sorted(map(_default, kwok_types()), key=lambda each: _FAMILIES.index(each.labels[FAMILY][0]))
    return WorldCatalogue(types={each.name: each for each in types}, zones={zone: {} for zone in ZONES})


def _default(sold: SoldType) -> SoldType:
    labels = {key: values for key, values in sold.labels.items() if key not in kwok.TYPE_LABELS}
    labels |= {names.REGION: (REGION,), FAMILY: sold.labels[kwok.FAMILY], CPU_COUNT: sold.labels[kwok.CPU]}
    return replace(sold, labels={**labels, MEMORY_MIB: (str(sold.capacity["memory"] // 2**20),)}, reserved=RESERVED)


def read_catalogue(connection: sqlite3.Connection) -> WorldCatalogue:
    row = connection.execute("SELECT value FROM settings WHERE name = ?", (SETTING,)).fetchone()
    return declared(row["value"]) if row else default_catalogue()


@lru_cache(maxsize=8)
def declared(text: str) -> WorldCatalogue:
    """The catalogue of a declaration: region, scheme, nodeClasses, zones with labels, types with what they have."""
    body: dict[str, Any] = orjson.loads(text)
    types = [_type(entry, body["region"], body["zones"]) for entry in body["types"]]
    return WorldCatalogue(
        scheme=body["scheme"],
        node_classes=tuple((group, kind) for group, kind in body["nodeClasses"]),
        zones=body["zones"],
        types={sold.name: sold for sold in types},
    )


def _type(entry: Mapping[str, Any], region: str, zones: Iterable[str]) -> SoldType:
    return SoldType(
        name=entry["name"],
        labels={**{key: (value,) for key, value in sorted(entry["labels"].items())}, names.REGION: (region,)},
        capacity=parse_resources(entry["capacity"]),
        reserved=parse_resources(entry["overhead"]),
        prices=prices_of(entry["name"], zones, entry["price"]),
    )
