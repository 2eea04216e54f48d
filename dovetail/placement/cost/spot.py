"""What does a spot node cost, before anybody knows which pool AWS takes it from?

A claim names many types, and by price and capacity (`price-capacity-optimized`) AWS takes the cheapest of those pools
that have much capacity left. Which these are it does not say. So each pool is given the same chance to be one of them,
and a node is counted at what may be expected then: the cheapest pool's price if that one is deep, the next one's if it
is not but the next is, and so on. A node for which many types cost nearly the same is cheap indeed; one that is cheap
as a single type, and as no other, is not.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dovetail.model import names
from dovetail.model.scheduling.requirements import RequirementSet
from dovetail.placement.cost.problem import Flags, Floats

_SPOT = frozenset({names.CAPACITY_SPOT})
_REST = 1e-3  # what so little of the chance is left for does not matter


@dataclass(frozen=True, slots=True, eq=False)
class SpotCell:
    """Spot capacity under one set of requirements: what each row costs there."""

    requirements: RequirementSet
    prices: dict[int, float]


def is_spot(offering: RequirementSet) -> bool:
    capacity = offering.get(names.CAPACITY_TYPE)
    return capacity is not None and not capacity.complement and frozenset(capacity.values) == _SPOT


def expected_price(ascending: Iterable[float], chance: float) -> float:
    """The price to expect of these pools, the cheapest first, each of which has that chance to be deep."""
    found, left, last = 0.0, 1.0, 0.0
    for price in ascending:
        last = price
        found += left * chance * price
        left *= 1 - chance
        if left < _REST:
            break
    return found + left * last


def expected_prices(price: Floats, holding: Flags, chance: float) -> Floats:
    """The price to expect for each type if every pool that holds as much is named. `holding`: for each type those
    pools, its own among them."""
    order = np.argsort(price, kind="stable")
    named, ascending = holding[:, order], price[order]
    rank = np.cumsum(named, axis=1)
    shares = np.where(named, chance * (1 - chance) ** (rank - 1), 0.0)
    last = ascending[named.shape[1] - 1 - np.argmax(named[:, ::-1], axis=1)]
    found: Floats = (shares * ascending).sum(axis=1) + (1 - shares.sum(axis=1)) * last
    return found
