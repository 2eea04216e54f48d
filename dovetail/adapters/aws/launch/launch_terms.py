"""What a launch fixes before its fleet is requested, for all of its types or for a group of them.

The same terms shape the launch template, are frozen on the claim, and are read back when the launch is carried out.
"""

from dataclasses import dataclass

from dovetail.adapters.aws.instance_types.capacity import Sizes
from dovetail.adapters.aws.kubelet.formulas import RESERVED

Amounts = tuple[tuple[str, str], ...]  # (resource, amount), sorted


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedAmounts:
    """kubeReserved and systemReserved if formulas computed them (AWS-24): types that differ in them need different
    templates (AWS-83)."""

    kube: Amounts = ()
    system: Amounts = ()

    @property
    def fields(self) -> dict[str, dict[str, str]]:
        """In the form of spec.kubelet."""
        return {name: dict(each) for name, each in zip(RESERVED, (self.kube, self.system), strict=True) if each}


def reserved_amounts(sizes: Sizes) -> ReservedAmounts | None:
    """The amounts of a type; None if the class has no formulas."""
    if sizes.kubelet is None:
        return None
    kube, system = (
        tuple(sorted((key, str(value)) for key, value in (sizes.kubelet.get(field) or {}).items()))
        for field in RESERVED
    )
    return ReservedAmounts(kube=kube, system=system)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTerms:
    """What the types of one group have in common, so that one launch template serves them all."""

    image: str
    max_pods: int
    efa: int = 0  # network interfaces of the kind EFA
    reserved: ReservedAmounts | None = None  # None: as the class writes them
    reservation_id: str | None = None
    market: str | None = None  # capacity-block, interruptible-capacity-reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTerms:
    """What all types of a launch have in common."""

    capacity_type: str
    tenancy: str
    partition: str | None = None  # of the placement group; None: EC2 chooses
