"""Which offerings a claim may have, cheapest first: what it is to prepare a launch, whatever keeps the instances."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from dovetail.adapters.kwok.catalogues import sizes_of
from dovetail.adapters.kwok.instance_types import OfferingKey, SoldType
from dovetail.adapters.kwok.node_class import KwokClass
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.scheduling.requirements import conflicts, from_expressions, from_labels
from dovetail.model.values.resources import fits, subtract, total
from dovetail.ports.cloud import NOTHING_SUITS, ClassNotReady, LaunchRefused, NoCapacity

Class = TypeVar("Class", bound=KwokClass)
Chosen = tuple[OfferingKey, ...]

MOST_OFFERINGS: Final = 60  # AWS-81: that a launch names


def place_of(pool: OfferingKey) -> Mapping[str, str]:
    return {names.ZONE: pool.zone, names.CAPACITY_TYPE: pool.capacity_type}


def ready_class(claim: NodeClaim, found: Class | None) -> Class | ClassNotReady:
    """The claim's class, or why nothing is launched of it."""
    which = f"{claim.node_class.kind} {claim.node_class.name}"
    if found is None or found.state.deleting:
        return ClassNotReady(message=f"{which} is missing or being deleted")
    if found.state.ready != "True":
        return ClassNotReady(message=f"{which}: {found.state.message}")
    return found


def choose(
    claim: NodeClaim,
    node_class: KwokClass,
    types: Iterable[SoldType],
    short: frozenset[OfferingKey],
    labels_of: Callable[[OfferingKey], Mapping[str, str]] = place_of,
) -> Chosen | NoCapacity | LaunchRefused:
    """What to try, without the known shortages. `labels_of`: what an offering adds to the labels of its type."""
    asked, wanted = from_expressions(claim.requirements), total((claim.requests, {"pods": 0}))
    suitable: list[tuple[float, OfferingKey]] = []
    for sold in types:
        capacity, overhead = sizes_of(sold, node_class)
        if not fits(wanted, subtract(capacity, overhead)) or conflicts(sold.requirement_set, asked):
            continue
        suitable += [
            (price, pool) for pool, price in sold.prices.items() if not conflicts(from_labels(labels_of(pool)), asked)
        ]
    if not suitable:
        return NOTHING_SUITS
    found = sorted(each for each in suitable if each[1] not in short)  # by price, then by name: no choice is random
    if not found:
        return NoCapacity(message="no instance type that the claim allows is available")
    return tuple(pool for _, pool in found[:MOST_OFFERINGS])
