"""A type with the offerings that a launch may choose among."""

from dataclasses import dataclass
from math import inf

from dovetail.adapters.aws.catalogue.offerings import OfferingKind
from dovetail.adapters.aws.instance_types.sized_types import SizedType
from dovetail.adapters.aws.resources.reservations import Reservation
from dovetail.model.pools import Offering


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOffering:
    """One offering, with what a launch must know besides what planners see."""

    capacity_type: str
    zone: str
    price: float
    reservation: Reservation | None = None
    partition: str = ""
    overlaid: bool = False  # whether a NodeOverlay has set the price (AWS-88)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOption:
    sized: SizedType
    offerings: tuple[LaunchOffering, ...]
    price: float  # of its cheapest offering; launches order hundreds of options by it


def launch_option(sized: SizedType, offerings: tuple[LaunchOffering, ...]) -> LaunchOption:
    price = min([offering.price for offering in offerings], default=inf)
    return LaunchOption(sized=sized, offerings=offerings, price=price)


def launch_offering(kind: OfferingKind, offering: Offering) -> LaunchOffering:
    """An offering in full: its kind and its price."""
    return LaunchOffering(
        capacity_type=kind.capacity_type,
        zone=kind.zone,
        price=offering.price,
        reservation=kind.reservation,
        partition=kind.partition,
        overlaid=offering.price_overlay,
    )
