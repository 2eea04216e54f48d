"""Requests: replaces nodes that a person has asked to be replaced, by an annotation on the NodeClaim.

It works as drift does: first a new node if the pods need one, then the drain, within the budget for Drifted, respecting
PDBs and do-not-disrupt. A node with a termination grace period, past whose end its pods would leave without a spare, is
drained before its delete, with which that period begins. A node that may not leave yet keeps its annotation and is
considered again in every round.

A request to replace a node at once waits for no new node and for no budget of its NodePool: the node is drained, as its
PDBs permit, and only then deleted, so that the request can be called off until its last pod has left.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dovetail.disruption.commands import Command, Found
from dovetail.disruption.methods.static_drift import replace_from_template
from dovetail.disruption.methods.waves import replace_in_waves
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.nodes.written_requests import is_asked_for_now, replace_asked_by, replace_reason
from dovetail.disruption.plan import first_that_fit
from dovetail.disruption.rounds import Method, Round
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.notices.decisions import decision_notice
from dovetail.notices.notice import Notice


def why_not_requested(_: Round, candidate: Candidate) -> Block | None:
    """Nobody has asked for it."""
    if names.REPLACE in candidate.claim.annotations:
        return None
    return Block(why=WhyNot.NOT_REQUESTED, message="Nobody has asked for its replacement", event=None)


def decide_requested(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """First the requests to act at once; then by name, static pools before the others."""
    every = sorted(candidates, key=lambda c: c.name)
    urgent = [c for c in every if is_asked_for_now(c.claim)]
    if urgent:
        return _at_once(round_, urgent)
    return _in_turn(round_, every)


def _at_once(round_: Round, urgent: Sequence[Candidate]) -> Found:
    reason = DisruptionReason.REQUESTED
    commands = [Command(reason=reason, candidates=(each,), at_once=True) for each in urgent]
    carried, blocks = first_that_fit(round_, commands)
    found = Found(commands=carried, blocks=blocks)
    return replace(found, notices=tuple(_answers(urgent, found)))


def _in_turn(round_: Round, ordered: Sequence[Candidate]) -> Found:
    reason = DisruptionReason.REQUESTED
    found = replace_from_template(round_, [c for c in ordered if c.is_static], reason)
    if not found.commands:
        rest = replace_in_waves(round_, [c for c in ordered if not c.is_static], reason)
        found = replace(rest, blocks=(*found.blocks, *rest.blocks))
    return replace(found, notices=(*found.notices, *_answers(ordered, found)))


def _answers(asked: Sequence[Candidate], found: Found) -> list[Notice]:
    """The answer to the person who asked: that it begins, or what it waits for."""
    begun = {c.name for command in found.commands for c in command.candidates}
    waits = {candidate.name: block.message for candidate, block in found.blocks}
    return [
        _begins(each.claim) if each.name in begun else waits_notice(each.claim, waits.get(each.name, ""))
        for each in asked
    ]


def _asked(claim: NodeClaim) -> str:
    """Why, and by whom."""
    who = replace_asked_by(claim)
    return f"{replace_reason(claim)} (by {who})" if who else replace_reason(claim)


def _begins(claim: NodeClaim) -> Notice:
    return decision_notice("NodeClaim", claim.name, "ReplacementBegins", f"It is being replaced: {_asked(claim)}")


def waits_notice(claim: NodeClaim, waits_for: str) -> Notice:
    """What a request waits for, whatever holds the node."""
    message = f"It is to be replaced and waits its turn: {waits_for or 'others go first'} ({_asked(claim)})"
    return decision_notice("NodeClaim", claim.name, "ReplacementWaits", message)


REQUESTS: Final = Method(
    name="requests",
    title="a person's request",
    reason=DisruptionReason.REQUESTED,
    kind="",
    why_not=why_not_requested,
    decide=decide_requested,
)
