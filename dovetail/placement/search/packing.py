"""Which node does a pod join: an existing one, a draft, or a new draft?

The one place where this is decided. Another function of the same form, given to the pass, could pack by cost instead.
Ours decides like Karpenter (PLC-95, PLC-96): existing nodes first, then the draft with the fewest pods, then a new node
of the heaviest pool, whatever the price.
"""

from collections.abc import Callable
from typing import Literal

from dovetail.model.pods import Pod
from dovetail.placement.constraints.demands import Demand
from dovetail.placement.search.on_nodes import NodePlacer
from dovetail.placement.search.on_proposed_nodes import DraftPlacer, ReservationRefusal

# "waits": reserved capacity suits the pod but cannot be had now (PLC-186).
Packed = Literal["placed", "refused", "waits"]
Packing = Callable[[NodePlacer, DraftPlacer, Demand, Pod], Packed]


def emptiest_first(nodes: NodePlacer, drafts: DraftPlacer, demand: Demand, pod: Pod) -> Packed:
    """Place the pod as Karpenter would."""
    if (nodes.active and nodes.place(demand, pod)) or drafts.place_on_open(demand, pod):
        return "placed"
    try:
        return "placed" if drafts.place_on_new(demand, pod) else "refused"
    except ReservationRefusal:
        return "waits"


def on_nodes_only(nodes: NodePlacer, _drafts: DraftPlacer, demand: Demand, pod: Pod) -> Packed:
    """Place a pod for which no new node is made."""
    return "placed" if nodes.active and nodes.place(demand, pod) else "refused"


class ClosingPacking:
    """Packs among the drafts that are open: those that have been closed take no more pods."""

    def __init__(self) -> None:
        self._closed = 0

    def close(self, drafts: int) -> None:
        """Close the drafts whose numbers are below this."""
        self._closed = (1 << drafts) - 1

    def __call__(self, nodes: NodePlacer, drafts: DraftPlacer, demand: Demand, pod: Pod) -> Packed:
        demand.dead |= self._closed
        return emptiest_first(nodes, drafts, demand, pod)
