"""The port Catalogues over the embedded cloud: what a pool could buy, and whether what was bought is still right.

Asked by planners and upkeep. A catalogue is built once per NodeClass and set of shortages, then remembered: 144 types
with eight offerings each are not made anew for every plan.
"""

from functools import lru_cache

from adapters.embedded import catalogue as shelf
from adapters.embedded import shortages
from adapters.embedded.calls import Calls
from adapters.embedded.catalogue import OVERHEAD, MachineType
from adapters.embedded.node_classes import CLASS_HASH, SUPPORTED, read_class
from adapters.embedded.purchases import Pool
from core.model import names
from core.model.nodes import NodeClaim, NodeClassRef
from core.model.pods import Expression
from core.model.pools import Catalogue, InstanceType, NodePool, Offering
from ports.cloud import NodeClassState


class EmbeddedCatalogues:
    """What could be bought, pool by pool."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def catalogue(self, pool: NodePool) -> Catalogue:
        reference = pool.template.node_class
        node_class, short = await self._calls.read(
            lambda c: (read_class(c, reference), shortages.known(c, self._calls.clock()))
        )
        if not node_class.state.found:
            return Catalogue(error=f"{reference.kind} {reference.name} is missing")
        return _catalogue(node_class.zones, node_class.families, short)

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        return (await self._calls.read(lambda connection: read_class(connection, reference))).state

    async def drift(self, claim: NodeClaim) -> str:
        node_class = await self._calls.read(lambda connection: read_class(connection, claim.node_class))
        bought_from = claim.annotations.get(CLASS_HASH)
        if not node_class.state.found or bought_from is None:
            return ""
        if bought_from != node_class.hash:
            return "NodeClassDrift"
        return "ImageDrift" if claim.image_id and claim.image_id != node_class.image else ""

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return SUPPORTED


@lru_cache(maxsize=32)
def _catalogue(zones: tuple[str, ...], families: tuple[str, ...], short: frozenset[Pool]) -> Catalogue:
    machines = [
        machine
        for machine in shelf.machine_types().values()
        if not families or dict(machine.labels)[shelf.FAMILY] in families
    ]
    known = tuple(zone for zone in shelf.ZONES if zone in zones)
    return Catalogue(types=tuple(_instance_type(machine, known, short) for machine in machines))


def _instance_type(machine: MachineType, zones: tuple[str, ...], short: frozenset[Pool]) -> InstanceType:
    return InstanceType(
        name=machine.name,
        requirements=shelf.requirements_of(machine, zones),
        capacity=machine.capacity,
        overhead=OVERHEAD,
        offerings=tuple(
            Offering(
                requirements=(
                    Expression(key=names.CAPACITY_TYPE, operator="In", values=(capacity_type,)),
                    Expression(key=names.ZONE, operator="In", values=(zone,)),
                ),
                price=machine.price_of(capacity_type),
                available=(machine.name, zone, capacity_type) not in short,
            )
            for zone in zones
            for capacity_type in shelf.CAPACITY_TYPES
        ),
    )
