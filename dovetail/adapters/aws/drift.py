"""Whether an instance still is what its class asks for (AWS-113 to AWS-121).

The answer is the first of upstream's reasons that holds. What cannot be judged counts as unchanged: otherwise a class
whose last image has vanished would drift on every node. An image that no longer fits, while the class has others, is
judged: nothing else would report that such a node stays as it is forever.
"""

from dataclasses import dataclass

from dovetail.adapters.aws import names
from dovetail.adapters.aws.catalogue.offerings_cache import NoTypes, OfferingsCache
from dovetail.adapters.aws.cluster import Cluster
from dovetail.adapters.aws.instances.instance import InstanceFacts, instance_id
from dovetail.adapters.aws.instances.inventory import Inventory
from dovetail.adapters.aws.node_class.node_class import NodeClass, NodeClasses, image_for
from dovetail.adapters.kubernetes_json.parsing.class_hashes import (
    EC2_NODE_CLASS_HASH_VERSION as HASH_VERSION,
)
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim

_FACTS_SECONDS = 120.0  # how late a change made in EC2 itself may be noticed

NODE_CLASS = "NodeClassDrift"
IMAGE = "AMIDrift"
SECURITY_GROUP = "SecurityGroupDrift"
SUBNET = "SubnetDrift"
RESERVATION = "CapacityReservationDrift"
PLACEMENT_GROUP = "PlacementGroupDrift"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The latest answer about a claim: the class's generation whose resources it was compared with, and the reason."""

    generation: int
    reason: str


class Drift:
    """Judges claims, and remembers its answer for each."""

    def __init__(self, classes: NodeClasses, offerings: OfferingsCache, inventory: Inventory, cluster: Cluster) -> None:
        self._classes, self._offerings, self._inventory, self._cluster = classes, offerings, inventory, cluster
        self.judged: dict[str, Judged] = {}  # by the claim's UID

    async def of(self, claim: NodeClaim) -> str:
        """The reason; empty if there is none."""
        node_class = self._classes.get(claim.node_class.name)
        if not isinstance(node_class, NodeClass) or node_class.deleting or not claim.provider_id:
            return ""
        reason = await self._reason(claim, node_class)
        if not node_class.stale:  # else its images and subnets are those of an earlier generation
            self.judged[claim.uid] = Judged(generation=node_class.generation, reason=reason)
        return reason

    async def _reason(self, claim: NodeClaim, node_class: NodeClass) -> str:
        if self._hash_differs(claim, node_class):
            return NODE_CLASS
        if await self._image_differs(claim, node_class):
            return IMAGE
        facts = await self._inventory.recent(instance_id(claim.provider_id), _FACTS_SECONDS)
        if facts is not None:
            reason = await self._facts_differ(claim, node_class, facts)
            if reason:
                return reason
        group = await self._offerings.sources.groups.of_class(node_class)
        wanted = group.id if group else ""
        return PLACEMENT_GROUP if claim.labels.get(names.PLACEMENT_GROUP, "") != wanted else ""

    def _hash_differs(self, claim: NodeClaim, node_class: NodeClass) -> bool:
        """Both sides must carry a hash, of the same version (AWS-115)."""
        ours, theirs = node_class.annotations, claim.annotations
        if ours.get(names.HASH_VERSION) != HASH_VERSION or theirs.get(names.HASH_VERSION) != HASH_VERSION:
            return False
        before, now = theirs.get(names.HASH), ours.get(names.HASH)
        return bool(before) and bool(now) and before != now

    async def _image_differs(self, claim: NodeClaim, node_class: NodeClass) -> bool:
        """Compared with the image that a node of this type would get today, if any (AWS-117). A type that the region no
        longer knows is not judged here: that is InstanceTypeNotFound, which waits for an hour (DIS-174)."""
        if not claim.image_id or not node_class.images:
            return False
        try:
            sized = (await self._offerings.sized_types(node_class)).get(claim.labels.get(core.INSTANCE_TYPE, ""))
        except NoTypes:
            return False
        if sized is None:
            return False
        return image_for(node_class.images, sized.requirements) != claim.image_id

    async def _facts_differ(self, claim: NodeClaim, node_class: NodeClass, facts: InstanceFacts) -> str:
        groups = frozenset(node_class.security_groups)
        if groups and facts.security_groups and groups != facts.security_groups:
            return SECURITY_GROUP
        subnets = {subnet.id for subnet in node_class.status.subnets or ()}
        if subnets and facts.subnet and facts.subnet not in subnets:
            return SUBNET
        if await self._reservation_differs(claim, node_class, facts):
            return RESERVATION
        return ""

    async def _reservation_differs(self, claim: NodeClaim, node_class: NodeClass, facts: InstanceFacts) -> bool:
        """Confirmed by a live look, because the instance may have fallen back to on-demand (AWS-119)."""
        known = {each.id for each in node_class.status.capacity_reservations or ()}
        if not facts.reservation_id or facts.reservation_id in known:
            return False
        live = await self._inventory.live(facts.id)
        return live is not None and bool(live.reservation_id) and live.reservation_id not in known
