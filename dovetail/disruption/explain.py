"""Every reason why a node stays, or why it would be disrupted (`dovetail explain node`).

The checks, the allowances and the simulation are the functions that decide, so that an explanation cannot differ from
what is done. The snapshot may be fresh or recorded. These are the facts; the command line words them for people.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dovetail.disruption.balanced import Score
from dovetail.disruption.budgets.allowances import Allowance
from dovetail.disruption.choose import METHODS
from dovetail.disruption.commands import Command
from dovetail.disruption.methods.cheaper import CHEAPER, compute_cheaper
from dovetail.disruption.methods.consolidation import Computed, compute
from dovetail.disruption.nodes.candidates import Candidate, candidate_of
from dovetail.disruption.nodes.fleet import Member
from dovetail.disruption.nodes.screening import judged_blocks
from dovetail.disruption.rounds import Attempt, Method, Round, ShouldStop, never, run, why_not, why_refused
from dovetail.disruption.settings import DisruptionSettings
from dovetail.disruption.simulation.simulation import Simulation
from dovetail.disruption.upkeep.conditions import quiet_since
from dovetail.model.objects.judging import Unjudged
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.snapshot import Snapshot

SHOWN_TYPES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of one check: that it does not object, or why it does."""

    method: str = ""  # empty if the check comes before any method
    why: WhyNot | None = None
    message: str = ""

    @property
    def passes(self) -> bool:
        """Whether this check does not object."""
        return self.why is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The comparison that consolidation makes."""

    now: float
    replacement: float | None = None  # what the first type is expected to cost
    types: tuple[str, ...] = ()  # cheapest first, a few


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeExplanation:
    node: str
    exists: bool = True
    claim: str = ""
    pool: str = ""
    checks: tuple[Answer, ...] = ()
    methods: tuple[Answer, ...] = ()
    allowances: tuple[Allowance, ...] = ()
    simulation: Simulation | None = None  # of this node alone, as for consolidation
    outcome: Computed | None = None  # what consolidation concludes from it
    scores: tuple[Score, ...] = ()
    prices: Prices | None = None
    quiet_since: float | None = None
    expires_at: float | None = None
    goes_for: tuple[str, ...] = field(default=())  # methods that would take it in this round
    step: Command | None = None  # the set of nodes that a cheaper set would replace now, if it is one of them
    passed_over: tuple[Answer, ...] = ()  # by methods that have a reason to take it
    held: tuple[Answer, ...] = ()  # methods that have a reason to take it, but that people do not let begin


def explain_node(
    snapshot: Snapshot, settings: DisruptionSettings, node: str, should_stop: ShouldStop = never
) -> NodeExplanation:
    """Every check's answer for one node, named by its own or its claim's name."""
    round_ = Round(snapshot, settings, should_stop)
    member = _find(round_, node)
    if member is None:
        return NodeExplanation(node=node, exists=False)
    checks = _checks(round_, member)
    known = member.managed and member.pool_name in round_.fleet.pools
    candidate = round_.judging.judge(member.node, "explanation", candidate_of, round_.fleet, member) if known else None
    found = NodeExplanation(
        node=member.name,
        claim=member.claim.name if member.claim else "",
        pool=member.pool_name,
        checks=checks,
        quiet_since=quiet_since(member.claim) if member.claim else None,
        expires_at=member.claim.expires_at if member.claim else None,
    )
    if candidate is None or isinstance(candidate, Unjudged):
        return found
    deep = round_.judging.judge(member.node, "explanation", _in_depth, round_, found, candidate)
    return found if isinstance(deep, Unjudged) else deep


def _find(round_: Round, name: str) -> Member | None:
    by_name = round_.fleet.by_name.get(name)
    return by_name or next((m for m in round_.fleet.members if m.claim and m.claim.name == name), None)


def _checks(round_: Round, member: Member) -> tuple[Answer, ...]:
    blocks = judged_blocks(round_.fleet, member)
    return tuple(Answer(why=b.why, message=b.message) for b in blocks) or (Answer(),)


def _in_depth(round_: Round, found: NodeExplanation, candidate: Candidate) -> NodeExplanation:
    cheaper = candidate.pool.name in round_.simulator.cost_pools
    simulation = round_.simulator.simulate((candidate,), consolidating=True, cheaper=cheaper)
    outcome = compute_cheaper(round_, (candidate,)) if cheaper else compute(round_, (candidate,))
    command = outcome.command
    made = command.replacements if command else ()
    attempts = [run(method, round_) for method in METHODS]
    commands = {done.method.name: _command_with(done, candidate) for done in attempts}
    return NodeExplanation(
        node=found.node,
        claim=found.claim,
        pool=found.pool,
        checks=found.checks,
        quiet_since=found.quiet_since,
        expires_at=found.expires_at,
        methods=tuple(_method(method, round_, candidate) for method in METHODS),
        allowances=tuple(
            round_.allowances(reason)[found.pool] for reason in DisruptionReason if found.pool in round_.fleet.pools
        ),
        simulation=simulation,
        outcome=outcome,
        scores=round_.scales.scores(command) if command else (),
        prices=Prices(
            now=candidate.price,
            replacement=sum(each.cheapest for each in made) if made else None,
            types=tuple(t.name for t in made[0].types[:SHOWN_TYPES]) if made else (),
        ),
        goes_for=tuple(name for name, found in commands.items() if found is not None),
        step=commands[CHEAPER.name],
        passed_over=tuple(answer for done in attempts for answer in _passed_over(done, candidate)),
        held=tuple(_held(round_, candidate)),
    )


def _method(method: Method, round_: Round, candidate: Candidate) -> Answer:
    block = why_not(method, round_, candidate)
    if block is None:
        return Answer(method=method.name)
    return Answer(method=method.name, why=block.why, message=block.message)


def _passed_over(done: Attempt, candidate: Candidate) -> Iterator[Answer]:
    """Why a method does not take the node although it has a reason to."""
    if candidate.name not in {c.name for c in done.candidates}:
        return
    for other, block in done.found.blocks:
        if other.name == candidate.name:
            yield Answer(method=done.method.name, why=block.why, message=block.message)


def _held(round_: Round, candidate: Candidate) -> Iterator[Answer]:
    """What holds the node if nothing else keeps the method from taking it: a pause, a Freeze, a window, a rate or a
    breaker."""
    for method in METHODS:
        block = round_.held(candidate, method.reason)
        known = {c.name for c in round_.candidates(method)}
        if block is None or candidate.name not in known:
            continue
        if why_refused(method, round_, candidate) is None:
            yield Answer(method=method.name, why=block.why, message=block.message)


def _command_with(done: Attempt, candidate: Candidate) -> Command | None:
    return next((each for each in done.found.commands if candidate.name in {c.name for c in each.candidates}), None)
