"""Is it certain, without a simulation, that these nodes cannot be consolidated?

They cannot if their pods need more room than there is, or if the one node that they would need costs at least as much
as these nodes do.
"""

from collections.abc import Callable, Sequence

from dovetail.disruption.nodes.candidates import Candidate
from dovetail.placement.place_pods import FreeRoom, Sizes

MovingSizes = Callable[[Candidate], Sizes]


def is_hopeless(room: FreeRoom, candidates: Sequence[Candidate], sizes: MovingSizes) -> bool:
    """Whether these nodes can certainly neither leave nor become one cheaper node."""
    names = [candidate.name for candidate in candidates]
    moved = tuple([size for candidate in candidates for size in sizes(candidate)])
    if len(candidates) > 1 and room.is_too_small(names, moved):
        return True
    return room.least_price(names, moved) >= sum(candidate.price for candidate in candidates)
