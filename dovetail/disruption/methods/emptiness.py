"""Emptiness: deletes nodes on which no pod needs to run (DIS-63 to DIS-68).

It is the first method of every round. What disturbing its pods costs makes a node empty, not their number. Upstream
simulates nothing here; it relies on the second look after 15 s, and on nominations of the nodes on which pods are
expected. If pods wait for room, we also work out on which nodes they will be placed, and keep those.
"""

from typing import Final

from dovetail.disruption.commands import Command, Found
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.plan import PlanSize
from dovetail.disruption.rounds import Method, RemainingAllowances, Round, out_of_budget
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot

AWAITED: Final = Block(why=WhyNot.PROMISED, message="Node is where pods without a place will go", event=None)


def why_not_empty(round_: Round, candidate: Candidate) -> Block | None:
    """Why the candidate is not empty, or is left alone although it is; in this order (DIS-63)."""
    if candidate.is_static:
        return Block(why=WhyNot.STATIC_POOL, message="NodePool is static", event=None)
    if candidate.pool.disruption.consolidate_after is None:
        message = f'NodePool "{candidate.pool.name}" has consolidation disabled'
        return Block(why=WhyNot.CONSOLIDATION_OFF, message=message, event="Unconsolidatable")
    if round_.buffer_pods.get(candidate.name, 0) > 0:
        message = f'Node "{candidate.name}" has buffer pods'
        return Block(why=WhyNot.BUFFER_PODS, message=message, event="Unconsolidatable")
    if not candidate.is_empty:
        return Block(why=WhyNot.NOT_EMPTY, message="Node is not empty", event=None)
    if not round_.is_quiet(candidate):
        return Block(why=WhyNot.NOT_QUIET, message="consolidateAfter has not elapsed", event=None)
    return None


def by_ratio(candidates: tuple[Candidate, ...]) -> list[Candidate]:
    """The highest price per disturbance first, equals by name (DIS-98)."""
    return sorted(candidates, key=lambda c: (-c.ratio, c.name))


def decide_empty(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """All empty nodes that the allowances permit, in one command (DIS-64)."""
    reason = DisruptionReason.EMPTY
    left = RemainingAllowances.of(round_.allowances(reason))
    taken: list[Candidate] = []
    blocks: list[tuple[Candidate, Block]] = []
    awaited, size = awaited_nodes(round_), PlanSize(round_)
    for candidate in by_ratio(candidates):
        if candidate.name in awaited:
            blocks.append((candidate, AWAITED))
        elif not left.take(candidate.pool.name):
            blocks.append(out_of_budget(round_, candidate, reason))
        elif size.takes_target(candidate) and len(taken) < round_.settings.most_targets:
            taken.append(candidate)
    commands = (Command(reason=reason, candidates=tuple(taken)),) if taken else ()
    return Found(commands=commands, blocks=tuple(blocks))


def awaited_nodes(round_: Round) -> frozenset[str]:
    """The nodes that pending pods and pods of leaving nodes are about to need. Karpenter does not ask this."""
    if not round_.settings.profile.keeps_waiting_pods_apart or not round_.fleet.has_waiting_pods:
        return frozenset()
    return round_.simulator.destinations


EMPTINESS = Method(
    name="emptiness",
    title="empty",
    reason=DisruptionReason.EMPTY,
    kind="empty",
    why_not=why_not_empty,
    decide=decide_empty,
)
