"""What steps work on: one claim for its whole life, and all that leaves with it.

An empty text stands for "none": stored histories hold it.
"""

from dataclasses import dataclass

from dovetail.messages.writes import Write


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRef:
    """One claim for its whole life. Another UID under the same name means that this one is gone."""

    name: str
    uid: str
    pool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """What the termination of a claim works on, fixed at its start. Deadline: seconds since the epoch, or none."""

    claim: ClaimRef
    provider_id: str = ""
    nodes: tuple[str, ...] = ()
    node_uids: tuple[str, ...] = ()
    deadline: float | None = None
    reason: str = ""  # the DisruptionReason, or Forceful Termination (TRM-29)
    instance_gone: bool = False  # the drain is skipped (TRM-5)
    claim_gone: bool = False  # nothing to do
    writes: tuple[Write, ...] = ()
    tainted: float | None = None  # since when its nodes carry the taint (TRM-17)
    is_final: bool = False  # the claim is deleted: the drain's step may do the next one's work, and not before that
    hands_over: bool = False  # the workflow tells the end of the instance that nothing is left on the nodes
    emptied: bool = False  # drained, and volumes are off, which the claim does not say yet
    # For the record: its claim is gone one day.
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    launched: float | None = None
    expires: float | None = None
    on_demand_since: float | None = None  # of an instance that was launched into a reservation
    because: str = ""  # an Ending, or the disruption's reason; empty in histories of 0.1.0
    because_words: str = ""
