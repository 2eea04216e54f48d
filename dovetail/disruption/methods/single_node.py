"""Single-node consolidation: one node, for no replacement or a cheaper one (DIS-116 to DIS-119).

It is the last method. It takes the first node that can be consolidated, not the best. Candidates are ordered by price
per disturbance, and the pools take turns, so that a large pool does not use up the time of all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dovetail.disruption.balanced import moves_of
from dovetail.disruption.commands import Command, Found, Move, both
from dovetail.disruption.methods.consolidation import CANT_REPLACE, NO_TIME, compute, why_not_consolidatable
from dovetail.disruption.methods.emptiness import by_ratio
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.rounds import Method, RemainingAllowances, Round, out_of_budget
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.notices.notice import Notice

NOT_WORTH_IT: Final = Block(why=WhyNot.SCORE_TOO_LOW, message="Not worth the disturbance", event=None)


def pools_alternating(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The first of each pool, then the second of each, and so on; pools in the order of their first (DIS-116)."""
    by_pool: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_pool.setdefault(candidate.pool.name, []).append(candidate)
    queues = list(by_pool.values())
    longest = max((len(queue) for queue in queues), default=0)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]


@dataclass(slots=True)
class _Search:
    """What trying one candidate after another has found so far."""

    round_: Round
    blocks: list[tuple[Candidate, Block]] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)

    def why_not_tried(self, candidate: Candidate) -> Block | None:
        """What rules a candidate out before any simulation."""
        if not self.round_.scales.is_worth_simulating(candidate):
            return NOT_WORTH_IT
        ruled_out = self.round_.settings.profile.rules_out_by_price and self.round_.simulator.is_hopeless((candidate,))
        return CANT_REPLACE if ruled_out else None

    def command_for(self, candidate: Candidate) -> Command | None:
        """The command for this candidate, if there is one and its pool approves of it."""
        computed = compute(self.round_, (candidate,))
        self.notices.extend(computed.notices)
        if computed.block is not None:
            self.blocks.append((candidate, computed.block))
        if computed.command is None:
            return None
        scores = self.round_.scales.scores(computed.command)
        self.moves.extend(moves_of(computed.command, scores))
        if not all(score.is_approved for score in scores):
            self.blocks.append((candidate, NOT_WORTH_IT))
            return None
        for score in scores:
            self.notices.extend(both(candidate, "ConsolidationApproved", score.text))
        return computed.command

    def found(self, command: Command | None, timed_out: bool = False) -> Found:
        return Found(
            commands=() if command is None else (command,),
            blocks=tuple(self.blocks),
            notices=tuple(self.notices),
            moves=tuple(self.moves),
            timed_out=timed_out,
        )


def decide_single(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """The first candidate that is allowed, worth the disturbance, and can be deleted or replaced more cheaply
    (DIS-117)."""
    left = RemainingAllowances.of(round_.allowances(DisruptionReason.UNDERUTILIZED))
    search = _Search(round_)
    for candidate in pools_alternating(by_ratio(candidates)):
        if round_.should_stop():
            search.blocks.append((candidate, NO_TIME))
            return search.found(None, timed_out=True)
        if not left.has(candidate.pool.name):
            search.blocks.append(out_of_budget(round_, candidate, DisruptionReason.UNDERUTILIZED))
            continue
        block = search.why_not_tried(candidate)
        if block is not None:
            search.blocks.append((candidate, block))
            continue
        command = search.command_for(candidate)
        if command is not None:
            return search.found(command)
    return search.found(None)


SINGLE = Method(
    name="single",
    title="consolidation alone",
    reason=DisruptionReason.UNDERUTILIZED,
    kind="single",
    why_not=why_not_consolidatable,
    decide=decide_single,
)
