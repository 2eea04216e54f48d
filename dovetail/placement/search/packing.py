"""Which node does a pod join: one that stands, one that is coming, or a new one?

Asked at every try, and the one place where packing is decided: another function of the same form, given to the pass,
packs by cost instead. This one is upstream's (S-95, S-96): existing nodes first, then the emptiest open draft, then the
heaviest pool, whatever the price.
"""

from collections.abc import Callable
from typing import Literal

from dovetail.model.pods import Pod
from dovetail.placement.search.demands import Demand
from dovetail.placement.search.on_nodes import NodePlacer
from dovetail.placement.search.on_proposed_nodes import DraftPlacer, ReservationRefusal

Verdict = Literal["placed", "refused", "waits"]
Packing = Callable[[NodePlacer, DraftPlacer, Demand, Pod], Verdict]


def emptiest_first(nodes: NodePlacer, drafts: DraftPlacer, demand: Demand, pod: Pod) -> Verdict:
    """Upstream's choice. "waits": reserved capacity suits but cannot be had now (S-186)."""
    if (nodes.active and nodes.place(demand, pod)) or drafts.place_on_open(demand, pod):
        return "placed"
    try:
        return "placed" if drafts.place_on_new(demand, pod) else "refused"
    except ReservationRefusal:
        return "waits"


class ClosingPacking:
    """The same, except that drafts may be closed: no pod joins them any more."""

    def __init__(self) -> None:
        self._closed = 0

    def close(self, drafts: int) -> None:
        """Close the first so many drafts of the pass."""
        self._closed = (1 << drafts) - 1

    def __call__(self, nodes: NodePlacer, drafts: DraftPlacer, demand: Demand, pod: Pod) -> Verdict:
        """As `emptiest_first`, among what is open."""
        demand.dead |= self._closed
        return emptiest_first(nodes, drafts, demand, pod)
