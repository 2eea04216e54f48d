"""Which node does a pod join: one that stands, one that is coming, or a new one?

Asked at every try, and the one place where packing is decided: another function of the same form, given to the pass,
packs by cost instead. This one is upstream's (S-95, S-96): existing nodes first, then the emptiest open claim, then the
heaviest pool, whatever the price.
"""

from collections.abc import Callable
from typing import Literal

from dovetail.model.pods import Pod
from dovetail.placement.search.kinds import Kind
from dovetail.placement.search.on_nodes import NodePlacer
from dovetail.placement.search.on_proposed_nodes import ClaimPlacer, ReservationRefusal

Verdict = Literal["placed", "refused", "waits"]
Packing = Callable[[NodePlacer, ClaimPlacer, Kind, Pod], Verdict]


def emptiest_first(nodes: NodePlacer, claims: ClaimPlacer, kind: Kind, pod: Pod) -> Verdict:
    """Upstream's choice. "waits": reserved capacity suits but cannot be had now (S-186)."""
    if (nodes.active and nodes.place(kind, pod)) or claims.place_on_open(kind, pod):
        return "placed"
    try:
        return "placed" if claims.place_on_new(kind, pod) else "refused"
    except ReservationRefusal:
        return "waits"


class ClosingPacking:
    """The same, except that claims may be closed: no pod joins them any more."""

    def __init__(self) -> None:
        self._closed = 0

    def close(self, claims: int) -> None:
        """Close the first so many claims of the pass."""
        self._closed = (1 << claims) - 1

    def __call__(self, nodes: NodePlacer, claims: ClaimPlacer, kind: Kind, pod: Pod) -> Verdict:
        """As `emptiest_first`, among what is open."""
        kind.dead |= self._closed
        return emptiest_first(nodes, claims, kind, pod)
