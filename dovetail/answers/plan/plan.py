"""`dovetail plan`: what provisioning and disruption would do now, without doing it.

Calls the planners' own functions, both on one snapshot. Nothing is written, nothing is marked, no notice is
published. Emptiness and consolidation look twice, 15 s apart, before anything happens; the plan says so.
"""

from dataclasses import dataclass
from typing import Final

from dovetail.answers.explain.pool_words import pools_left_out
from dovetail.answers.look.limits import AnswerLimit
from dovetail.answers.look.sources import Look
from dovetail.answers.plan.left import LeftAnswer, left_now
from dovetail.answers.wording import plural, shown
from dovetail.disruption.budgets.allowances import allowances
from dovetail.disruption.choose import Choice, NothingToDo, choose
from dovetail.disruption.simulation.pricing import PriceBook
from dovetail.lifecycle.unfinished import expired
from dovetail.lifecycle.unplanned_claims import with_unplanned_as_nodes
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, ProposedNode, Refusal
from dovetail.model import names
from dovetail.model.places.placements import NewNode, Placement
from dovetail.placement.place_pods import Index
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.rules.pause.pauses import pauses, without_pauses
from dovetail.settings.deciding import disruption_settings, placement_settings

MOST_HELD_BACK: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNodeAnswer:
    pool: str
    types: int
    cheapest: str
    price: float  # of the cheapest, in the zones and capacity types allowed
    capacity_types: tuple[str, ...]
    zones: tuple[str, ...]
    requests: tuple[tuple[str, int], ...]
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAnswer:
    """A disruption that would be started."""

    reason: str
    method: str
    nodes: tuple[str, ...]
    replacements: int
    summary: str
    savings: float
    look_again_after: float
    becomes: tuple[str, ...] = ()  # of each replacement: its cheapest type and its pool
    pods: int = 0  # that would move
    price: float = 0.0  # of the leaving nodes, an hour


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAnswer:
    """How many nodes of a pool may leave now for one reason, and how many of those places are taken."""

    pool: str
    reason: str
    allowed: int
    in_use: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLookAnswer:
    """A plan of the Scheduler that waits for its second look; until then `dovetail cancel` drops it."""

    due: float
    reason: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAnswer:
    """Both plans, on one snapshot."""

    source: str
    now: float
    new_nodes: tuple[NewNodeAnswer, ...] = ()
    more_new_nodes: bool = False  # the plan is cut to size; the rest comes in the next round
    onto_existing: tuple[tuple[str, int], ...] = ()  # node -> pods expected on it
    refused_pods: tuple[Refusal, ...] = ()
    ignored_pods: tuple[Refusal, ...] = ()
    pools_left_out: tuple[tuple[str, str], ...] = ()  # name and why
    disruptions: tuple[CommandAnswer, ...] = ()
    refused_nodes: tuple[Refusal, ...] = ()
    next_due: float | None = None
    errors: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()  # what would be done if no pause, policy or roll-out held it
    second_looks: tuple["SecondLookAnswer", ...] = ()
    budgets: tuple["BudgetAnswer", ...] = ()
    left: LeftAnswer | None = None  # what the rest of consolidation would save; None if not asked for
    not_reached: int = 0  # waiting pods that there was no time for
    cut: bool = False  # there was no time to look at every node


def plan_now(look: Look) -> PlanAnswer:
    """What would be done on this snapshot."""
    placing = placement_settings(look.settings)
    first = look.placing()
    plan, placement = plan_provisioning(with_unplanned_as_nodes(look.snapshot), placing, first)
    second = look.searching()
    choice = choose(look.snapshot, disruption_settings(look.settings), second)
    held_back = _held_back(look, choice, second)
    cut = second()
    not_reached = sum(each.count for each in plan.refusals if each.reason == "not_reached")
    nothing = choice if isinstance(choice, NothingToDo) else NothingToDo()
    return PlanAnswer(
        source=look.source,
        now=look.snapshot.now,
        new_nodes=tuple(_new_node(node, PriceBook(placing.well_known)) for node in placement.new[: len(plan.proposed)]),
        more_new_nodes=plan.more,
        onto_existing=tuple((name, len(pods)) for name, pods in sorted(placement.existing.items())),
        refused_pods=plan.refusals,
        ignored_pods=_ignored(placement),
        pools_left_out=pools_left_out(Index(look.snapshot, placing)),
        disruptions=_commands(choice) if isinstance(choice, DisruptionPlan) else (),
        refused_nodes=nothing.refusals,
        next_due=nothing.next_due,
        errors=nothing.errors,
        unreadable=tuple(f"{u.kind} {u.name}: {u.field}: {u.message}" for u in look.unreadable),
        notes=(*look.notes, *first.pods_note(not_reached), *([second.note("not every node was looked at")] * cut)),
        pauses=look.pauses,
        held_back=held_back,
        second_looks=tuple(
            SecondLookAnswer(due=held.due, reason=command.reason, nodes=_nodes(command))
            for held in look.held
            for command in held.plan.commands
        ),
        budgets=_budgets(look),
        left=left_now(look),
        not_reached=not_reached,
        cut=cut,
    )


def _budgets(look: Look) -> tuple[BudgetAnswer, ...]:
    """The budgets of every pool that has nodes, for every reason that budgets know."""
    found = allowances(look.snapshot, disruption_settings(look.settings))
    return tuple(
        BudgetAnswer(
            pool=pool,
            reason=reason,
            allowed=min(allowance.allowed, allowance.nodes),
            in_use=allowance.consuming,
            left=min(allowance.left, allowance.nodes),
        )
        for (pool, reason), allowance in sorted(found.items())
        if allowance.nodes and reason == allowance.reason.budget
    )


def _held_back(look: Look, now: Choice, limit: AnswerLimit) -> tuple[str, ...]:
    """What would be begun now if people held nothing, in words. `now`: what is begun as it is."""
    if not pauses(look.snapshot) and not look.snapshot.policies and not look.snapshot.rollouts:
        return ()
    free = without_pauses(look.snapshot)
    waiting = {order.claim.name for order in expired(free)} - {order.claim.name for order in expired(look.snapshot)}
    found = [f"{plural(len(waiting), 'NodeClaim')} past the expireAfter: {shown(sorted(waiting))}"] if waiting else []
    then = choose(free, disruption_settings(look.settings), limit)
    if isinstance(then, DisruptionPlan):
        begun = {_nodes(command) for command in now.commands} if isinstance(now, DisruptionPlan) else set()
        left = [command for command in then.commands if _nodes(command) not in begun]
        found += [f"{command.reason} ({command.method}): {shown(_nodes(command))}" for command in left[:MOST_HELD_BACK]]
    return tuple(found)


def _nodes(command: DisruptionCommand) -> tuple[str, ...]:
    return tuple(t.node or t.claim for t in command.targets)


def _new_node(node: NewNode, prices: PriceBook) -> NewNodeAnswer:
    return NewNodeAnswer(
        pool=node.pool,
        types=len(node.types),
        cheapest=node.types[0].name if node.types else "",
        price=prices.first_price(node.types, node.requirements),
        capacity_types=_values(node, names.CAPACITY_TYPE),
        zones=_values(node, names.ZONE),
        requests=tuple(sorted(node.requests.items())),
        pods=tuple(sorted(p.key for p in node.pods)),
    )


def _values(node: NewNode, key: str) -> tuple[str, ...]:
    """The values that a requirement allows; empty if it allows any."""
    found = node.requirements.get(key)
    return tuple(sorted(found.values)) if found is not None and not found.complement else ()


def _ignored(placement: Placement) -> tuple[Refusal, ...]:
    by_why: dict[str, list[str]] = {}
    for ignored in placement.ignored:
        by_why.setdefault(ignored.why, []).append(ignored.pod.key)
    return tuple(
        Refusal(reason=why, count=len(pods), examples=tuple(sorted(pods)[:3])) for why, pods in sorted(by_why.items())
    )


def _commands(plan: DisruptionPlan) -> tuple[CommandAnswer, ...]:
    return tuple(_command(command, plan) for command in plan.commands)


def _command(command: DisruptionCommand, plan: DisruptionPlan) -> CommandAnswer:
    return CommandAnswer(
        reason=command.reason,
        method=command.method,
        nodes=_nodes(command),
        replacements=len(command.replacements),
        summary=command.summary,
        savings=command.savings,
        look_again_after=plan.validate_after,
        becomes=tuple(f"{_cheapest(made, plan)} of {made.pool}" for made in command.replacements),
        pods=len({uid for target in command.targets for uid in target.pods}),
        price=command.price,
    )


def _cheapest(made: ProposedNode, plan: DisruptionPlan) -> str:
    """The lists are in price order."""
    types = plan.type_lists[made.type_list]
    return types[0] if types else "no type"
