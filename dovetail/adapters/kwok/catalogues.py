"""The port Catalogues over kwok: what a pool could launch, and whether what it has launched has drifted."""

from collections.abc import Sequence
from typing import Final

from dovetail.adapters.kwok import names as own
from dovetail.adapters.kwok.instance_types import OfferingKey, SoldType
from dovetail.adapters.kwok.node_class import SUPPORTED, KwokClass, KwokClasses, KwokShortages
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.pods import Expression
from dovetail.model.pools import Catalogue, InstanceType, NodePool, Offering
from dovetail.model.values.json import Json
from dovetail.model.values.resources import Resources
from dovetail.ports.cloud import NodeClassState

# A machine that does not exist loses nothing by an end without a drain. The second is a fault that is only played.
_REPAIR: Final = (
    *[RepairPolicy(condition=names.READY, status=each, toleration=600.0, grace=0.0) for each in ("False", "Unknown")],
    RepairPolicy(condition="KWOKUnhealthy", status="True", toleration=30.0, grace=45.0),
)


class KwokCatalogues:
    """What could be launched, pool by pool; and the same for changed classes."""

    def __init__(self, classes: KwokClasses, types: Sequence[SoldType], shortages: KwokShortages) -> None:
        self._classes, self._types, self._shortages = classes, types, shortages
        self._made: dict[str, tuple[object, Catalogue]] = {}

    async def with_classes(self, changed: Sequence[Json]) -> "KwokCatalogues":
        """The port SupposedClasses."""
        raws = {**self._classes.raws(), **{raw["metadata"]["name"]: ready_at_once(raw) for raw in changed}}
        return KwokCatalogues(KwokClasses(lambda: raws), self._types, self._shortages)

    async def catalogue(self, pool: NodePool) -> Catalogue:
        reference = pool.template.node_class
        node_class, short = self._classes.get(reference), self._shortages.known()
        if node_class is None:
            return Catalogue(error=f"{reference.kind} {reference.name} is missing")
        key = (node_class.hash, short)
        made = self._made.get(node_class.name)
        if made is None or made[0] != key:
            # One catalogue for as long as it says the same, so that what planners derive from it can be remembered.
            made = (key, Catalogue(types=tuple(instance_type(each, node_class, short) for each in self._types)))
            self._made[node_class.name] = made
        return made[1]

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        found = self._classes.get(reference)
        return NodeClassState(found=False) if found is None else found.state

    async def drift(self, claim: NodeClaim) -> str:
        found, launched = self._classes.get(claim.node_class), claim.annotations.get(own.CLASS_HASH)
        return "NodeClassDrift" if found is not None and launched and launched != found.hash else ""

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return SUPPORTED

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return _REPAIR


def ready_at_once(raw: Json) -> Json:
    """As the API server makes a new class, unless its author says otherwise."""
    return {"status": {"conditions": [{"type": names.READY, "status": "True"}]}, **raw}


def instance_type(sold: SoldType, node_class: KwokClass, short: frozenset[OfferingKey] = frozenset()) -> InstanceType:
    capacity, overhead = sizes_of(sold, node_class)
    return InstanceType(
        name=sold.name,
        requirements=sold.requirements,
        capacity=capacity,
        overhead=overhead,
        offerings=tuple(
            Offering(
                requirements=(
                    Expression(key=names.CAPACITY_TYPE, operator="In", values=(pool.capacity_type,)),
                    Expression(key=names.ZONE, operator="In", values=(pool.zone,)),
                ),
                price=price,
                available=pool not in short,
            )
            for pool, price in sold.prices.items()
        ),
        devices=sold.devices,
    )


def sizes_of(sold: SoldType, node_class: KwokClass) -> tuple[Resources, Resources]:
    """What a type has as the class defines it, and what of that is not for pods."""
    pods = {} if node_class.max_pods is None else {"pods": node_class.max_pods}
    reserved = node_class.reserved if sold.reserved is None else sold.reserved
    return {**sold.capacity, **pods}, {name: amount for name, amount in reserved.items() if name in sold.capacity}
