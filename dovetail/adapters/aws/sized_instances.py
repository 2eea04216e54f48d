"""The type of an instance as planners count on it: sized by its class, with its pool's NodeOverlays (AWS-76, AWS-94).

It fills a claim's status. The answer is the same right after a launch, when an instance is found again and when all are
listed, so that an interrupted launch that is resumed writes the same status.
"""

from dataclasses import replace

from dovetail.adapters.aws.catalogue.offerings_cache import NoTypes, OfferingsCache
from dovetail.adapters.aws.catalogue.pool_overlays import PoolOverlays
from dovetail.adapters.aws.instance_types.sized_types import SizedType
from dovetail.adapters.aws.instances.instance import InstanceFacts
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.model import names as core


class SizedInstances:
    def __init__(self, offerings: OfferingsCache, overlays: PoolOverlays) -> None:
        self._offerings, self._overlays = offerings, overlays

    async def of(self, facts: InstanceFacts, node_class: NodeClass) -> SizedType | None:
        """The instance's type; None if nothing can be listed for the class or it has no such type."""
        try:
            sized = (await self._offerings.sized_types(node_class)).get(facts.instance_type)
            if sized is None or not self._overlays.change_capacities():
                return sized
            offered = await self._offerings.offered_types(node_class)
        except NoTypes:
            return None
        pool = facts.tags.get(core.NODE_POOL, "")
        capacity = self._overlays.capacities(offered, pool).get(facts.instance_type)
        return sized if capacity is None else replace(sized, sizes=replace(sized.sizes, capacity=capacity))
