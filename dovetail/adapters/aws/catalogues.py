"""The port Catalogues over AWS: what a pool could launch, and whether what it has launched has drifted."""

from dataclasses import dataclass, replace
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.catalogue.offerings import OfferedType
from dovetail.adapters.aws.catalogue.offerings_cache import NoTypes, OfferingsCache
from dovetail.adapters.aws.drift import Drift
from dovetail.adapters.aws.meters import show_types
from dovetail.adapters.aws.node_class.node_class import NodeClass, NodeClasses, UnreadableClass
from dovetail.model.nodes import NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.pools import Catalogue, NodePool
from dovetail.ports.cloud import NodeClassState

# What the node monitoring agent reports, and for how long it may stand (AWS-140).
_HALF_AN_HOUR: Final = 1800.0
_TOLERATIONS: Final = (
    ("Ready", "False", _HALF_AN_HOUR),
    ("Ready", "Unknown", _HALF_AN_HOUR),
    ("AcceleratedHardwareReady", "False", 600.0),
    ("StorageReady", "False", _HALF_AN_HOUR),
    ("NetworkingReady", "False", _HALF_AN_HOUR),
    ("KernelReady", "False", _HALF_AN_HOUR),
    ("ContainerRuntimeReady", "False", _HALF_AN_HOUR),
)
REPAIR_POLICIES: Final = tuple(
    RepairPolicy(condition=condition, status=status, toleration=seconds) for condition, status, seconds in _TOLERATIONS
)
# With the gate RebootForRepair. What a reboot clears of a GPU's errors, by their XID codes: those of EKS's table of
# repair actions, and two that Karpenter's provider adds (decision 232).
_CODES: Final = (13, 31, 46, 48, 63, 64, 94, 95, 140)
_REBOOTED: Final = {"AcceleratedHardwareReady": frozenset(f"NvidiaXID{code}Error" for code in _CODES)}
REBOOTING_POLICIES: Final = tuple(
    replace(each, reboot_reasons=_REBOOTED.get(each.condition, frozenset()), replaced_after=_HALF_AN_HOUR)
    for each in REPAIR_POLICIES
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A catalogue, and what it was made from."""

    offered: tuple[OfferedType, ...]
    catalogue: Catalogue


class AwsCatalogues:
    """What could be launched, pool by pool."""

    def __init__(self, classes: NodeClasses, offerings: OfferingsCache, drift: Drift, *, reboots: bool = False) -> None:
        self._classes, self._offerings, self._drift, self._reboots = classes, offerings, drift, reboots
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
        return REBOOTING_POLICIES if self._reboots else REPAIR_POLICIES
