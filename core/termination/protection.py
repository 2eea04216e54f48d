"""Does a pod ask not to be disrupted, and until when?

Asked by the drain, each turn (T-24). `"true"` protects always; a duration protects that long from the pod's start; any
other text protects nothing and is reported, because a typing error must not hold a node for ever.
"""

from dataclasses import dataclass
from typing import Literal

from core.model.durations import DurationError, parse_seconds
from core.model.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Unprotected:
    """The pod may be evicted. `ended`: a protection that it had has run out."""

    kind: Literal["unprotected"] = "unprotected"
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """The pod may not be evicted; `until` None is without end, or unknown because the pod has not started."""

    kind: Literal["protected"] = "protected"
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """The annotation protects nothing, and why."""

    kind: Literal["unreadable"] = "unreadable"
    message: str


Protection = Unprotected | Protected | Unreadable


def protection(pod: Pod, now: float) -> Protection:
    """What the annotation karpenter.sh/do-not-disrupt means for the pod now."""
    text = pod.do_not_disrupt
    if text is None:
        return Unprotected()
    if text == "true":
        return Protected()
    try:
        seconds = parse_seconds(text)
    except DurationError as error:
        return Unreadable(message=f"do-not-disrupt is neither true nor a duration: {error}")
    if seconds <= 0:
        return Unreadable(message=f"do-not-disrupt is not a positive duration: {text!r}")
    if pod.started is None:
        return Protected()  # fail safe: its time has not begun
    until = pod.started + seconds
    return Protected(until=until) if now < until else Unprotected(ended=True)
