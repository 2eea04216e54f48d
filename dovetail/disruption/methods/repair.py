"""Repair: replaces unhealthy nodes, or has their instances rebooted, by the cloud's repair policies (GCR-20 to GCR-24).

It comes before all that only makes the cluster better. One node in a decision: the one with the highest score by
priority and age first. The replacement is up before the node is drained, for all its pods, and budgets with the reason
Unhealthy pace it. Where more than a fifth of a NodePool is unhealthy none of it is repaired.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from dovetail.disruption.commands import Command, Found, both
from dovetail.disruption.methods.static_drift import replace_from_template
from dovetail.disruption.methods.waves import replace_one
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.rounds import Method, Round, out_of_budget
from dovetail.lifecycle.faults import SHARE, is_kept_from_repair, too_many
from dovetail.model import names
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.notices.decisions import decision_notice
from dovetail.notices.notice import Notice

REASON = DisruptionReason.UNHEALTHY


def why_not_repaired(round_: Round, candidate: Candidate) -> Block | None:
    """Why it is not to be repaired, or may not be."""
    fault, node = round_.fleet.faults.get(candidate.name), candidate.member.node
    if fault is None or node is None:
        return Block(why=WhyNot.NOT_UNHEALTHY, message="Node is not to be repaired", event=None)
    if is_kept_from_repair(node, candidate.claim):
        message = f'Repair is blocked through the "{names.DO_NOT_REPAIR}" annotation'
        return Block(why=WhyNot.KEPT_FROM_REPAIR, message=message)
    own = candidate if candidate.fault is not None else _repairable(round_, candidate)
    if own.held is not None and fault.bound(own.claim) is None:
        message = "Repair requires a termination grace period to bypass blocking pods"
        return Block(why=WhyNot.REPAIR_UNBOUNDED, message=message)
    return None


def _repairable(round_: Round, candidate: Candidate) -> Candidate:
    """As repair sees a node that another method's screening has found."""
    return next((each for each in round_.repairable if each.name == candidate.name), candidate)


def decide_repair(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """The first node that may be repaired."""
    allowed = round_.allowances(REASON)
    tripped = cache(lambda pool: too_many(round_.snapshot, pool, round_.snapshot.repair_policies))
    found = Found()
    for candidate in sorted(candidates, key=lambda c: (-_score(c), c.cost, c.name)):
        if tripped(candidate.pool.name):
            found = _more(found, _tripped(candidate))
        elif candidate.member.is_initialized and not allowed[candidate.pool.name].left:
            found = _more(found, Found(blocks=(out_of_budget(round_, candidate, REASON),)))
        else:
            found = _more(found, _repaired(round_, candidate))
        if found.commands or found.error:
            break
    return found


def _score(candidate: Candidate) -> float:
    return candidate.fault.score if candidate.fault is not None else 0.0


def _repaired(round_: Round, candidate: Candidate) -> Found:
    if candidate.reboots:
        return Found(commands=(Command(reason=REASON, candidates=(candidate,), reboots=True),))
    if candidate.is_static:
        return replace_from_template(round_, [candidate], REASON, paced=candidate.member.is_initialized)
    return replace_one(round_, candidate, REASON)


def _more(found: Found, more: Found) -> Found:
    blocks, notices = (*found.blocks, *more.blocks), (*found.notices, *more.notices)
    return replace(found, commands=more.commands, blocks=blocks, notices=notices, error=more.error)


def _tripped(candidate: Candidate) -> Found:
    pool = candidate.pool.name
    message = f'more than {SHARE}% of nodes in nodepool "{pool}" are unhealthy'
    block = Block(why=WhyNot.TOO_MANY_UNHEALTHY, message=message, event=None)
    notices: Sequence[Notice] = (
        *both(candidate, "NodeRepairBlocked", message),
        decision_notice("NodePool", pool, "NodeRepairBlocked", message),
    )
    return Found(
        blocks=((candidate, block),), notices=tuple(replace(each, type="Warning", window=900.0) for each in notices)
    )


REPAIR = Method(
    name="repair",
    title="repair",
    reason=REASON,
    kind="",
    why_not=why_not_repaired,
    decide=decide_repair,
)
