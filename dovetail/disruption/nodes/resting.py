"""How long is a node left alone after its disruption was undone?

Kept on the object, so that neither a restart nor a lost database tries a node again at once whose replacement never
came up, or that a person has just called off. The rest is for that one reason: a node that has become empty meanwhile
may go. The trap avoided: a replacement that can never start, bought anew every few seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.nodes import NodeClaim
from dovetail.model.pod_rules import is_reschedulable
from dovetail.model.snapshot import Snapshot

AFTER_FAILURE: Final = 30.0  # the first rest; each further one is twice as long
AFTER_CANCEL: Final = 300.0  # a person wants to look at the node
LONGEST: Final = 1800.0
FORGIVEN: Final = 3600.0  # so long after a rest has ended, the next failure counts as the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Until when (seconds since the epoch), the how-manieth, and what the disruption was for."""

    until: float = 0.0
    count: int = 0
    reason: str = ""


def rest_text(claim: NodeClaim, now: float, reason: str, *, cancelled: bool) -> str:
    """The annotation's value."""
    last = read_rest(claim)
    count = last.count + 1 if now - last.until < FORGIVEN else 1
    first = AFTER_CANCEL if cancelled else AFTER_FAILURE
    return f"{now + min(LONGEST, first * 2 ** min(count - 1, 16)):.0f}/{count}/{reason}"


def read_rest(claim: NodeClaim) -> Rest:
    """The claim's rest; all zeros where there is none or none that can be read."""
    until, count, reason = (*claim.annotations.get(names.REST, "").split("/", 2), "", "", "")[:3]
    if not (until.isdecimal() and count.isdecimal()):
        return Rest()
    return Rest(until=float(until), count=int(count), reason=reason)


def resting(snapshot: Snapshot) -> Mapping[str, float]:
    """The nodes that rest now, and until when. One that is empty rests only from being disrupted as empty."""
    rests = {c.node_name: read_rest(c) for c in snapshot.claims.values() if names.REST in c.annotations and c.node_name}
    rests = {node: rest for node, rest in rests.items() if rest.until > snapshot.now}
    if not rests:
        return {}
    used = {pod.node_name for pod in snapshot.pods.values() if pod.node_name in rests and is_reschedulable(pod)}
    return {n: r.until for n, r in rests.items() if n in used or r.reason == DisruptionReason.EMPTY}
