"""The port Catalogues over the simulated cloud: what a pool could launch, and whether an instance is still right.

A catalogue is built once per NodeClass and set of shortages, then remembered: 144 types with eight offerings each are
not made anew for every plan.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.cloud import shortages
from dovetail.adapters.simulator.cloud.catalogue import WorldCatalogue, read_catalogue
from dovetail.adapters.simulator.cloud.default_types import CAPACITY_TYPES, CapacityPool, SimulatedType
from dovetail.adapters.simulator.cloud.node_classes import NONE_SUPPOSED, NodeClass, read_class
from dovetail.adapters.simulator.settings import read_settings
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.pods import Expression
from dovetail.model.pools import Catalogue, InstanceType, NodePool, Offering
from dovetail.model.values.json import Json
from dovetail.ports.cloud import NodeClassState


class SimulatedCatalogues:
    """What could be launched, pool by pool."""

    def __init__(
        self,
        calls: Calls,
        node_classes: Iterable[tuple[str, str]],
        supposed: Mapping[tuple[str, str], Json] = NONE_SUPPOSED,
    ) -> None:
        self._calls = calls
        self._supported = frozenset(node_classes)
        self._supposed = supposed

    async def with_classes(self, changed: Sequence[Json]) -> "SimulatedCatalogues":
        supposed = {(body["kind"], body["metadata"]["name"]): _admitted(body) for body in changed}
        return SimulatedCatalogues(self._calls, self._supported, supposed)

    async def catalogue(self, pool: NodePool) -> Catalogue:
        reference = pool.template.node_class
        node_class, catalogue, short = await self._calls.read(
            lambda c: (self._class(c, reference), read_catalogue(c), shortages.known(c, self._calls.clock()))
        )
        if not node_class.state.found:
            return Catalogue(error=f"{reference.kind} {reference.name} is missing")
        return _catalogue(catalogue, node_class, short)

    def _class(self, connection: sqlite3.Connection, reference: NodeClassRef) -> NodeClass:
        return read_class(connection, reference, self._supposed)

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        return (await self._calls.read(lambda connection: self._class(connection, reference))).state

    async def drift(self, claim: NodeClaim) -> str:
        node_class = await self._calls.read(lambda connection: self._class(connection, claim.node_class))
        return node_class.drift(claim)

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return self._supported

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """Not Ready, for as long as the world's settings define (KWK-9)."""
        seconds = (await self._calls.read(read_settings)).delay("repair")
        return tuple(RepairPolicy(condition="Ready", status=s, toleration=seconds) for s in ("False", "Unknown"))


def _admitted(body: Json) -> Json:
    """Ready, as the world's API server makes a new class unless its author says otherwise."""
    return body if "status" in body else {**body, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


@lru_cache(maxsize=32)
def _catalogue(catalogue: WorldCatalogue, node_class: NodeClass, short: frozenset[CapacityPool]) -> Catalogue:
    types = [each for each in catalogue.types.values() if node_class.allows_type(each)]
    zones = tuple(zone for zone in catalogue.zones if zone in node_class.zones)
    return Catalogue(types=tuple(_instance_type(catalogue, each, zones, short) for each in types))


def _instance_type(
    catalogue: WorldCatalogue, sold: SimulatedType, zones: tuple[str, ...], short: frozenset[CapacityPool]
) -> InstanceType:
    return InstanceType(
        name=sold.name,
        requirements=catalogue.requirements_of(sold, zones),
        capacity=sold.capacity,
        overhead=sold.overhead,
        offerings=tuple(
            Offering(
                requirements=(
                    Expression(key=names.CAPACITY_TYPE, operator="In", values=(capacity_type,)),
                    Expression(key=names.ZONE, operator="In", values=(zone,)),
                ),
                price=sold.price_of(capacity_type),
                available=(sold.name, zone, capacity_type) not in short,
            )
            for zone in zones
            for capacity_type in CAPACITY_TYPES
        ),
    )
