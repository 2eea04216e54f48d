"""What a cloud announces: instances that it will take away, stop or repair.

A message is acknowledged only after it was acted upon: a process that is killed in between must not lose it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from dovetail.messages.interruptions import Interruption, Warned
from dovetail.model.nodes import NodeClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the queue. One that is not understood has no interruption; `problem` says why."""

    receipt: str
    interruption: Interruption | None = None
    problem: str = ""


class Interruptions(Protocol):
    async def receive(self) -> tuple[Message, ...]:
        """Wait up to 20 s for messages, at most ten. They come again after 20 s unless acknowledged."""

    async def try_reading(self) -> None:
        """Ask as `receive` does and take nothing; the failure is the one that `receive` meets."""

    async def acknowledge(self, receipts: Sequence[str]) -> None:
        """Delete messages; repeating is safe."""

    async def troubles(self) -> tuple[Interruption, ...]:
        """What the cloud's own checks of instances find at this moment."""

    async def borne_out(self, warned: Collection[Warned]) -> frozenset[Warned]:
        """The warnings that the cloud itself confirms when it is asked now. The author of the warning is not
        believed."""

    async def learn_from(self, interruption: Interruption, claim: NodeClaim) -> None:
        """Remember what it says of the claim's offering, before the next decision."""
