"""Drift: replaces nodes that are no longer what their pool asks for (DIS-69 to DIS-74).

It comes after emptiness and the static pools. Upstream replaces one node per round, and the next one waits until the
first replacement is up, so that twenty nodes take as long as twenty starts. We replace all that the budget allows at
once, one command per node: each is simulated after those before it, so that no room is counted twice and no replacement
is another command's destination.
"""

from typing import Final

from dovetail.disruption.commands import Found
from dovetail.disruption.methods.rollout_order import in_order
from dovetail.disruption.methods.waves import replace_in_waves
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.rounds import Method, Round
from dovetail.disruption.upkeep.conditions import is_hash_drifted
from dovetail.model import names
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.rules.rollout.nodes import leaves_for_drift

WRITTEN_WITHIN: Final = 2.0  # seconds: conditions carry whole seconds, and a pool's are written in about one


def why_not_drifted(round_: Round, candidate: Candidate) -> Block | None:
    """Why the candidate has not drifted, or is not for this method (DIS-69)."""
    if candidate.is_static:
        return Block(why=WhyNot.STATIC_POOL, message="NodePool is static", event=None)
    return why_stays(round_, candidate)


def why_stays(round_: Round, candidate: Candidate) -> Block | None:
    """Why drift does not replace it: it has not drifted or, if a roll-out goes back, is not at its target."""
    if leaves_for_drift(candidate.claim, round_.snapshot):
        return None
    if candidate.pool.name in round_.snapshot.going_back:
        message = "a NodeRollout goes back, which replaces the nodes at its target alone"
        return Block(why=WhyNot.ROLLOUT, message=message, event=None)
    return Block(why=WhyNot.NOT_DRIFTED, message="NodeClaim is not drifted", event=None)


def drifted_since(candidate: Candidate) -> float:
    condition = candidate.claim.condition(names.DRIFTED)
    return condition.changed if condition else 0.0


def by_age(candidates: tuple[Candidate, ...]) -> list[Candidate]:
    """The earliest drift first, but nodes without any pod to move before all others; equals by name (DIS-70). The nodes
    of a roll-out that goes back have not drifted: of these the newest come first."""
    ordered = sorted(candidates, key=lambda c: (bool(c.pods), drifted_since(c), c.name))
    taken_back = [c for c in ordered if not c.claim.is_true(names.DRIFTED)]
    return sorted(taken_back, key=lambda c: -c.claim.created) + [c for c in ordered if c.claim.is_true(names.DRIFTED)]


def decide_drift(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """Every drifted node that may be disrupted now, or the first that can be replaced (DIS-71)."""
    if round_.settings.profile.replaces_in_waves:
        complete = completed_at(round_, candidates)
        if complete is not None:
            return Found(look_again=complete)
    return replace_in_waves(round_, in_order(round_.snapshot, by_age(candidates)), DisruptionReason.DRIFTED)


def completed_at(round_: Round, candidates: tuple[Candidate, ...]) -> float | None:
    """Until when a wave waits for its last nodes; None if it is complete.

    A changed template drifts all nodes of a pool, but their conditions are written one by one, and a wave of the first
    few would leave the rest to a second one. The wait ends a moment after the latest condition, so that a claim whose
    condition cannot be written delays no others.
    """
    known = {c.claim.name for c in candidates}
    pools = {c.pool.name for c in candidates}
    missing = any(
        m.pool_name in pools
        and m.claim is not None
        and m.claim.name not in known
        and not m.claim.is_true(names.DRIFTED)
        and is_hash_drifted(m.claim, round_.fleet.pools[m.pool_name])
        and not round_.fleet.is_leaving(m)
        for m in round_.fleet.members
    )
    moment = max(drifted_since(c) for c in candidates) + WRITTEN_WITHIN
    return moment if missing and moment > round_.fleet.now else None


DRIFT = Method(
    name="drift",
    title="drift",
    reason=DisruptionReason.DRIFTED,
    kind="",
    why_not=why_not_drifted,
    decide=decide_drift,
)
