"""Expiration: replaces an expired node before it is deleted, if its pool or a DisruptionPolicy asks for that.

Upstream no longer does. Without it the Caretaker deletes a claim at the moment of its expiry (DIS-181), and all pods of
nodes of one age are down until new nodes have started. It comes after drift, and budgets, PDBs and do-not-disrupt hold
it up as they do drift: a budget that limits Drifted limits this too. A node of a static pool is replaced from the
template, as when it has drifted; if its pods were only placed elsewhere, its pool would have to launch the missing node
afterwards.
"""

from dataclasses import replace

from dovetail.disruption.commands import Found
from dovetail.disruption.methods.static_drift import replace_from_template
from dovetail.disruption.methods.waves import replace_in_waves
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.rounds import Method, Round
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot


def why_not_expired(round_: Round, candidate: Candidate) -> Block | None:
    """Why the candidate has not expired, or is deleted without a replacement."""
    moment = round_.fleet.replaced_from.get(candidate.claim.name)
    if moment is None:
        words = "Neither NodePool nor NodeClaim asks for a replacement first"
        return Block(why=WhyNot.NOT_ASKED_FOR, message=words, event=None)
    if moment > round_.fleet.now:
        return Block(why=WhyNot.NOT_EXPIRED, message="NodeClaim has not expired", event=None)
    return None


def decide_expired(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """Replace the expired nodes, the earliest expiry first, equals by name; static pools first."""
    ordered = sorted(candidates, key=lambda c: (c.claim.expires_at or 0.0, c.name))
    static = replace_from_template(round_, [c for c in ordered if c.is_static], DisruptionReason.EXPIRED)
    if static.commands:
        return static
    rest = replace_in_waves(round_, [c for c in ordered if not c.is_static], DisruptionReason.EXPIRED)
    return replace(rest, blocks=(*static.blocks, *rest.blocks))


EXPIRATION = Method(
    name="expiration",
    title="expiry, replaced first",
    reason=DisruptionReason.EXPIRED,
    kind="",
    why_not=why_not_expired,
    decide=decide_expired,
)
