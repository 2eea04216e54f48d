"""What would this instance type cost, and which comes first?

Prices are floats as in Karpenter. Only their order and extremes matter; none is compared for equality after arithmetic.
"""

import math
from collections.abc import Iterable, Sequence

from dovetail.model import names
from dovetail.model.scheduling.requirements import Requirement, RequirementSet, compatible
from dovetail.placement.go_sort import unstable_sorted

PricedOffering = tuple[RequirementSet, float]

_HIGHEST = 1e100  # a price that sorts behind all others, and whose sums are still numbers
_CLASSES = (names.CAPACITY_RESERVED, names.CAPACITY_SPOT, names.CAPACITY_ON_DEMAND)


def cheapest(offerings: Iterable[PricedOffering], wanted: RequirementSet, well_known: frozenset[str]) -> float:
    """The lowest price among available offerings that suit the requirements; infinity if there is none (PLC-126)."""
    return min((price for offering, price in offerings if compatible(wanted, offering, well_known)), default=math.inf)


def _capacity_type(offering: RequirementSet) -> frozenset[str]:
    item: Requirement | None = offering.get(names.CAPACITY_TYPE)
    return item.values if item is not None else frozenset()


def worst_launch_price(
    offerings: Iterable[PricedOffering], wanted: RequirementSet, well_known: frozenset[str]
) -> float:
    """The highest price within the first class of reserved, spot, on-demand that has a suitable offering (PLC-127)."""
    suitable = [(offering, price) for offering, price in offerings if compatible(wanted, offering, well_known)]
    for capacity_type in _CLASSES:
        prices = [price for offering, price in suitable if capacity_type in _capacity_type(offering)]
        if prices:
            return max(prices)
    return math.inf


def price_order(prices: Sequence[float]) -> list[int]:
    """Indexes by price, ties as upstream's unstable sort leaves them (PLC-126)."""
    return unstable_sorted(list(range(len(prices))), prices.__getitem__)


def adjusted_price(price: float, change: str) -> float:
    """A node overlay's price: absolute, or a difference (+0.1), or a percentage (-10%); never below zero (PLC-138)."""
    if not change:
        return price
    number = max(-_HIGHEST, min(_HIGHEST, float(change.removesuffix("%"))))  # however many digits there are
    if change[0] not in "+-":
        return number
    return max(0.0, price * (1 + number / 100) if change.endswith("%") else price + number)
