"""Single-node consolidation: one node for none or a cheaper one (D-116 to D-119).

Asked last. It takes the first node that works out, not the best: candidates come by price per disturbance, pool by
pool in turn, so that a large pool does not use up the time of all others.
"""

from collections.abc import Sequence

from dovetail.disruption.commands import Found, Move, both
from dovetail.disruption.methods.balanced import moves_of
from dovetail.disruption.methods.consolidation import CANT_REPLACE, compute, why_not_consolidatable
from dovetail.disruption.methods.emptiness import by_ratio
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.rounds import Method, Purse, Round, out_of_budget
from dovetail.model.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.notice import Notice


def in_turn(candidates: Sequence[Candidate]) -> list[Candidate]:
    """D-116: the first of each pool, then the second of each, and so on; pools by name."""
    by_pool: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_pool.setdefault(candidate.pool.name, []).append(candidate)
    queues = [by_pool[name] for name in sorted(by_pool)]
    longest = max((len(q) for q in queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def decide_single(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """D-117: the first that is allowed, worth it, and cheaper."""
    purse = Purse.of(round_.allowances(DisruptionReason.UNDERUTILIZED))
    blocks: list[tuple[Candidate, Block]] = []
    notices: list[Notice] = []
    moves: list[Move] = []
    timed_out = False
    for candidate in in_turn(by_ratio(candidates)):
        if round_.should_stop():
            timed_out = True
            blocks.append((candidate, Block(why=WhyNot.OUT_OF_TIME, message="No time was left", event="")))
            break
        if not purse.has(candidate.pool.name):
            blocks.append(out_of_budget(candidate, DisruptionReason.UNDERUTILIZED))
            continue
        if not round_.scales.is_worth_simulating(candidate):
            blocks.append((candidate, Block(why=WhyNot.SCORE_TOO_LOW, message="Not worth the disturbance", event="")))
            continue
        if round_.settings.profile.rules_out_by_price and round_.simulator.is_hopeless((candidate,)):
            blocks.append((candidate, CANT_REPLACE))
            continue
        computed = compute(round_, (candidate,))
        notices.extend(computed.notices)
        if computed.block is not None:
            blocks.append((candidate, computed.block))
        if computed.command is None:
            continue
        scores = round_.scales.scores(computed.command)
        moves.extend(moves_of(computed.command, scores))
        if all(s.is_approved for s in scores):
            for score in scores:
                notices.extend(both(candidate, "ConsolidationApproved", score.text))
            commands = (computed.command,)
            return Found(commands=commands, blocks=tuple(blocks), notices=tuple(notices), moves=tuple(moves))
        blocks.append((candidate, Block(why=WhyNot.SCORE_TOO_LOW, message="Not worth the disturbance", event="")))
    return Found(
        blocks=tuple(blocks),
        notices=tuple(notices),
        moves=tuple(moves),
        constrained=purse.constrained,
        timed_out=timed_out,
    )


SINGLE = Method(
    name="single",
    title="consolidation alone",
    reason=DisruptionReason.UNDERUTILIZED,
    eventual=False,
    kind="single",
    why_not=why_not_consolidatable,
    decide=decide_single,
)
