"""What steps are asked and what they answer: the small words that cross between activities and workflows.

Everything here goes into histories: names, UIDs, numbers and reasons, never an object's body. Each outcome is told from
the others by `kind`, because the converter would otherwise decode into the first variant that fits.
"""

from dataclasses import dataclass
from typing import Literal

from dovetail.messages.writes import Write


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRef:
    """One claim for its whole life. Another UID under the same name means that this one is gone."""

    name: str
    uid: str
    pool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOutcome:
    """How a launch ended.

    launched: the claim says so and has its providerID. no_capacity, class_not_ready: nothing was bought and the claim
    is to go; timed_out: past the launch deadline (L-41). deleting: deleted meanwhile. gone: there is no such claim.
    """

    kind: Literal["launched", "no_capacity", "class_not_ready", "deleting", "gone", "timed_out"]
    message: str = ""
    provider_id: str = ""
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOutcome:
    """How the wait for a node ended: done, the claim was deleted, it is gone, or its time ran out."""

    kind: Literal["done", "deleting", "gone", "timed_out"]
    message: str = ""
    node: str = ""
    unmarked: bool = False  # the node came without the taint that keeps pods off until it is registered (L-22)
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """What the termination of a claim works on, fixed at its start. Deadline: seconds since the epoch, or none."""

    claim: ClaimRef
    provider_id: str = ""
    nodes: tuple[str, ...] = ()
    node_uids: tuple[str, ...] = ()
    deadline: float | None = None
    reason: str = ""  # the DisruptionReason, or Forceful Termination (T-29)
    instance_gone: bool = False  # the drain is skipped (T-5)
    claim_gone: bool = False  # nothing to do
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """A step that has nothing to say but that it is done, and what it wrote."""

    message: str = ""
    writes: tuple[Write, ...] = ()
