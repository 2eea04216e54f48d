"""How long a node is left alone after its disruption was undone.

A replacement that can never start must not be launched again every few seconds, and a disruption that a person has
cancelled must not begin again at once. The rest is an annotation of the claim, so that it survives a restart and the
loss of the database. It holds every method of disruption but one: a node that has become empty since may be deleted as
empty, unless that is what was undone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dovetail.disruption.nodes.written_requests import UNNAMED, cancel_reason, cancelled_by
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import CalledOff, memory_of
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.digits import integer
from dovetail.termination.hooks import denial

if TYPE_CHECKING:  # a person's order reads one claim
    from dovetail.model.snapshot import Snapshot

AFTER_FAILURE: Final = Backoff(first=30.0, longest=1800.0)
AFTER_CANCEL: Final = Backoff(first=300.0, longest=1800.0)  # a person wants to look at the node
FORGIVEN: Final = 3600.0  # a failure this long after the end of a rest counts as the first
_CANCELLED: Final = "/cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Until when the node rests (seconds since the epoch), how many rests in a row this is, for which reason, and
    whether a person called its disruption off."""

    until: float = 0.0
    count: int = 0
    reason: str = ""
    cancelled: bool = False


def rest_text(claim: NodeClaim, now: float, reason: str, *, cancelled: bool) -> str:
    """The annotation of the rest that begins now."""
    last = read_rest(claim)
    count = last.count + 1 if now - last.until < FORGIVEN else 1
    rests = AFTER_CANCEL if cancelled else AFTER_FAILURE
    return f"{now + rests.pause(count):.0f}/{count}/{reason}{_CANCELLED if cancelled else ''}"


def rest_by_order(claim: NodeClaim, now: float) -> str:
    """The annotation of the rest from every disruption that a person's cancel begins. While a rest after a cancel goes
    on, as the undone disruption's own, it begins again and grows no longer."""
    last = read_rest(claim)
    if last.until <= now or not last.cancelled:
        return rest_text(claim, now, DisruptionReason.EMPTY, cancelled=True)
    until = max(last.until, now + AFTER_CANCEL.pause(last.count))
    return f"{until:.0f}/{last.count}/{DisruptionReason.EMPTY}{_CANCELLED}"


def read_rest(claim: NodeClaim) -> Rest:
    """The claim's rest; if none can be read, one that is long over."""
    text = claim.annotations.get(names.REST, "")
    until, count, reason = (*text.removesuffix(_CANCELLED).split("/", 2), "", "", "")[:3]
    moment, number = integer(until), integer(count)
    if moment is None or number is None or min(moment, number) < 0:
        return Rest()
    return Rest(until=float(moment), count=number, reason=reason, cancelled=text.endswith(_CANCELLED))


def called_off(claim: NodeClaim, now: float) -> CalledOff | None:
    """None if a plan may be carried out on it: nobody has called its disruption off, and no rest applies to every
    reason, as the one that follows this does."""
    if names.CANCEL in claim.annotations:
        return CalledOff(why=cancel_reason(claim), by=cancelled_by(claim) or UNNAMED)
    hook = denial(claim)
    if hook is not None:
        return CalledOff(why=hook.words, by=f"hook {hook.name}")
    rest = read_rest(claim)
    if rest.until <= now or rest.reason != DisruptionReason.EMPTY:
        return None
    return memory_of(claim.annotations).called_off or CalledOff(why="it rests", by="")


def reboot_called_off(claim: NodeClaim) -> CalledOff | None:
    """Who calls off that its instance is rebooted, before the cloud is asked: none begins in a rest that applies to it,
    so one that lasts longer than its beginning was ordered since."""
    began = claim.condition(names.REBOOTING)
    if began is None or not claim.is_rebooting or claim.is_reboot_ordered:
        return None
    return called_off(claim, began.changed)


def resting(snapshot: "Snapshot") -> Mapping[str, float]:
    """The nodes that rest now, and until when."""
    rests = {c.node_name: read_rest(c) for c in snapshot.claims.values() if names.REST in c.annotations and c.node_name}
    return {node: rest.until for node, rest in rests.items() if rest.until > snapshot.now}
