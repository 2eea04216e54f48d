"""Emptiness: nodes that nobody would miss (D-63 to D-68).

Asked first in every round. Upstream simulates nothing here; what makes it safe is that a node on which a pod is
expected is nominated or promised, and the second look after 15 s. We ask besides where pods without a place would go,
when there are any. The trap avoided: a node is empty by the cost of its pods, not by
their number.
"""

from typing import Final

from dovetail.disruption.commands import Command, Found
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.rounds import Method, Purse, Round, out_of_budget
from dovetail.model.disruption_reasons import DisruptionReason, WhyNot

AWAITED: Final = Block(why=WhyNot.PROMISED, message="Node is where pods without a place will go", event="")


def why_not_empty(round_: Round, candidate: Candidate) -> Block | None:
    """D-63, in this order."""
    if candidate.is_static:
        return Block(why=WhyNot.STATIC_POOL, message="NodePool is static", event="")
    if candidate.pool.disruption.consolidate_after is None:
        message = f'NodePool "{candidate.pool.name}" has consolidation disabled'
        return Block(why=WhyNot.CONSOLIDATION_OFF, message=message, event="Unconsolidatable")
    if round_.buffer_pods.get(candidate.name, 0) > 0:
        message = f'Node "{candidate.name}" has buffer pods'
        return Block(why=WhyNot.BUFFER_PODS, message=message, event="Unconsolidatable")
    if not candidate.is_empty:
        return Block(why=WhyNot.NOT_EMPTY, message="Node is not empty", event="")
    if not round_.is_quiet(candidate):
        return Block(why=WhyNot.NOT_QUIET, message="consolidateAfter has not elapsed", event="")
    return None


def by_ratio(candidates: tuple[Candidate, ...]) -> list[Candidate]:
    """D-98: the most saved per disturbance first; equals by name."""
    return sorted(candidates, key=lambda c: (-c.ratio, c.name))


def decide_empty(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """D-64: all that the allowances permit, in one command."""
    purse, reason = Purse.of(round_.allowances(DisruptionReason.EMPTY)), DisruptionReason.EMPTY
    taken: list[Candidate] = []
    blocks: list[tuple[Candidate, Block]] = []
    awaited = awaited_nodes(round_)
    for candidate in by_ratio(candidates):
        if candidate.name in awaited:
            blocks.append((candidate, AWAITED))
        elif not purse.spend(candidate.pool.name):
            blocks.append(out_of_budget(candidate, reason))
        elif len(taken) < round_.settings.most_targets:
            taken.append(candidate)
    commands = (Command(reason=reason, candidates=tuple(taken)),) if taken else ()
    return Found(commands=commands, blocks=tuple(blocks), constrained=purse.constrained)


def awaited_nodes(round_: Round) -> frozenset[str]:
    """Ours: empty nodes where pods of leaving nodes, or pending ones, are about to land."""
    if not round_.settings.profile.keeps_waiting_pods_apart or not round_.fleet.has_homeless:
        return frozenset()
    return round_.simulator.spoken_for


EMPTINESS = Method(
    name="emptiness",
    title="empty",
    reason=DisruptionReason.EMPTY,
    eventual=False,
    kind="empty",
    why_not=why_not_empty,
    decide=decide_empty,
)
