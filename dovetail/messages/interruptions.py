"""A cloud's warning about instances, as it crosses into histories.

The same warnings have one workflow id, so that one warning is not answered twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from dovetail.messages.subjects import ClaimRef
from dovetail.model.names import CAPACITY_RESERVED, CAPACITY_SPOT

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
Warned = tuple[str, InterruptionReason]  # the cloud's own id of an instance, and what is said of it

# Capacity that is taken back: nothing else shows it before the instance ends.
TAKEN_BACK: Final[Mapping[InterruptionReason, str]] = {
    "spot_interrupted": CAPACITY_SPOT,
    "capacity_reservation_interrupted": CAPACITY_RESERVED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """One warning about some instances. Equal warnings have one `id`, however often they come."""

    kind: Literal["interruption"] = "interruption"
    id: str
    reason: InterruptionReason
    instances: tuple[str, ...]  # the cloud's own ids: the last part of a providerID
    at: float  # when the cloud sent it, by the queue's own clock where it comes by one; 0: nobody says

    @property
    def ends_instances(self) -> bool:
        """Whether their claims are deleted for it (AWS-134)."""
        return self.reason not in ("rebalance_recommendation", "no_op")

    @property
    def forceful(self) -> bool:
        """Whether the drain must not wait for anything: the instance is broken (AWS-138)."""
        return self.reason in ("instance_status", "system_status")


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptionsInput:
    cluster: str
    generation: int = 0
    max_history: int = 0
    cluster_uid: str = ""  # of its namespace kube-system


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerInput:
    """For AnswerInterruption: the warnings that came together."""

    cluster: str
    interruptions: tuple[Interruption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What an answer met: the claims of the warned instances, and those of them that it has deleted."""

    interruption: Interruption
    claims: tuple[ClaimRef, ...] = ()
    nodes: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()  # names
