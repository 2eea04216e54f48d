"""Multi-node consolidation: several nodes at once, for no replacement or one cheaper one (DIS-107 to DIS-115).

It comes after expiration. Upstream's search looks for the longest prefix of the candidates, by price per disturbance,
that can leave together. Two of the cheapest nodes must never become a new one of the same type.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.disruption.balanced import Score, moves_of
from dovetail.disruption.commands import Command, Found
from dovetail.disruption.methods.consolidation import candidate_notices, compute, why_not_consolidatable
from dovetail.disruption.methods.emptiness import by_ratio
from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.rounds import Method, RemainingAllowances, Round, out_of_budget
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.notices.decisions import decision_notice
from dovetail.notices.notice import Notice

# Simulations that widening may add if the search for a prefix has found nothing, and if it has found one.
TRIES: Final = 12
FEW_TRIES: Final = 4


@dataclass(slots=True)
class Search:
    notices: list[Notice] = field(default_factory=list)
    error: str = ""
    rejected: Command | None = None  # the last probe that the scores alone turned down

    def probe(self, round_: Round, candidates: Sequence[Candidate]) -> Command | None:
        """The command for these candidates, if there is one and every pool approves of it (DIS-109)."""
        computed = compute(round_, candidates)
        self.notices.extend(computed.notices)
        if computed.error and not round_.should_stop():
            # running out of time is no error: the best so far stands (DIS-112)
            self.error = self.error or computed.error
        command = computed.command
        if command is None:
            return None
        if command.replacements:
            command = without_same_types(round_, command)
        if command is None:
            return None
        scores = round_.scales.scores(command)
        if all(s.is_approved for s in scores):
            return command
        self.rejected = command
        return None


def without_same_types(round_: Round, command: Command) -> Command | None:
    """The command without its candidates' own types, dearer ones, and those that cannot be launched (DIS-110)."""
    made, prices = command.replacements[0], round_.prices
    limit = prices.same_type_limit(made.types, command.candidates)
    left = prices.below(made.types, made.requirements, limit)
    if left.short or not left.types:
        return None
    kept = replace(made, types=left.types, cheapest=prices.first_price(left.types, made.requirements))
    return replace(command, replacements=(kept,))


def longest_prefix(round_: Round, search: Search, ordered: Sequence[Candidate]) -> Command | None:
    """The binary search over prefix lengths; ours first tries all of them together (DIS-108)."""
    low, high, best = 1, min(len(ordered), round_.settings.profile.most_consolidated) - 1, None
    if round_.settings.profile.tries_all_together_first:
        best = search.probe(round_, ordered[: high + 1])
        if best is not None:
            return best
        high -= 1
    while low <= high and not search.error and not round_.should_stop():
        middle = (low + high) // 2
        command = search.probe(round_, ordered[: middle + 1])
        if command is None:
            high = middle - 1
        else:
            best, low = command, middle + 1
    return best


def widened(round_: Round, search: Search, ordered: Sequence[Candidate], best: Command | None) -> Command | None:
    """Add nodes beyond the prefix, which ends at the first node that cannot leave. Karpenter does not do this.

    Chunks of the remaining nodes are tried with the set found so far; one that fails is halved, and a single node that
    fails is left out. Every answer has passed the same probe as a prefix; only growing savings are kept.
    """
    chosen = list(best.candidates) if best else []
    taken = {c.name for c in chosen}
    rest = [c for c in ordered if c.name not in taken]
    # The search has shown that the node after its prefix cannot join it; without a prefix nothing is known.
    position, step, tries = (1, 8, FEW_TRIES) if best else (0, max(1, len(rest)), TRIES)
    most = round_.settings.profile.most_consolidated
    while position < len(rest) and len(chosen) < most and tries > 0:
        if search.error or round_.should_stop():
            break
        chunk = rest[position : position + min(step, most - len(chosen))]
        trial = [*chosen, *chunk]
        if not round_.simulator.is_hopeless(trial):
            tries -= 1
            command = search.probe(round_, trial) if len(trial) > 1 else None
            if command is not None and command.savings > (best.savings if best else 0.0):
                best, chosen, position = command, trial, position + len(chunk)
                continue
        if step == 1:
            position += 1
        elif not chosen and step == 2:
            position, step = position + 1, 2  # at least two nodes; the first of them is left out
        else:
            step = max(2 if not chosen else 1, step // 2)
    return best


def decide_multi(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """The search, among those that the allowances permit (DIS-107)."""
    left = RemainingAllowances.of(round_.allowances(DisruptionReason.UNDERUTILIZED))
    takers: list[Candidate] = []
    refused: list[Candidate] = []
    for candidate in by_ratio(candidates):
        (takers if left.take(candidate.pool.name) else refused).append(candidate)
    search, command = Search(), None
    if len(takers) > 1:
        command = longest_prefix(round_, search, takers)
        if round_.settings.profile.widens_the_search:
            command = widened(round_, search, takers, command)
    judged = command or search.rejected
    scores = round_.scales.scores(judged) if judged else ()
    notices = (*_announcements(round_, search, command), *approvals(scores))
    return Found(
        commands=() if command is None or search.error else (command,),
        blocks=tuple(out_of_budget(round_, c, DisruptionReason.UNDERUTILIZED) for c in refused),
        notices=tuple(notices),
        moves=moves_of(judged, scores) if judged else (),
        error=search.error,
    )


def _announcements(round_: Round, search: Search, command: Command | None) -> tuple[Notice, ...]:
    """Karpenter announces every probe; we announce what is planned."""
    if round_.settings.profile.announces_probes:
        return tuple(search.notices)
    return candidate_notices(command) if command and command.replacements else ()


def approvals(scores: Sequence[Score]) -> tuple[Notice, ...]:
    """A notice for each pool that approves, even if another pool does not (DIS-126)."""
    return tuple(decision_notice("NodePool", s.pool, "ConsolidationApproved", s.text) for s in scores if s.is_approved)


MULTI = Method(
    name="multi",
    title="consolidation with others",
    reason=DisruptionReason.UNDERUTILIZED,
    kind="multi",
    why_not=why_not_consolidatable,
    decide=decide_multi,
)
