"""Multi-node consolidation: several nodes at once for none or one cheaper (D-107 to D-115).

Asked after drift. Upstream's search looks for the longest prefix, by price per disturbance, that can go together. The
trap avoided: two of the cheapest nodes must never become a new one of the same type.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.disruption.commands import Command, Found
from dovetail.disruption.methods.balanced import Score, moves_of
from dovetail.disruption.methods.consolidation import candidate_notices, compute, why_not_consolidatable
from dovetail.disruption.methods.emptiness import by_ratio
from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.rounds import Method, Purse, Round, out_of_budget
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.notice import Notice
from dovetail.notices.decisions import decision_notice

MOST: Final = 100  # nodes of one command
TRIES: Final = 12  # simulations that the wide search may add where the prefix search found nothing
FEW_TRIES: Final = 4  # and where it found something


@dataclass(slots=True)
class Search:
    """What a search has seen so far."""

    notices: list[Notice] = field(default_factory=list)
    error: str = ""
    rejected: Command | None = None  # the last probe that the scores alone turned down

    def probe(self, round_: Round, candidates: Sequence[Candidate]) -> Command | None:
        """D-109: the command for these candidates, if it is one and every pool approves."""
        computed = compute(round_, candidates)
        self.notices.extend(computed.notices)
        if computed.error and not round_.should_stop():
            self.error = self.error or computed.error  # running out of time is no error: the best so far stands (D-112)
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
    """D-110: without the types that the candidates already are, everything dearer, and what cannot be launched."""
    made, prices = command.replacements[0], round_.prices
    limit = prices.same_type_limit(made.types, command.candidates)
    left = prices.below(made.types, made.requirements, limit)
    if left.short or not left.types:
        return None
    kept = replace(made, types=left.types, cheapest=prices.first_price(left.types, made.requirements))
    return replace(command, replacements=(kept,))


def longest_prefix(round_: Round, search: Search, ordered: Sequence[Candidate]) -> Command | None:
    """D-108: the binary search over prefix lengths; ours asks first whether all of them could go."""
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
    """Ours: add what the prefix could not have, because one node on the way to it cannot go.

    Chunks of the remaining nodes are tried with what is there already; one that fails is halved, and a single node that
    fails is left out. Every answer has passed the same probe as upstream's; only savings that grow are kept.
    """
    chosen = list(best.candidates) if best else []
    taken = {c.name for c in chosen}
    rest = [c for c in ordered if c.name not in taken]
    # The search has shown that the node after its prefix cannot join it; without a prefix nothing is known.
    position, step, tries = (1, 8, FEW_TRIES) if best else (0, max(1, len(rest)), TRIES)
    while position < len(rest) and len(chosen) < MOST and tries > 0:
        if search.error or round_.should_stop():
            break
        chunk = rest[position : position + min(step, MOST - len(chosen))]
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
            position, step = position + 1, 2  # two nodes are the least; the first of them is left out
        else:
            step = max(2 if not chosen else 1, step // 2)
    return best


def decide_multi(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """D-107: those that the allowances permit, then the search."""
    purse = Purse.of(round_.allowances(DisruptionReason.UNDERUTILIZED))
    takers: list[Candidate] = []
    refused: list[Candidate] = []
    for candidate in by_ratio(candidates):
        (takers if purse.spend(candidate.pool.name) else refused).append(candidate)
    search, command = Search(), None
    if len(takers) > 1:
        command = longest_prefix(round_, search, takers)
        if round_.settings.profile.widens_the_search:
            command = widened(round_, search, takers, command)
    judged = command or search.rejected
    scores = round_.scales.scores(judged) if judged else ()
    notices = (*_told(round_, search, command), *approvals(scores))
    return Found(
        commands=() if command is None or search.error else (command,),
        blocks=tuple(out_of_budget(c, DisruptionReason.UNDERUTILIZED) for c in refused),
        notices=tuple(notices),
        moves=moves_of(judged, scores) if judged else (),
        error=search.error,
        constrained=purse.constrained,
    )


def _told(round_: Round, search: Search, command: Command | None) -> tuple[Notice, ...]:
    """Upstream tells every probe; we tell what is going to be done."""
    if round_.settings.profile.announces_probes:
        return tuple(search.notices)
    return candidate_notices(command) if command and command.replacements else ()


def approvals(scores: Sequence[Score]) -> tuple[Notice, ...]:
    """D-126: each pool that approved is told, even where another pool did not."""
    return tuple(decision_notice("NodePool", s.pool, "ConsolidationApproved", s.text) for s in scores if s.is_approved)


MULTI = Method(
    name="multi",
    title="consolidation with others",
    reason=DisruptionReason.UNDERUTILIZED,
    eventual=False,
    kind="multi",
    why_not=why_not_consolidatable,
    decide=decide_multi,
)
