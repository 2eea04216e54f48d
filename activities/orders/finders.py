"""What a look over everything consists of: each looker knows one kind of thing that may be undone.

A looker answers from one snapshot, and says when it wants to look again although nothing has changed. The trap avoided:
one class that knows the cloud, the gates and the rules of all of them.
"""

from typing import Protocol

from dovetail.messages.orders import Order
from dovetail.model.snapshot import Snapshot

MINUTE = 60.0


class Finder(Protocol):
    """Finds what must be done in one respect."""

    async def look(self, snapshot: Snapshot) -> tuple[list[Order], float]:
        """The orders, and the moment to look again."""
