"""Multi-node consolidation: several nodes at once for none or one cheaper (D-107 to D-115).

Asked after drift. Upstream's search looks for the longest prefix, by price per disturbance, that can go together. The
trap avoided: two of the cheapest nodes must never become a new one of the same type.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from core.disruption.balanced import Score
from core.disruption.candidates import Candidate
from core.disruption.commands import Command, Found
from core.disruption.consolidation import compute, why_not_consolidatable
from core.disruption.emptiness import by_ratio
from core.disruption.notices import Notice
from core.disruption.rounds import Method, Purse, Round
from core.model.disruption_reasons import DisruptionReason

MOST: Final = 100  # nodes of one command


@dataclass(slots=True)
class Search:
    """What a search has seen so far."""

    notices: list[Notice] = field(default_factory=list)
    error: str = ""
    rejected: tuple[Score, ...] = ()  # of the last probe that the scores alone turned down

    def probe(self, round_: Round, candidates: Sequence[Candidate]) -> Command | None:
        """D-109: the command for these candidates, if it is one and every pool approves."""
        computed = compute(round_, candidates)
        self.notices.extend(computed.notices)
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
        self.rejected = scores
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
    """D-108: the binary search over prefix lengths."""
    low, high, best = 1, min(len(ordered) - 1, MOST - 1 if round_.settings.mend else MOST), None
    while low <= high and not search.error and not round_.should_stop():
        middle = (low + high) // 2
        command = search.probe(round_, ordered[: middle + 1])
        if command is None:
            high = middle - 1
        else:
            best, low = command, middle + 1
    return best


def decide_multi(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """D-107: those that the allowances permit, then the search."""
    purse = Purse.of(round_.allowances(DisruptionReason.UNDERUTILIZED))
    takers = [c for c in by_ratio(candidates) if purse.spend(c.pool.name)]
    search = Search()
    command = longest_prefix(round_, search, takers) if len(takers) > 1 else None
    notices = (*search.notices, *approvals(round_.scales.scores(command) if command else search.rejected))
    return Found(
        commands=() if command is None or search.error else (command,),
        notices=tuple(notices),
        error=search.error,
        constrained=purse.constrained,
    )


def approvals(scores: Sequence[Score]) -> tuple[Notice, ...]:
    """D-126: each pool that approved is told, even where another pool did not."""
    return tuple(
        Notice(kind="NodePool", name=s.pool, reason="ConsolidationApproved", message=s.text)
        for s in scores
        if s.is_approved
    )


MULTI = Method(
    name="multi",
    reason=DisruptionReason.UNDERUTILIZED,
    eventual=False,
    kind="multi",
    waits=True,
    why_not=why_not_consolidatable,
    decide=decide_multi,
)
