"""How much room is there at most, without these nodes?

Bounds that cost a few additions instead of a simulation's hundreds of tries. They consider resources only: constraints
can only reduce room, so what has no room here has none at all. What has room may still find no place.
"""

import math
from collections.abc import Callable, Iterable

from dovetail.model.pools import InstanceType
from dovetail.model.scheduling.requirements import RequirementSet
from dovetail.placement.facts.moving_pods import Sizes
from dovetail.placement.index.index import Index

PriceOf = Callable[[InstanceType, RequirementSet], float]


class FreeRoom:
    """The free room of a snapshot, and the least that new room would cost. Nothing fits on closed nodes, which are
    given by their claims' names."""

    def __init__(self, index: Index, closed: frozenset[str], price_of: PriceOf) -> None:
        self._index = index
        self._price_of = price_of
        self._open = index.table.every & ~index.nodes_of(closed)
        self._free = [0] * len(index.dimensions.names)
        for left in index.table.remaining:
            self._free = [total + max(0, amount) for total, amount in zip(self._free, left, strict=True)]
        self._largest = [self._most(name) for name in index.dimensions.names]
        self._least: dict[tuple[int, ...], float] = {}

    def _most(self, resource: str) -> int:
        """The most of one resource that any new node could have."""
        return max(
            (
                room.get(resource, 0)
                for template in self._index.templates
                for item in template.table.types
                for room, _ in item.groups
            ),
            default=0,
        )

    def is_too_small(self, without: Iterable[str], moved: Sizes) -> bool:
        """Whether the pods need more than all that is free on other nodes and one new node of the largest kind."""
        table, vector = self._index.table, self._index.vector
        have = [free + most for free, most in zip(self._free, self._largest, strict=True)]
        for name in without:
            bit = table.number.get(name)
            if bit is not None:
                have = [total - max(0, left) for total, left in zip(have, table.remaining[bit], strict=True)]
        for requests, times in moved:
            have = [total - want * times for total, want in zip(have, vector(requests), strict=True)]
        return any(amount < 0 for amount in have)

    def least_price(self, without: Iterable[str], moved: Sizes) -> float:
        """The least that one new node would cost for the pods that fit on no other node; 0 without such pods."""
        table, vector = self._index.table, self._index.vector
        left = self._open
        for name in without:
            bit = table.number.get(name)
            if bit is not None:
                left &= ~(1 << bit)
        needed: list[int] | None = None
        for requests, times in moved:
            wanted = vector(requests)
            if not table.holding(wanted) & left:
                before = needed or [0] * len(wanted)
                needed = [total + want * times for total, want in zip(before, wanted, strict=True)]
        return 0.0 if needed is None else self._price_of_a_node(tuple(needed))

    def _price_of_a_node(self, amounts: tuple[int, ...]) -> float:
        """The lowest price at which one new node could hold that much; infinity if none could."""
        known = self._least.get(amounts)
        if known is None:
            known = math.inf
            for template in self._index.templates:
                rows = template.fit.holding(amounts, template.rows)
                for number in template.table.types_in(rows):
                    source = template.table.types[number].source
                    known = min(known, self._price_of(source, template.start.requirements))
            self._least[amounts] = known
        return known
