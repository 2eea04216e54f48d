"""The decision of the disruption loop: which nodes should be disrupted now (DIS-1, DIS-2).

The first method that finds something decides. The others are asked in the next round, when the marks of this one are
visible: two methods that acted on one snapshot would count the same room twice.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dovetail.disruption.budgets.allowances import budget_notices
from dovetail.disruption.commands import Move, both
from dovetail.disruption.due import next_due
from dovetail.disruption.methods.cheaper import CHEAPER
from dovetail.disruption.methods.drift import DRIFT
from dovetail.disruption.methods.emptiness import EMPTINESS
from dovetail.disruption.methods.expiration import EXPIRATION
from dovetail.disruption.methods.multi_node import MULTI
from dovetail.disruption.methods.repair import REPAIR
from dovetail.disruption.methods.requests import REQUESTS, waits_notice
from dovetail.disruption.methods.single_node import SINGLE
from dovetail.disruption.methods.static_drift import STATIC_DRIFT
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.plan import plan_of
from dovetail.disruption.rounds import Attempt, Method, Round, ShouldStop, run
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan, Refusal
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.judging import Unjudged
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.notices.decisions import decision_notice
from dovetail.notices.faults import unjudged_notices
from dovetail.notices.notice import Notice
from dovetail.notices.publishable import is_young

# The order of the methods (DIS-2). Three do not exist upstream: requests by people come first, because somebody waits
# for them; expiration comes after drift; and a cheaper set, for pools under the policy cost, before the others.
METHODS: Final[tuple[Method, ...]] = (
    REQUESTS,
    REPAIR,
    EMPTINESS,
    STATIC_DRIFT,
    DRIFT,
    EXPIRATION,
    CHEAPER,
    MULTI,
    SINGLE,
)

EXAMPLES: Final = 3  # named per reason; `explain` names all

# People need not know that a node is still starting; upstream names it twice for every replacement.
STARTING: Final = frozenset({WhyNot.NO_NODE, WhyNot.NOT_INITIALIZED, WhyNot.NOMINATED})


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToDo:
    """No node should be disrupted now. `next_due`: when to look again although nothing has changed."""

    kind: Literal["nothing_to_do"] = "nothing_to_do"
    next_due: float | None = None
    refusals: tuple[Refusal, ...] = ()
    notices: tuple[Notice, ...] = ()
    errors: tuple[str, ...] = ()


Choice = DisruptionPlan | NothingToDo


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A choice, with the notices and figures of the methods that were asked."""

    choice: Choice
    notices: tuple[Notice, ...]
    eligible: tuple[tuple[str, int], ...]  # candidates of each method that was asked, for metrics
    decided_by: str = ""  # the last method that had candidates, for metrics
    timed_out: tuple[str, ...] = ()  # methods that were stopped before they had tried all candidates
    moves: tuple[Move, ...] = ()  # consolidations that were worked out, for metrics
    unjudged: tuple[Unjudged, ...] = ()  # objects that were set aside


def choose(snapshot: Snapshot, settings: DisruptionSettings, should_stop: ShouldStop) -> Choice:
    """The first plan that a method finds, or why there is none."""
    return decide(snapshot, settings, should_stop).choice


def decide(snapshot: Snapshot, settings: DisruptionSettings, should_stop: ShouldStop) -> Decision:
    """The choice, with the notices and figures of every method that was asked."""
    round_ = Round(snapshot, settings, should_stop, deciding=True)
    attempts: list[Attempt] = []
    plan: DisruptionPlan | None = None
    for method in METHODS:
        done = run(method, round_)
        attempts.append(done)
        if done.found.commands:
            made = round_.judging.judge(method, "plan", plan_of, round_, method, done.found.commands)
            plan = None if isinstance(made, Unjudged) else made
        if plan is not None or done.found.look_again is not None:
            break
    notices = _notices(round_, attempts)
    choice = plan or _nothing(round_, attempts, notices)
    return Decision(
        choice=choice,
        notices=notices,
        eligible=tuple((p.method.name, len(p.candidates)) for p in attempts),
        decided_by=next((p.method.name for p in reversed(attempts) if p.candidates), ""),
        timed_out=tuple(p.method.name for p in attempts if p.found.timed_out),
        moves=tuple(move for p in attempts for move in p.found.moves),
        unjudged=round_.judging.found,
    )


def _nothing(round_: Round, attempts: Sequence[Attempt], notices: tuple[Notice, ...]) -> NothingToDo:
    moments = [next_due(round_.fleet), *[p.found.look_again for p in attempts]]
    return NothingToDo(
        next_due=min((m for m in moments if m is not None), default=None),
        refusals=_refusals(round_, attempts),
        notices=notices,
        errors=tuple(f"{p.method.name}: {p.found.error}" for p in attempts if p.found.error),
    )


def _refusals(round_: Round, attempts: Iterable[Attempt]) -> tuple[Refusal, ...]:
    blocks: dict[tuple[str, str], Block] = {(m.name, b.why): b for m, b in round_.screening.blocked}
    for done in attempts:
        blocks.update({(c.name, b.why): b for c, b in (*done.blocks, *done.found.blocks)})
    blocks = {key: block for key, block in blocks.items() if not block.why.concerns_others}
    counted = Counter(why for _, why in blocks)
    named: dict[str, list[str]] = {}
    for (name, why), block in sorted(blocks.items()):
        examples = named.setdefault(why, [])
        if len(examples) < EXAMPLES:
            examples.append(f"{name}: {block.message}")
    return tuple(Refusal(reason=why, count=counted[why], examples=tuple(named[why])) for why in sorted(counted))


def _notices(round_: Round, attempts: Iterable[Attempt]) -> tuple[Notice, ...]:
    notices: list[Notice] = []
    screened: set[bool] = set()  # classes of methods: each would repeat the notices of all nodes
    for done in attempts:
        eventual = done.method.reason.is_eventual
        if eventual not in screened:
            notices.extend(screening_notices(round_, eventual))
        screened.add(eventual)
        notices.extend(own_notices(round_, done))
    return tuple(dict.fromkeys([*notices, *round_.simulator.notices, *unjudged_notices(round_.judging.found)]))


def own_notices(round_: Round, done: Attempt) -> tuple[Notice, ...]:
    """The attempt's own notices, without those of the screening about nodes and of the simulator about pods and
    pools."""
    notices: list[Notice] = []
    for candidate, block in (*done.blocks, *done.found.blocks):
        notices.extend(block_notices(candidate, block))
    notices.extend(budget_notices(done.allowances))
    notices.extend(done.found.notices)
    return tuple(notices)


def screening_notices(round_: Round, eventual: bool) -> Iterator[Notice]:
    """The notices of judging all nodes of a class, on the Node and the NodeClaim as far as they exist."""
    yield from round_.screening.notices
    for member, block in round_.screening.blocks(eventual):
        if block.why in STARTING and member.claim is not None and is_young(member.claim, round_.fleet.now):
            continue
        if block.event and member.node is not None:
            yield decision_notice("Node", member.node.name, block.event, block.message)
        if block.event and member.claim is not None:
            yield decision_notice("NodeClaim", member.claim.name, block.event, block.message)
        if not block.event and member.claim is not None and _awaits_answer(member.claim, block):
            yield waits_notice(member.claim, block.message)


def _awaits_answer(claim: NodeClaim, block: Block) -> bool:
    """Whether a person waits for its replacement, who is to know of every block."""
    is_asked = names.REPLACE in claim.annotations and names.CANCEL not in claim.annotations
    return is_asked and block.why != WhyNot.BEING_DISRUPTED


def block_notices(candidate: Candidate, block: Block) -> tuple[Notice, ...]:
    """The notices of a method's own block; a person who waits learns of a rest."""
    if block.why is WhyNot.RESTING and _awaits_answer(candidate.claim, block):
        return (waits_notice(candidate.claim, block.message),)
    return both(candidate, block.event, block.message) if block.event else ()
