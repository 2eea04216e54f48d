"""The port Catalogues over the simulated cloud: what a pool could launch, and whether an instance is still right.

A catalogue is built once per NodeClass and set of shortages, then remembered: 144 types with eight offerings each are
not made anew for every plan.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from dovetail.adapters.kwok.catalogues import instance_type, ready_at_once
from dovetail.adapters.kwok.instance_types import OfferingKey
from dovetail.adapters.kwok.node_class import KwokClass
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.cloud import shortages
from dovetail.adapters.simulator.cloud.catalogue import WorldCatalogue, read_catalogue, sold_in
from dovetail.adapters.simulator.cloud.node_classes import NONE_SUPPOSED, NodeClass, read_class
from dovetail.adapters.simulator.settings import read_settings
from dovetail.model.nodes import NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.values.json import Json
from dovetail.ports.cloud import NodeClassState

# Of an instance's sizes a class of this cloud says nothing.
_PLAIN: Final = KwokClass(name="", state=NodeClassState(found=True))


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
        supposed = {(body["kind"], body["metadata"]["name"]): ready_at_once(body) for body in changed}
        return SimulatedCatalogues(self._calls, self._supported, supposed)

    async def catalogue(self, pool: NodePool) -> Catalogue:
        reference = pool.template.node_class
        found, catalogue, short = await self._calls.read(
            lambda c: (self._class(c, reference), read_catalogue(c), shortages.known(c, self._calls.clock()))
        )
        if found is None:
            return Catalogue(error=f"{reference.kind} {reference.name} is missing")
        return _catalogue(catalogue, found.zones, found.families, short)

    def _class(self, connection: sqlite3.Connection, reference: NodeClassRef) -> NodeClass | None:
        return read_class(connection, reference, self._supposed)

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        found = await self._calls.read(lambda connection: self._class(connection, reference))
        return NodeClassState(found=False) if found is None else found.state

    async def drift(self, claim: NodeClaim) -> str:
        found = await self._calls.read(lambda connection: self._class(connection, claim.node_class))
        return "" if found is None else found.drift(claim)

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return self._supported

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """Not Ready, for as long as the world's settings define (KWK-9)."""
        seconds = (await self._calls.read(read_settings)).delay("repair")
        return tuple(
            RepairPolicy(condition="Ready", status=each, toleration=seconds, grace=0.0) for each in ("False", "Unknown")
        )


@lru_cache(maxsize=32)
def _catalogue(
    catalogue: WorldCatalogue, zones: tuple[str, ...], families: tuple[str, ...], short: frozenset[OfferingKey]
) -> Catalogue:
    return Catalogue(types=tuple(instance_type(each, _PLAIN, short) for each in sold_in(catalogue, zones, families)))
