"""A cheaper set of nodes for any set of nodes, in pools under the policy cost (decision record 165).

Upstream replaces many nodes by one at most. Here the nodes whose price most exceeds the worth of their pods are
imagined gone together, and placement finds the cheapest new nodes. Every node that joins the set must add more than the
least saving required for moving its pods, so that each is worth it by itself. What budgets do not permit now is found
again in the next round, from the cluster as it is then.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.disruption.balanced import moves_of
from dovetail.disruption.commands import Command, Found
from dovetail.disruption.methods.consolidation import (
    CANT_REPLACE,
    SPOT_CHOICE,
    Computed,
    admits,
    candidate_notices,
    only_spot,
    refused,
    simulated,
    why_not_ripe,
)
from dovetail.disruption.methods.multi_node import approvals
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.nodes.past_moves import moved_from, remembered_moves
from dovetail.disruption.plan import TOO_LARGE, is_too_large
from dovetail.disruption.rounds import Method, RemainingAllowances, Round, ShouldStop, never, out_of_budget
from dovetail.disruption.simulation.simulation import Replacement, Simulation
from dovetail.model import names
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.scheduling.requirements import Requirement

SEARCHES: Final = 32  # sets for which cheaper nodes are looked for in one round
MISSES: Final = 8  # searches in a row after which a round is over, if none of them gained anything
QUESTIONS: Final = 256  # sets that are asked about in one round; most are hopeless, which a plain pass shows
FIRST: Final = 8  # nodes that are tried together at first

NOT_UNDER_COST: Final = Block(why=WhyNot.NOT_UNDER_COST, message="NodePool is not under the policy cost", event=None)


def why_not_cheaper(round_: Round, candidate: Candidate) -> Block | None:
    """Why no cheaper set is looked for: the reasons of all consolidation, and a pool under the default policy."""
    block = why_not_ripe(round_, candidate)
    if block is not None:
        return block
    return None if candidate.pool.name in round_.simulator.cost_pools else NOT_UNDER_COST


def least_saving(round_: Round, candidates: Sequence[Candidate]) -> float:
    """What disturbing these nodes must save an hour: a share of their pools' cost for the same disturbance."""
    found = 0.0
    for candidate in candidates:
        totals = round_.scales.totals.get(candidate.pool.name)
        if totals is not None and totals.disruption > 0:
            found += round_.settings.worth * totals.cost * candidate.cost / totals.disruption
    return found


def command_for(round_: Round, candidates: tuple[Candidate, ...]) -> Command | None:
    """The command for just these nodes, if it saves enough and every pool approves of it."""
    command = compute_cheaper(round_, candidates).command
    if command is None or not all(score.is_approved for score in round_.scales.scores(command)):
        return None
    return command


def compute_cheaper(round_: Round, candidates: tuple[Candidate, ...]) -> Computed:
    """Fewer or cheaper nodes whose launch is certain to save enough; or why there are none."""
    simulation = simulated(round_, candidates, cheaper=True, up_only=True)
    if isinstance(simulation, Computed):
        return simulation
    made = _replacements(round_, candidates, simulation)
    if isinstance(made, Computed):
        return made
    costs = round_.simulator.cost_pools
    beside = sum(costs.get(c.pool.name, 0.0) for c in candidates) - sum(costs.get(r.pool, 0.0) for r in made)
    command = Command(
        reason=DisruptionReason.UNDERUTILIZED,
        candidates=candidates,
        replacements=made,
        moved=simulation.moved,
        beside=beside,
    )
    if command.savings < least_saving(round_, candidates):
        return _saves_too_little(candidates)
    if is_too_large(round_, command):
        return refused(candidates, WhyNot.TOO_LARGE, TOO_LARGE.message)
    return Computed(command=command)


def _saves_too_little(candidates: Sequence[Candidate]) -> Computed:
    message = "What is saved is too little for the pods that would move"
    return Computed(block=Block(why=WhyNot.SAVES_TOO_LITTLE, message=message, event=None)) if candidates else Computed()


def _replacements(
    round_: Round, candidates: tuple[Candidate, ...], simulation: Simulation
) -> tuple[Replacement, ...] | Computed:
    """The new nodes, each with only those types whose launch cannot cost too much.

    What may be spent is divided among them by what each is expected to cost, so that together they save enough,
    whichever of its types each is launched as.
    """
    made = [round_.priced(each) for each in simulation.replacements]
    if not made:
        return ()
    costs = round_.simulator.cost_pools
    spent = sum(c.price + costs.get(c.pool.name, 0.0) for c in candidates)
    limit = spent - least_saving(round_, candidates) - sum(costs.get(each.pool, 0.0) for each in made)
    expected = sum(each.cheapest for each in made)
    if expected <= 0:
        return refused(candidates, WhyNot.NOT_CHEAPER, CANT_REPLACE.message)
    if expected >= limit:
        return _saves_too_little(candidates)
    narrowing = _Narrowing(round_, candidates)
    kept: list[Replacement] = []
    for each in made:
        narrowed = narrowing.narrowed(each, each.cheapest * limit / expected)
        if isinstance(narrowed, Computed):
            return narrowed
        kept.append(narrowed)
    return tuple(kept)


class _Narrowing:
    """What a replacement of certain nodes may be launched as."""

    def __init__(self, round_: Round, candidates: tuple[Candidate, ...]) -> None:
        self.round_ = round_
        self.candidates = candidates
        self.all_spot = all(c.capacity_type == names.CAPACITY_SPOT for c in candidates)
        self.before = moved_from(candidates, round_.fleet.now)
        self.moved_from = remembered_moves(candidates, self.before, round_.fleet.now)

    def narrowed(self, made: Replacement, limit: float) -> Replacement | Computed:
        """The types below the limit that undo no move, by the rules for spot (DIS-99, DIS-105)."""
        spot = admits(made.requirements.get(names.CAPACITY_TYPE), names.CAPACITY_SPOT)
        if self.all_spot and spot and not self.round_.settings.spot_to_spot:
            message = "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
            return refused(self.candidates, WhyNot.SPOT_TO_SPOT_OFF, message)
        if spot:
            made = self._as_spot(made)
        return self._below(made, limit)

    def _as_spot(self, made: Replacement) -> Replacement:
        """The replacement as spot only, if any of its types is sold as spot; otherwise it is launched on demand."""
        narrowed, prices = only_spot(made), self.round_.prices
        types = tuple(t for t in made.types if prices.suits(t, narrowed.requirements))
        return replace(narrowed, types=types) if types else made

    def _below(self, made: Replacement, limit: float) -> Replacement | Computed:
        prices, capacity = self.round_.prices, made.requirements.get(names.CAPACITY_TYPE)
        types = [t for t in made.types if not self._undoes(t.name, capacity)]
        left = prices.below(types, made.requirements, limit)
        if left.short:
            message = f"Filtering by price: minValues requirement is not met for label(s) ({' '.join(left.short)})"
            return refused(self.candidates, WhyNot.MIN_VALUES, message)
        if not left.types:
            return refused(self.candidates, WhyNot.NOT_CHEAPER, CANT_REPLACE.message)
        kept = left.types
        if self.all_spot and len(self.candidates) == 1 and admits(capacity, names.CAPACITY_SPOT):
            if len(kept) < SPOT_CHOICE:
                message = f"SpotToSpotConsolidation requires {SPOT_CHOICE} cheaper instance types, got {len(kept)}"
                return refused(self.candidates, WhyNot.SPOT_CHOICE_TOO_SMALL, message)
            needed, _ = prices.prefix(kept, made.requirements)
            kept = kept[: max(SPOT_CHOICE, needed)]
        return self._remembering(replace(made, types=kept, cheapest=prices.first_price(kept, made.requirements)))

    def _undoes(self, name: str, capacity: Requirement | None) -> bool:
        """Whether pods would return to what they were moved away from less than a day ago."""
        return any(kind == name and admits(capacity, capacity_type) for kind, capacity_type in self.before)

    def _remembering(self, made: Replacement) -> Replacement:
        if made.node is None:
            return made
        annotations = with_memory(made.node.annotations, moved_from=self.moved_from)
        return replace(made, node=replace(made.node, annotations=annotations))


@dataclass(slots=True)
class _Search:
    """The best set so far, and what did not fit it."""

    round_: Round
    left: RemainingAllowances
    worth: Mapping[str, float]  # by pod, its share of the least that new nodes for all pods cost
    is_time_up: ShouldStop = never
    best: Command | None = None
    chosen: tuple[Candidate, ...] = ()
    gain: float = 0.0
    error: str = ""
    questions: int = 0
    searches: int = 0
    misses: int = 0
    blocks: list[tuple[Candidate, Block]] = field(default_factory=list)

    @property
    def may_ask(self) -> bool:
        """Whether a further set may be asked about in this round."""
        within = self.searches < SEARCHES and self.misses < MISSES and self.questions < QUESTIONS
        return within and not self.error and not self.is_time_up() and not self.round_.should_stop()

    def joins(self, chunk: Sequence[Candidate]) -> bool:
        """Whether these nodes join the set: it must gain more than moving their pods requires."""
        trial = (*self.chosen, *chunk)
        self.questions += 1
        computed = self._hopeless(trial)
        if computed is None:
            self.searches += 1
            self.misses += 1
            computed = compute_cheaper(self.round_, trial)
        if computed.error and not self.round_.should_stop():
            self.error = computed.error
        command = computed.command
        gain = command.savings - least_saving(self.round_, trial) if command is not None else 0.0
        if command is None or gain <= self.gain or not self._is_approved(command):
            if len(chunk) == 1:
                block = computed.block if computed.block is not None and not self.chosen else None
                self.blocks.append((chunk[0], block or _saves_too_little(chunk).block or CANT_REPLACE))
            return False
        self.best, self.chosen, self.gain, self.misses = command, trial, gain, 0
        for candidate in chunk:
            self.left.take(candidate.pool.name)
        return True

    def _hopeless(self, trial: tuple[Candidate, ...]) -> Computed | None:
        """Why no search for cheaper nodes can make the set gain more: the pods that need new nodes are worth too much.

        One plain pass shows which pods those are, at a fraction of the cost of a search.
        """
        plain = simulated(self.round_, trial, up_only=True)
        if isinstance(plain, Computed):
            return plain
        costs = self.round_.simulator.cost_pools
        lowest = sum(self._lowest(each) for each in plain.replacements)
        most = sum(c.price + costs.get(c.pool.name, 0.0) for c in trial) - lowest - least_saving(self.round_, trial)
        return None if most > self.gain else _saves_too_little(trial)

    def _lowest(self, made: Replacement) -> float:
        """The least that its pods cost on new nodes; reserved capacity may cost less than they are worth."""
        beside = self.round_.simulator.cost_pools.get(made.pool, 0.0)
        worth = sum(self.worth.get(pod, 0.0) for pod in made.pods)
        return min(worth, self.round_.priced(made).cheapest + beside)

    def permitted(self, chunk: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
        """The nodes that the allowances permit in addition to the set, and those that they permit without it."""
        left, found, later = self.left.copy(), list[Candidate](), list[Candidate]()
        room = self.round_.settings.profile.most_consolidated - len(self.chosen)
        for candidate in chunk:
            pool = candidate.pool.name
            if not self.left.has(pool):
                self.blocks.append(out_of_budget(self.round_, candidate, DisruptionReason.UNDERUTILIZED))
            elif len(found) < room and left.take(pool):
                found.append(candidate)
            elif room > 0:
                later.append(candidate)
        return found, later

    def _is_approved(self, command: Command) -> bool:
        return all(score.is_approved for score in self.round_.scales.scores(command))


def waste_of(round_: Round, candidate: Candidate, worth: Mapping[str, float]) -> float:
    """What a node costs above what its pods are worth."""
    beside = round_.simulator.cost_pools.get(candidate.pool.name, 0.0)
    return candidate.price + beside - sum(worth.get(pod.key, 0.0) for pod in candidate.pods)


def in_parts(round_: Round, candidates: Sequence[Candidate], worth: Mapping[str, float]) -> list[list[Candidate]]:
    """The nodes to ask about together, those that waste most per disturbance first; equals by name.

    Several at a time as long as they waste more than moving their pods must save. The others are asked about one by
    one: they are worth it only if there is room for their pods, and none may join at the expense of others' savings.
    """
    waste = {c.name: waste_of(round_, c, worth) for c in candidates}
    ordered = sorted(candidates, key=lambda c: (-waste[c.name] / c.cost, c.name))
    wasteful = [c for c in ordered if waste[c.name] > least_saving(round_, (c,))]
    names_of = {c.name for c in wasteful}
    parts = [wasteful[at : at + FIRST] for at in range(0, len(wasteful), FIRST)]
    return [*parts, *([c] for c in ordered if c.name not in names_of)]


def decide_cheaper(round_: Round, candidates: tuple[Candidate, ...]) -> Found:
    """The set that gains most, among those that the allowances permit."""
    worth = round_.simulator.worth(candidates)
    left = RemainingAllowances.of(round_.allowances(DisruptionReason.UNDERUTILIZED))
    settings = round_.settings
    search = _Search(round_, left, worth, settings.cost.stopwatch(settings.cheaper_seconds))
    grow(search, in_parts(round_, candidates, worth))
    command = search.best
    scores = round_.scales.scores(command) if command else ()
    return Found(
        commands=(command,) if command is not None and not search.error else (),
        blocks=tuple(search.blocks),
        notices=(*(candidate_notices(command) if command and command.replacements else ()), *approvals(scores)),
        moves=moves_of(command, scores) if command else (),
        error=search.error,
        timed_out=round_.should_stop(),
    )


def grow(search: _Search, parts: Iterable[list[Candidate]]) -> None:
    """Add part after part to the set. A part that does not join as a whole is asked about again in halves, after all
    others."""
    waiting = deque(parts)
    while waiting and search.may_ask:
        chunk, later = search.permitted(waiting.popleft())
        if later:
            waiting.appendleft(later)
        if chunk and not search.joins(chunk) and len(chunk) > 1:
            half = (len(chunk) + 1) // 2
            waiting += [chunk[:half], chunk[half:]]


CHEAPER: Final = Method(
    name="cheaper",
    title="cheaper nodes together",
    reason=DisruptionReason.UNDERUTILIZED,
    kind="multi",
    why_not=why_not_cheaper,
    decide=decide_cheaper,
    anew=command_for,
)
