"""The port Catalogues over AWS: what a pool could launch, and whether what it has launched has drifted."""

from dataclasses import dataclass, replace
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.catalogue.offerings import OfferedType
from dovetail.adapters.aws.catalogue.offerings_cache import NoTypes, OfferingsCache
from dovetail.adapters.aws.drift import Drift
from dovetail.adapters.aws.meters import show_types
from dovetail.adapters.aws.node_class.node_class import NodeClass, NodeClasses, UnreadableClass
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model.nodes import NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.pools import Catalogue, NodePool
from dovetail.ports.cloud import NodeClassState

# What the node monitoring agent reports, and for how long it may stand (AWS-140).
_MINUTE: Final = 60.0
_GPU: Final = ("AcceleratedHardwareReady", "False")
_CONDITIONS: Final = (
    ("Ready", "False"),
    ("Ready", "Unknown"),
    ("StorageReady", "False"),
    ("NetworkingReady", "False"),
    ("KernelReady", "False"),
    ("ContainerRuntimeReady", "False"),
)
# The codes (XID) of a GPU's errors that a reboot clears, with the gate RebootForRepair; and those that end it.
_CLEARED: Final = ".*XID(46|48|54|62|63|95|109|110|136|140|143|155|156|158).*"
_FATAL: Final = ".*XID(64|74|79|119|120).*"


def _policy(on: tuple[str, str], minutes: float, grace: float | None, reason: str = ".*") -> RepairPolicy:
    bound = None if grace is None else grace * _MINUTE
    return RepairPolicy(condition=on[0], status=on[1], toleration=minutes * _MINUTE, reason=reason, grace=bound)


LEGACY_POLICIES: Final = (_policy(_GPU, 10, None), *[_policy(each, 30, None) for each in _CONDITIONS])
REPAIR_POLICIES: Final = (
    *[_policy(each, 30, 10) for each in _CONDITIONS],
    _policy(_GPU, 10, 5, _CLEARED),
    _policy(_GPU, 10, 5, _FATAL),
    _policy(_GPU, 30, 10, ""),
)
REBOOTING_POLICIES: Final = tuple(replace(each, reboots=each.reason == _CLEARED) for each in REPAIR_POLICIES)


def repair_policies_of(settings: AwsSettings) -> tuple[RepairPolicy, ...]:
    """Those of Karpenter's provider, or of its repair until 1.14."""
    if settings.legacy_repair:
        return LEGACY_POLICIES
    return REBOOTING_POLICIES if settings.reboots else REPAIR_POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A catalogue, and what it was made from."""

    offered: tuple[OfferedType, ...]
    catalogue: Catalogue


class AwsCatalogues:
    """What could be launched, pool by pool."""

    def __init__(
        self,
        classes: NodeClasses,
        offerings: OfferingsCache,
        drift: Drift,
        policies: tuple[RepairPolicy, ...] = REPAIR_POLICIES,
    ) -> None:
        self._classes, self._offerings, self._drift, self._policies = classes, offerings, drift, policies
        self._made: dict[str, _Made] = {}

    async def catalogue(self, pool: NodePool) -> Catalogue:
        reference = pool.template.node_class
        found = self._classes.get(reference.name) if (reference.group, reference.kind) in names.SUPPORTED else None
        if not isinstance(found, NodeClass):
            problem = found.message if isinstance(found, UnreadableClass) else "is missing"
            return Catalogue(error=f"{reference.kind} {reference.name} {problem}")
        try:
            offered = await self._offerings.offered_types(found)
        except NoTypes as error:
            return Catalogue(error=str(error))
        before = self._made.get(found.uid)
        if before is None or before.offered is not offered:
            # One catalogue per class and moment, so that what planners derive from it can be remembered by identity.
            before = _Made(offered=offered, catalogue=Catalogue(types=tuple(each.type for each in offered)))
            self._made[found.uid] = before
            show_types(found.name, before.catalogue.types)
        return before.catalogue

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        if (reference.group, reference.kind) not in names.SUPPORTED:
            return NodeClassState(found=False)
        return self._classes.state(reference)

    async def drift(self, claim: NodeClaim) -> str:
        return await self._drift.of(claim)

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return names.SUPPORTED

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return self._policies
