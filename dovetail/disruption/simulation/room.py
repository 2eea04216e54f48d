"""Is there any hope? Bounds that cost a few additions where a simulation costs hundreds of tries.

Two questions: do the pods fit into all that is free elsewhere and one new node of the largest kind; and would the one
node that must be bought for the pods which fit on no other be cheaper? Resources and list prices only: constraints make
a case worse, never better, so what has no hope here has none at all. What has some may still fail, and is simulated.
"""

import math
from collections.abc import Callable, Sequence

from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.simulation.pricing import PriceBook
from dovetail.model.pods import Pod
from dovetail.placement.cluster.index import Index

Movers = Callable[[Candidate], Sequence[Pod]]


class Room:
    """The free room of a snapshot, and what new room would cost."""

    def __init__(self, index: Index, avoided: int, prices: PriceBook) -> None:
        self._index = index
        self._prices = prices
        self._open = index.table.every & ~avoided
        self._free = [0] * len(index.dimensions)
        for left in index.table.remaining:
            self._free = [total + max(0, amount) for total, amount in zip(self._free, left, strict=True)]
        self._largest = [self._most(name) for name in index.dimensions]
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

    def is_hopeless(self, candidates: Sequence[Candidate], movers: Movers) -> bool:
        """Whether these nodes can certainly neither go nor be one cheaper node."""
        if len(candidates) > 1 and self._is_too_little(candidates, movers):
            return True
        return self._least_price(candidates, movers) >= sum(c.price for c in candidates)

    def _is_too_little(self, candidates: Sequence[Candidate], movers: Movers) -> bool:
        table, vector = self._index.table, self._index.vector
        have = [free + most for free, most in zip(self._free, self._largest, strict=True)]
        for candidate in candidates:
            bit = table.number.get(candidate.name)
            if bit is not None:
                have = [total - max(0, left) for total, left in zip(have, table.remaining[bit], strict=True)]
            for pod in movers(candidate):
                have = [total - want for total, want in zip(have, vector(pod.requests), strict=True)]
        return any(amount < 0 for amount in have)

    def _least_price(self, candidates: Sequence[Candidate], movers: Movers) -> float:
        """The least that the new node would cost for the pods that fit nowhere else; 0 without such pods."""
        table, vector = self._index.table, self._index.vector
        left = self._open
        for candidate in candidates:
            bit = table.number.get(candidate.name)
            if bit is not None:
                left &= ~(1 << bit)
        needed: list[int] | None = None
        for candidate in candidates:
            for pod in movers(candidate):
                wanted = vector(pod.requests)
                if not table.holding(wanted) & left:
                    needed = [a + b for a, b in zip(needed, wanted, strict=True)] if needed else list(wanted)
        return 0.0 if needed is None else self._price_of(tuple(needed))

    def _price_of(self, amounts: tuple[int, ...]) -> float:
        """The lowest price at which one new node could hold that much; infinity if none could."""
        known = self._least.get(amounts)
        if known is None:
            known = math.inf
            for template in self._index.templates:
                rows = template.fit.holding(amounts, template.rows)
                for number in template.table.types_in(rows):
                    source = template.table.types[number].source
                    known = min(known, self._prices.best(source, template.start.requirements))
            self._least[amounts] = known
        return known
