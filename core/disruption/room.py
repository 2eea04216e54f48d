"""Is there room at all? A bound that costs a few additions where a simulation costs thousands of tries.

Asked by the multi-node search before it simulates a large set. Nothing but sums: all that is free elsewhere, and one new
node of the largest kind in every dimension. What does not fit into that fits nowhere, whatever the constraints; what
does fit may still fail, and is simulated.
"""

from collections.abc import Callable, Sequence

from core.disruption.candidates import Candidate
from core.model.pods import Pod
from core.scheduling.index import Index


class Room:
    """The free room of a snapshot, per resource."""

    def __init__(self, index: Index) -> None:
        self._index = index
        table = index.table
        self._free = [0] * len(index.dimensions)
        for left in table.remaining:
            self._free = [total + max(0, amount) for total, amount in zip(self._free, left, strict=True)]
        self._largest = [self._most(name) for name in index.dimensions]

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

    def is_too_little(self, candidates: Sequence[Candidate], movers: Callable[[Candidate], Sequence[Pod]]) -> bool:
        """Whether the pods of these nodes cannot possibly fit elsewhere and on one new node."""
        table, vector = self._index.table, self._index.vector
        have = [free + most for free, most in zip(self._free, self._largest, strict=True)]
        for candidate in candidates:
            bit = table.number.get(candidate.name)
            if bit is not None:
                have = [total - max(0, left) for total, left in zip(have, table.remaining[bit], strict=True)]
            for pod in movers(candidate):
                have = [total - want for total, want in zip(have, vector(pod.requests), strict=True)]
        return any(amount < 0 for amount in have)
