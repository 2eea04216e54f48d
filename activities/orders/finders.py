"""The parts of the look for orders: each finder knows one kind of thing that may be unfinished.

A finder answers from one snapshot. Each has its own ports and rules, so that none has to know the cloud, the feature
gates and the rules of all the others.
"""

from typing import Protocol

from dovetail.activities.shared.looks.look import Look
from dovetail.messages.orders import Order
from dovetail.model.nodes import NodeClaim
from dovetail.model.snapshot import Snapshot

MINUTE = 60.0


class Finder(Protocol):
    """Finds what must be done in one respect."""

    async def look(self, snapshot: Snapshot) -> Look[Order]:
        """The orders that are due."""


class Again(Protocol):
    """Finds out whether an order to delete is still right."""

    async def finds_again(self, snapshot: Snapshot, claim: NodeClaim) -> bool:
        """Whether it would order the same of this claim."""
