"""What a cloud warns of: instances that it will take away, stop or repair.

The trap avoided: a warning that is acknowledged first; a process killed at that moment would have lost it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dovetail.messages.interruptions import Interruption
from dovetail.model.nodes import NodeClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the queue. Without an interruption it says nothing that we know: `problem` tells why."""

    receipt: str
    interruption: Interruption | None = None
    problem: str = ""


class Interruptions(Protocol):
    """Warnings."""

    async def receive(self) -> tuple[Message, ...]:
        """Wait up to 20 s for messages, at most ten. They come again after 20 s unless acknowledged."""

    async def acknowledge(self, receipts: Sequence[str]) -> None:
        """Delete messages; repeating is safe."""

    async def troubles(self) -> tuple[Interruption, ...]:
        """What the cloud's own checks have found of instances, at this moment."""

    async def heed(self, interruption: Interruption, claim: NodeClaim) -> None:
        """Remember what it says of the offering that the claim was bought from, before anybody plans again."""
