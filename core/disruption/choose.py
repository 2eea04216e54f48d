"""Which nodes should go now? The one decision of the disruption loop (D-1, D-2).

Asked by the activity that waits for a plan, with a fresh snapshot. The first method that finds something decides; the
rest have their turn in the next round, after the mark of this one was seen. The trap avoided: two methods acting on one
snapshot, which would count the same room twice.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from core.disruption.allowances import allowances, budget_notices
from core.disruption.candidates import Block, Candidate
from core.disruption.commands import both
from core.disruption.drift import DRIFT
from core.disruption.due import next_due
from core.disruption.emptiness import EMPTINESS
from core.disruption.expiration import EXPIRATION
from core.disruption.multi import MULTI
from core.disruption.notices import Notice
from core.disruption.planning import plan_of
from core.disruption.rounds import Method, Pass, Round, ShouldStop, run
from core.disruption.settings import DisruptionSettings
from core.disruption.single import SINGLE
from core.disruption.static_drift import STATIC_DRIFT
from core.model.plans import DisruptionPlan, Refusal
from core.model.snapshot import Snapshot

# D-2: in this order. Graceful expiry, which upstream does not know, comes after drift.
METHODS: Final[tuple[Method, ...]] = (EMPTINESS, STATIC_DRIFT, DRIFT, EXPIRATION, MULTI, SINGLE)

EXAMPLES: Final = 3  # named per reason; `explain` names all


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToDo:
    """No node should go now. `next_due`: look again then although nothing has changed."""

    kind: Literal["nothing_to_do"] = "nothing_to_do"
    next_due: float | None = None
    refusals: tuple[Refusal, ...] = ()
    notices: tuple[Notice, ...] = ()
    errors: tuple[str, ...] = ()


Choice = DisruptionPlan | NothingToDo


def choose(snapshot: Snapshot, settings: DisruptionSettings, should_stop: ShouldStop) -> Choice:
    """The first plan that a method finds, or why there is none."""
    round_ = Round(snapshot, settings, should_stop)
    passes: list[Pass] = []
    for method in METHODS:
        done = run(method, round_)
        if done.found.commands:
            return plan_of(round_, method, done.found.commands)
        passes.append(done)
    return NothingToDo(
        next_due=next_due(round_.fleet),
        refusals=_refusals(round_, passes),
        notices=_notices(round_, passes),
        errors=tuple(f"{p.method.name}: {p.found.error}" for p in passes if p.found.error),
    )


def _refusals(round_: Round, passes: Iterable[Pass]) -> tuple[Refusal, ...]:
    blocks: dict[tuple[str, str], Block] = {(m.name, b.why): b for m, b in round_.screening.blocked}
    for done in passes:
        blocks.update({(c.name, b.why): b for c, b in (*done.blocks, *done.found.blocks)})
    counted = Counter(why for _, why in blocks)
    named: dict[str, list[str]] = {}
    for (name, why), block in sorted(blocks.items()):
        examples = named.setdefault(why, [])
        if len(examples) < EXAMPLES:
            examples.append(f"{name}: {block.message}")
    return tuple(Refusal(reason=why, count=counted[why], examples=tuple(named[why])) for why in sorted(counted))


def _notices(round_: Round, passes: Iterable[Pass]) -> tuple[Notice, ...]:
    told = dict.fromkeys(notice for done in passes for notice in notices_of(round_, done))
    return tuple(told)


def notices_of(round_: Round, done: Pass) -> tuple[Notice, ...]:
    """Everything that one method's pass tells people."""
    told = list(screening_notices(round_, done.method.eventual))
    for candidate, block in (*done.blocks, *done.found.blocks):
        told.extend(block_notices(candidate, block))
    told.extend(budget_notices(done.allowances))
    told.extend(done.found.notices)
    told.extend(round_.simulator.notices)
    return tuple(told)


def screening_notices(round_: Round, eventual: bool) -> Iterator[Notice]:
    """What judging all nodes of a class tells people, on whichever of Node and NodeClaim exists."""
    yield from round_.screening.notices
    for member, block in round_.screening.blocks(eventual):
        if block.event and member.node is not None:
            yield Notice(kind="Node", name=member.node.name, reason=block.event, message=block.message)
        if block.event and member.claim is not None:
            yield Notice(kind="NodeClaim", name=member.claim.name, reason=block.event, message=block.message)


def block_notices(candidate: Candidate, block: Block) -> tuple[Notice, ...]:
    """What a method's own block tells people."""
    return both(candidate, block.event, block.message) if block.event else ()


__all__ = ["METHODS", "Choice", "NothingToDo", "allowances", "choose", "notices_of"]
