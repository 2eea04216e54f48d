"""What a cloud warns of: instances that it will take away, stop or repair.

Asked by the workflow Interruptions, which makes each warning durable before it is acknowledged. The trap avoided: a
warning that is acknowledged first; a process killed at that moment would have lost it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from core.model.nodes import NodeClaim

InterruptionReason = Literal[
    "spot_interrupted",
    "rebalance_recommendation",
    "scheduled_change",
    "instance_stopped",
    "instance_terminated",
    "capacity_reservation_interrupted",
    "instance_status",
    "system_status",
    "event_status",
    "no_op",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """One warning about some instances. Equal warnings have one `id`, however often they come."""

    kind: Literal["interruption"] = "interruption"
    id: str
    reason: InterruptionReason
    instances: tuple[str, ...]  # the cloud's own ids: the last part of a providerID
    at: float  # when it happened, as the cloud says; 0: it does not say

    @property
    def ends_instances(self) -> bool:
        """Whether their claims are deleted for it."""
        return self.reason not in ("rebalance_recommendation", "no_op")

    @property
    def forceful(self) -> bool:
        """Whether the drain must not wait for anything: the instance is broken."""
        return self.reason in ("instance_status", "system_status")


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
