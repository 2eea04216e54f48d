"""By when must a node's pods be gone?

Asked at the start of a departure and at each look of the drain. The deadline is the deletion plus the claim's
termination grace period, written on the claim once and never moved later (LIF-51, TRM-6, DUR-30). An annotation that
cannot be read is reported and ignored; upstream stops the termination for it.
"""

from dovetail.model.names import TERMINATION_DEADLINE
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.time import format_time, time_or_none


def written_deadline(claim: NodeClaim) -> float | None:
    """The deadline on the claim; None where it has none or an unreadable one."""
    return time_or_none(claim.annotations.get(TERMINATION_DEADLINE, ""))


def unreadable_deadline(claim: NodeClaim) -> str | None:
    """The annotation's text where it cannot be read."""
    text = claim.annotations.get(TERMINATION_DEADLINE)
    return text if text is not None and time_or_none(text) is None else None


def deadline_of(claim: NodeClaim) -> float | None:
    """The moment by which its pods must be gone: as written, else deletion plus grace; None without a grace."""
    written = written_deadline(claim)
    if written is not None:
        return written
    if claim.termination_grace is None or claim.deleting_since is None:
        return None
    return float(int(claim.deleting_since + claim.termination_grace))


def deadline_to_write(claim: NodeClaim) -> str | None:
    """The annotation's value where it must be written; one that is there is never changed (LIF-51)."""
    if TERMINATION_DEADLINE in claim.annotations:
        return None
    deadline = deadline_of(claim)
    return None if deadline is None else format_time(deadline)


def tighter(one: float | None, other: float | None) -> float | None:
    """The earlier of two deadlines; None is no deadline."""
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
