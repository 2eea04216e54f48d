"""Why each node stays, in the words of the most telling check: one pass of the same checks that decide.

A node stays if every method refuses it or has no allowance left for it. What only a simulation can show (its pods fit
nowhere else, nothing is cheaper) is in `dovetail explain node`.
"""

from collections.abc import Mapping
from typing import Final

from dovetail.answers.look.sources import Look
from dovetail.disruption.choose import METHODS
from dovetail.disruption.methods.multi_node import MULTI
from dovetail.disruption.methods.repair import REPAIR
from dovetail.disruption.methods.requests import REQUESTS
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.rounds import Method, Round, out_of_budget, why_not
from dovetail.model import names
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.settings.deciding import disruption_settings

# Whether a node is empty decides which method looks at it, but does not explain why that one leaves it alone.
_SORTING: Final = frozenset({WhyNot.IS_EMPTY, WhyNot.NOT_EMPTY})

# From last to first: most nodes may be consolidated, and need no further check. Both kinds of consolidation check the
# same.
_METHODS: Final = tuple(method for method in reversed(METHODS) if method is not MULTI)


def stays_of(look: Look) -> Mapping[str, str]:
    """Why each node stays, by claim; a node that a method may take is not listed."""
    round_ = Round(look.snapshot, disruption_settings(look.settings))
    screening = round_.screening
    blocks = {member.name: (member.claim.name, block) for member, block in screening.blocked if member.claim}
    found = {claim: block.message for name, (claim, block) in blocks.items() if name not in screening.waived}
    for candidate in screening.eventual:
        held = blocks[candidate.name][1] if candidate.name in screening.waived else None
        block = _refused(round_, candidate, held)
        if block is not None:
            found[candidate.claim.name] = block.message
    for candidate in round_.repairable:  # some of which the screening blocks for all else
        if _why_not(REPAIR, round_, candidate) is None:
            found.pop(candidate.claim.name, None)
    return found


def _refused(round_: Round, candidate: Candidate, held: Block | None) -> Block | None:
    """The most telling of all methods' answers; None if one of them may take the node. `held`: what keeps the node from
    the methods that honour pods of any kind."""
    answers: list[Block] = []
    for method in _METHODS:
        block = held if held is not None and not method.reason.is_eventual else _why_not(method, round_, candidate)
        if block is None:
            return None
        answers.append(block)
    specific = (block for block in reversed(answers) if not block.why.concerns_others and block.why not in _SORTING)
    return next(specific, answers[0])


def _why_not(method: Method, round_: Round, candidate: Candidate) -> Block | None:
    block = why_not(method, round_, candidate)
    if block is not None or _needs_no_allowance(method, candidate):
        return block
    allowance = round_.allowances(method.reason).get(candidate.pool.name)
    spent = allowance is not None and allowance.left <= 0
    return out_of_budget(round_, candidate, method.reason)[1] if spent else None


def _needs_no_allowance(method: Method, candidate: Candidate) -> bool:
    """A person may ask for a replacement at once, whatever the budgets; so may an unhealthy node that was never
    initialised."""
    if method is REPAIR:
        return not candidate.member.is_initialized
    return method is REQUESTS and candidate.claim.annotations.get(names.REPLACE_NOW) == "true"
