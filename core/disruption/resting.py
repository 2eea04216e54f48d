"""How long is a node left alone after its disruption was undone?

Asked by the step that takes a mark off, which writes the rest on the claim, and by the planner, which reads it. Kept on
the object, so that neither a restart nor a lost database tries a node again at once whose replacement never came up, or
that a person has just called off. The trap avoided: a replacement that can never start, bought anew every few seconds.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from core.model import names
from core.model.nodes import NodeClaim

AFTER_FAILURE: Final = 30.0  # the first rest; each further one is twice as long
AFTER_CANCEL: Final = 300.0  # a person wants to look at the node
LONGEST: Final = 1800.0
FORGIVEN: Final = 3600.0  # so long after a rest has ended, the next failure counts as the first


def rest_text(claim: NodeClaim, now: float, *, cancelled: bool) -> str:
    """The annotation's value: until when (seconds since the epoch) and the how-manieth rest it is."""
    until, count = read_rest(claim)
    count = count + 1 if now - until < FORGIVEN else 1
    first = AFTER_CANCEL if cancelled else AFTER_FAILURE
    return f"{now + min(LONGEST, first * 2 ** min(count - 1, 16)):.0f}/{count}"


def read_rest(claim: NodeClaim) -> tuple[float, int]:
    """Until when, and the how-manieth; zeros where there is none or none that can be read."""
    until, _, count = claim.annotations.get(names.REST, "").partition("/")
    if not (until.isdecimal() and count.isdecimal()):
        return 0.0, 0
    return float(until), int(count)


def resting(claims: Iterable[NodeClaim], now: float) -> Mapping[str, float]:
    """The nodes that rest now, and until when."""
    found = {c.node_name: read_rest(c)[0] for c in claims if names.REST in c.annotations and c.node_name}
    return {node: until for node, until in found.items() if until > now}
