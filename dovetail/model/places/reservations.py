"""Capacity reservations as a NodePool sees them: who is in one, and what is left where nothing else is asked for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import InstanceType, NodePool
from dovetail.model.scheduling.requirements import RequirementSet, compatible, from_expressions, from_labels, merge

RESERVATION_ID_SUFFIX: Final = "reservation-id"  # of the label that names an offering's reservation, on any cloud


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedRoom:
    """What reservations leave to a NodePool that launches into nothing else. `full`: those of which only a node that
    leaves gives an instance back."""

    left: int
    full: frozenset[str]


def reservation_of(requirements: RequirementSet) -> str | None:
    """The reservation id of an offering of capacity type reserved; None for any other."""
    capacity_type = requirements.get(names.CAPACITY_TYPE)
    if capacity_type is None or names.CAPACITY_RESERVED not in capacity_type.values:
        return None
    for key, item in requirements.items():
        if key.endswith(RESERVATION_ID_SUFFIX) and item.values:
            return min(item.values)
    return ""


def reservation_in(labels: Mapping[str, str]) -> dict[str, str]:
    """The label of the reservation whose instance a node is; empty for any other."""
    if labels.get(names.CAPACITY_TYPE) != names.CAPACITY_RESERVED:
        return {}
    return {key: value for key, value in labels.items() if key.endswith(RESERVATION_ID_SUFFIX)}


def reserved_room(
    pool: NodePool, types: Iterable[InstanceType], claims: Iterable[NodeClaim], well_known: frozenset[str]
) -> ReservedRoom | None:
    """None where the template asks for anything else too, even if there is none of it now. The NodePool's claims that
    are not launched yet will have theirs."""
    wanted = merge(from_expressions(pool.template.requirements), from_labels(pool.template.labels))
    left: dict[str, int] = {}
    full: set[str] = set()
    for each in types:
        if not compatible(wanted, from_expressions(each.requirements), well_known):
            continue
        for offering in each.offerings:
            asks = from_expressions(offering.requirements)
            if not compatible(wanted, asks, well_known):
                continue
            reservation = reservation_of(asks)
            if reservation is None:
                return None
            left[reservation] = offering.reservation_capacity if offering.available else 0
            full.update([reservation] if offering.full else [])
    if not left:
        return None
    launching = sum(1 for each in claims if _launches(each) and each.labels.get(names.NODE_POOL) == pool.name)
    return ReservedRoom(left=max(0, sum(left.values()) - launching), full=frozenset(full))


def may_become(claim: NodeClaim, reservation: Mapping[str, str], well_known: frozenset[str]) -> bool:
    """Whether the claim, which is not launched yet, may take an instance of the reservation of that label."""
    asks = from_labels({names.CAPACITY_TYPE: names.CAPACITY_RESERVED, **reservation})
    return _launches(claim) and compatible(from_expressions(claim.requirements), asks, well_known)


def _launches(claim: NodeClaim) -> bool:
    return not claim.provider_id and claim.deleting_since is None
