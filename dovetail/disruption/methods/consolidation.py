"""Whether nodes can be consolidated: deleted, or replaced by one cheaper node (DIS-96 to DIS-106).

If a single node cannot be, the reason is published on it. For several nodes at once it is published on none of them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dovetail.disruption.commands import Command, both
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.plan import TOO_LARGE, is_too_large
from dovetail.disruption.rounds import Round
from dovetail.disruption.simulation.simulation import Replacement, Simulation
from dovetail.model import names
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.scheduling.requirements import Requirement, intersect, requirement
from dovetail.notices.notice import Notice

SHOWN: Final = 5  # NodePools that are named
SPOT_CHOICE: Final = 15  # types that a single spot node needs to choose from (DIS-105)


CANT_REPLACE: Final = Block(
    why=WhyNot.NOT_CHEAPER, message="Can't replace with a cheaper node", event="Unconsolidatable"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """The result of consolidating some candidates: a command, or why there is none. `error`: it cannot be computed."""

    command: Command | None = None
    block: Block | None = None
    notices: tuple[Notice, ...] = ()
    error: str = ""


NO_TIME: Final = Block(why=WhyNot.OUT_OF_TIME, message="No time was left", event=None)
UNDER_COST: Final = Block(why=WhyNot.UNDER_COST, message="NodePool is under the policy cost", event=None)


def why_not_consolidatable(round_: Round, candidate: Candidate) -> Block | None:
    """Why consolidation does not consider the candidate, which may be in a pool under the policy cost."""
    block = why_not_ripe(round_, candidate)
    if block is not None:
        return block
    return UNDER_COST if candidate.pool.name in round_.simulator.cost_pools else None


def why_not_ripe(round_: Round, candidate: Candidate) -> Block | None:
    """Why no method of consolidation considers the candidate; in this order (DIS-96)."""
    pool, labels = candidate.pool, candidate.member.labels
    if candidate.is_static:
        return Block(why=WhyNot.STATIC_POOL, message="NodePool is static", event=None)
    if candidate.instance_type is None:
        return _unconsolidatable(
            WhyNot.UNKNOWN_TYPE, f'Instance Type "{labels.get(names.INSTANCE_TYPE, "")}" not found'
        )
    for key, why in ((names.CAPACITY_TYPE, WhyNot.NO_CAPACITY_TYPE), (names.ZONE, WhyNot.NO_ZONE)):
        if key not in labels:
            return _unconsolidatable(why, f'Node does not have label "{key}"')
    if pool.disruption.consolidate_after is None:
        return _unconsolidatable(WhyNot.CONSOLIDATION_OFF, f'NodePool "{pool.name}" has consolidation disabled')
    if candidate.is_empty:
        return Block(why=WhyNot.IS_EMPTY, message="Node is empty", event=None)
    if pool.disruption.policy == "WhenEmpty":
        message = f'NodePool "{pool.name}" has consolidation policy WhenEmpty, but node is not empty'
        return _unconsolidatable(WhyNot.POLICY_WHEN_EMPTY, message)
    if not round_.is_quiet(candidate):
        return Block(why=WhyNot.NOT_QUIET, message="consolidateAfter has not elapsed", event=None)
    return None


def _unconsolidatable(why: WhyNot, message: str) -> Block:
    return Block(why=why, message=message, event="Unconsolidatable")


def compute(round_: Round, candidates: Sequence[Candidate]) -> Computed:
    """Simulate, then check that the result is fewer nodes or a cheaper one (DIS-99), and that a plan can carry it."""
    computed = _compute(round_, candidates)
    if computed.command is not None and is_too_large(round_, computed.command):
        return refused(candidates, WhyNot.TOO_LARGE, TOO_LARGE.message)
    return computed


def _compute(round_: Round, candidates: Sequence[Candidate]) -> Computed:
    if len(candidates) > 1 and round_.simulator.is_hopeless(candidates):
        return refused(candidates, WhyNot.NOT_CHEAPER, CANT_REPLACE.message)
    simulation = simulated(round_, candidates)
    if isinstance(simulation, Computed):
        return simulation
    count = len(simulation.replacements)
    if count > 1:
        message = f"Can't remove without creating {count} candidates"
        return refused(candidates, WhyNot.TOO_MANY_REPLACEMENTS, message)
    if count == 0:
        return Computed(command=_command(candidates, simulation, ()))
    return _replace(round_, candidates, simulation)


def simulated(
    round_: Round, candidates: Sequence[Candidate], *, cheaper: bool = False, up_only: bool = False
) -> Simulation | Computed:
    """The cluster without these nodes, with all their pods placed; or why that is impossible."""
    simulation = round_.simulator.simulate(candidates, consolidating=True, cheaper=cheaper, up_only=up_only)
    if simulation.candidate_leaves:
        return Computed(block=Block(why=WhyNot.DELETING, message="A candidate is leaving", event=None))
    if simulation.failed:
        return Computed(error=simulation.failed)
    if simulation.unplaced and round_.should_stop():
        return Computed(block=NO_TIME)  # pods that were not reached are not without a place
    if simulation.unplaced:
        return refused(candidates, WhyNot.PODS_HAVE_NO_PLACE, unplaced_text(simulation))
    reason = DisruptionReason.UNDERUTILIZED
    closed = frozenset[str]().union(*(round_.others_closed(c.pool.name, reason) for c in candidates))
    entered = closed.intersection(made.pool for made in simulation.replacements)
    if entered:
        return refused(candidates, WhyNot.PODS_HAVE_NO_PLACE, f"Can't replace now: {closed_text(entered)}")
    return simulation


def unplaced_text(simulation: Simulation) -> str:
    """The pods that would find no place, at most five by name (DIS-91)."""
    shown = [f"{pod} => {why}" for pod, why in sorted(simulation.unplaced.items())[:5]]
    others = len(simulation.unplaced) - len(shown)
    return f"Not all pods would schedule, {' '.join(shown)} " + (f"and {others} other(s)" if others > 0 else "")


def closed_text(pools: Collection[str]) -> str:
    """That none of these NodePools may be entered by others."""
    named = ", ".join(sorted(pools)[:SHOWN])
    return f"by a NodeRollout or an open breaker no node of NodePool {named} may replace it now"


def refused(candidates: Sequence[Candidate], why: WhyNot, message: str) -> Computed:
    """Why there is no command; for several nodes nothing is published (DIS-99)."""
    return Computed(block=Block(why=why, message=message, event="Unconsolidatable" if len(candidates) == 1 else None))


def _command(candidates: Sequence[Candidate], simulation: Simulation, replacements: tuple[Replacement, ...]) -> Command:
    return Command(
        reason=DisruptionReason.UNDERUTILIZED,
        candidates=tuple(candidates),
        replacements=replacements,
        moved=simulation.moved,
    )


def admits(item: Requirement | None, value: str) -> bool:
    """Whether a requirement, or none, lets a label have the value."""
    return item is None or item.has(value)


def _replace(round_: Round, candidates: Sequence[Candidate], simulation: Simulation) -> Computed:
    """One new node, if it is certain to be cheaper (DIS-99 steps 5 to 9)."""
    made, prices = round_.priced(simulation.replacements[0]), round_.prices
    capacity = made.requirements.get(names.CAPACITY_TYPE)
    all_spot = all(c.capacity_type == names.CAPACITY_SPOT for c in candidates)
    if all_spot and admits(capacity, names.CAPACITY_SPOT):
        return _spot_to_spot(round_, candidates, simulation, made)
    kept = _cheaper(round_, candidates, made)
    if isinstance(kept, Computed):
        return kept
    if admits(capacity, names.CAPACITY_SPOT) and admits(capacity, names.CAPACITY_ON_DEMAND):
        kept = only_spot(kept)
        if round_.settings.profile.needs_launchable_spot and not any(
            prices.suits(t, kept.requirements) for t in kept.types
        ):
            # A launch restricted to spot would be certain to fail (DIQ-9).
            return refused(candidates, WhyNot.NOT_CHEAPER, CANT_REPLACE.message)
    return _replaced(round_, candidates, simulation, kept)


def _cheaper(round_: Round, candidates: Sequence[Candidate], made: Replacement) -> Replacement | Computed:
    limit = sum(c.price for c in candidates)
    left = round_.prices.below(made.types, made.requirements, limit)
    if left.short:
        labels = " ".join(left.short)
        message = f"Filtering by price: minValues requirement is not met for label(s) (label(s)=[{labels}])"
        return refused(candidates, WhyNot.MIN_VALUES, message)
    if not left.types:
        return refused(candidates, WhyNot.NOT_CHEAPER, CANT_REPLACE.message)
    return replace(made, types=left.types)


def only_spot(made: Replacement) -> Replacement:
    """The replacement launched as spot or not at all."""
    spot = requirement(names.CAPACITY_TYPE, "In", (names.CAPACITY_SPOT,))
    present = made.requirements.get(names.CAPACITY_TYPE)
    narrowed = spot if present is None else intersect(present, spot)
    return replace(made, requirements={**made.requirements, names.CAPACITY_TYPE: narrowed})


def _spot_to_spot(
    round_: Round, candidates: Sequence[Candidate], simulation: Simulation, made: Replacement
) -> Computed:
    """A cheaper spot node in place of spot nodes, if there is enough to choose from (DIS-105)."""
    if not round_.settings.spot_to_spot:
        message = "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
        return refused(candidates, WhyNot.SPOT_TO_SPOT_OFF, message)
    made = only_spot(made)
    launchable = tuple(t for t in made.types if round_.prices.suits(t, made.requirements))
    kept = _cheaper(round_, candidates, replace(made, types=launchable))
    if isinstance(kept, Computed):
        return kept
    if len(candidates) > 1:
        return _replaced(round_, candidates, simulation, kept)
    if len(kept.types) < SPOT_CHOICE:
        message = (
            f"SpotToSpotConsolidation requires {SPOT_CHOICE} cheaper instance type options than the current candidate "
            f"to consolidate, got {len(kept.types)}"
        )
        return refused(candidates, WhyNot.SPOT_CHOICE_TOO_SMALL, message)
    needed, _short = round_.prices.prefix(kept.types, kept.requirements)
    return _replaced(round_, candidates, simulation, replace(kept, types=kept.types[: max(SPOT_CHOICE, needed)]))


def _replaced(round_: Round, candidates: Sequence[Candidate], simulation: Simulation, kept: Replacement) -> Computed:
    priced = replace(kept, cheapest=round_.prices.first_price(kept.types, kept.requirements))
    command = _command(candidates, simulation, (priced,))
    return Computed(command=command, notices=candidate_notices(command))


def candidate_notices(command: Command) -> tuple[Notice, ...]:
    """The notices of a command with a replacement, whatever becomes of it (DIS-100)."""
    return tuple(
        notice
        for c in command.candidates
        for notice in both(
            c,
            "ConsolidationCandidate",
            f"Consolidation candidate: {command.text_for(c)} (savings: ${command.savings:.2f})",
        )
    )
