"""A round: one decision about disruption in progress, and the methods that take part in it.

`choose`, `revalidate` and `explain` make a round from a snapshot and pass it to each method. Everything is worked out
when first needed, so that a round which finds empty nodes never builds the placement index.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from dovetail.disruption.balanced import Scales
from dovetail.disruption.budgets.allowances import Allowance, allowances_for
from dovetail.disruption.commands import Command, Found
from dovetail.disruption.nodes.candidates import Block, Candidate, rest_of
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.nodes.repairable import repairable
from dovetail.disruption.nodes.screening import Screening, not_judged, screen
from dovetail.disruption.nodes.written_requests import is_asked_for_now
from dovetail.disruption.settings import DisruptionSettings
from dovetail.disruption.simulation.pricing import PriceBook
from dovetail.disruption.simulation.simulation import Replacement, Simulator
from dovetail.disruption.simulation.simulator import PlacementSimulator
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, others_closed, said_in
from dovetail.rules.said import Cause

ShouldStop = Callable[[], bool]


def never() -> bool:
    """A deadline that never comes."""
    return False


class Round:
    """What all methods of one decision share."""

    def __init__(
        self,
        snapshot: Snapshot,
        settings: DisruptionSettings,
        should_stop: ShouldStop = never,
        *,
        deciding: bool = False,
    ) -> None:
        self.snapshot = snapshot
        self.settings = settings
        self.should_stop = should_stop
        self.deciding = deciding  # plans that wait are judged again before a mark, by the allowances of that moment
        self.fleet = Fleet(snapshot, settings)
        self._allowances: dict[DisruptionReason, dict[str, Allowance]] = {}
        self._holds: dict[tuple[str, DisruptionReason, bool, bool], Block | None] = {}
        self._asked: dict[_Question, _Asked] = {}
        self._others: dict[tuple[str, DisruptionReason], frozenset[str]] = {}

    @property
    def judging(self) -> Judging:
        return self.fleet.judging

    @cached_property
    def screening(self) -> Screening:
        return screen(self.fleet)

    @cached_property
    def simulator(self) -> Simulator:
        """The placement engine over this snapshot."""
        return PlacementSimulator(self.fleet, self.prices, self.should_stop)

    @cached_property
    def buffer_pods(self) -> Mapping[str, int]:
        """How many virtual pods have room on each node (DIS-68); as the snapshot says if it has no buffers."""
        return self.simulator.buffered if self.snapshot.buffers else self.snapshot.buffer_pods

    @cached_property
    def prices(self) -> PriceBook:
        return PriceBook(self.settings.well_known)

    @cached_property
    def scales(self) -> Scales:
        """The scores of the policy Balanced."""
        return Scales(self.fleet, self.screening.graceful)

    def allowances(self, reason: DisruptionReason) -> Mapping[str, Allowance]:
        if reason not in self._allowances:
            ahead = self.deciding and reason.waits
            self._allowances[reason] = allowances_for(self.fleet, reason, ahead)
        return self._allowances[reason]

    def held(self, candidate: Candidate, reason: DisruptionReason) -> Block | None:
        """How people hold it: a pause, a Freeze, a window. One Event on the pool says so, not one on each node."""
        pool, replaced = candidate.pool, candidate.is_static and not candidate.reboots
        at_once = reason is DisruptionReason.REQUESTED and is_asked_for_now(candidate.claim)
        key = (pool.name, reason, at_once, replaced)
        if key not in self._holds:
            self._holds[key] = self._held(pool, Cause.of(reason, at_once=at_once), replaced)
        return self._holds[key]

    def others_closed(self, pool: str, reason: DisruptionReason) -> frozenset[str]:
        """The NodePools of which no node may replace one of this pool."""
        if (pool, reason) not in self._others:
            self._others[pool, reason] = others_closed(self.snapshot, pool, Cause.of(reason))
        return self._others[pool, reason]

    def _held(self, pool: NodePool, cause: Cause, replaced: bool) -> Block | None:
        found = self.judging.judge(
            pool, "windows", lambda p: hold_of(said_in(self.snapshot, p.name), cause, replaced=replaced), pool
        )
        if isinstance(found, Unjudged):
            return not_judged(found)
        return None if found is None else Block(why=found.why, message=found.message, event=None)

    @cached_property
    def repairable(self) -> tuple[Candidate, ...]:
        return repairable(self.fleet)

    def candidates(self, method: "Method") -> tuple[Candidate, ...]:
        """The nodes of the method's class."""
        if method.reason is DisruptionReason.UNHEALTHY:
            return self.repairable
        return self.screening.candidates(method.reason.is_eventual)

    def asked(self, method: "Method") -> "_Asked":
        """The candidates of the method's class to which nothing objects, and why the others are not; methods with the
        same question share the answer."""
        question = (method.why_not, method.reason)
        if question not in self._asked:
            chosen: list[Candidate] = []
            blocks: list[tuple[Candidate, Block]] = []
            for candidate in self.candidates(method):
                block = why_not(method, self, candidate)
                if block is None:
                    chosen.append(candidate)
                else:
                    blocks.append((candidate, block))
            self._asked[question] = tuple(chosen), tuple(blocks)
        return self._asked[question]

    def priced(self, made: Replacement) -> Replacement:
        """A simulated node, whose types are in price order, with its expected price."""
        return replace(made, cheapest=self.prices.first_price(made.types, made.requirements))

    def is_quiet(self, candidate: Candidate) -> bool:
        """Whether no pod has come or left for the pool's consolidateAfter (DIS-167)."""
        return self.settings.profile.is_quiet(candidate.claim, candidate.pool, self.fleet.now)


class RemainingAllowances:
    """What is left of the allowances while a method goes through its candidates (DIS-60)."""

    def __init__(self, left: Mapping[str, int]) -> None:
        self._left = dict(left)

    @classmethod
    def of(cls, found: Mapping[str, Allowance]) -> "RemainingAllowances":
        return cls({pool: allowance.left for pool, allowance in found.items()})

    def copy(self) -> "RemainingAllowances":
        return RemainingAllowances(self._left)

    def has(self, pool: str) -> bool:
        return self._left.get(pool, 0) > 0

    def take(self, pool: str) -> bool:
        """Take one of the pool's, if there is one."""
        if not self.has(pool):
            return False
        self._left[pool] -= 1
        return True


def out_of_budget(round_: Round, candidate: Candidate, reason: DisruptionReason) -> tuple[Candidate, Block]:
    """Why a candidate without an allowance is passed over: for refusals and explanations, not for Events."""
    pool = candidate.pool.name
    allowance = round_.allowances(reason)[pool]
    left = allowance.left
    message = f"NodePool {pool} has no allowance left for {reason}"
    if allowance.held:
        message = f"NodePool {pool}: {allowance.held}"
    elif left > 0:
        message = f"NodePool {pool} lets {left} nodes go at once for {reason}, and others come first"
    return candidate, Block(why=WhyNot.BUDGET, message=message, event=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way to choose the nodes to disrupt (DIS-3)."""

    name: str
    title: str  # for people
    reason: DisruptionReason
    kind: str  # the consolidation type of metrics: empty, multi, single or nothing
    why_not: Callable[[Round, Candidate], Block | None]
    decide: Callable[[Round, tuple[Candidate, ...]], Found]
    # If two searches may differ, the second look asks for a new command instead of the same answer.
    anew: Callable[[Round, tuple[Candidate, ...]], Command | None] | None = None


_Question = tuple[Callable[[Round, Candidate], Block | None], DisruptionReason]
_Asked = tuple[tuple[Candidate, ...], tuple[tuple[Candidate, Block], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    method: Method
    candidates: tuple[Candidate, ...]
    blocks: tuple[tuple[Candidate, Block], ...]
    allowances: Mapping[str, Allowance]  # empty without candidates: budgets are not evaluated then (DIS-59)
    found: Found


def why_not(method: Method, round_: Round, candidate: Candidate) -> Block | None:
    """Whether people let the method begin now, then the method's own answer about one candidate."""
    return round_.held(candidate, method.reason) or why_refused(method, round_, candidate)


def why_refused(method: Method, round_: Round, candidate: Candidate) -> Block | None:
    """Why the method does not take it, whatever people hold: it rests, or the method's own question."""
    rest = rest_of(round_.fleet, candidate.member) if method.reason is not DisruptionReason.EMPTY else None
    if rest is not None:
        return rest
    found = round_.judging.judge(candidate.member.node, method.name, method.why_not, round_, candidate)
    return not_judged(found) if isinstance(found, Unjudged) else found


def _decision(method: Method, round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """What the method decides; if that fails, the other methods go on."""
    found = round_.judging.judge(method, "decision", method.decide, round_, candidates)
    return Found(error=found.says) if isinstance(found, Unjudged) else found


def run(method: Method, round_: Round) -> Attempt:
    """The candidates of the method's class, its own question about each, the allowances, its decision (DIS-4)."""
    candidates, blocks = round_.asked(method)
    return Attempt(
        method=method,
        candidates=candidates,
        blocks=blocks,
        allowances=round_.allowances(method.reason) if candidates else {},
        found=_decision(method, round_, candidates) if candidates else Found(),
    )
