"""Whether a plan that waited is still right (DIS-132 to DIS-139).

When the wait is over, the checks that made the plan judge it again on a fresh snapshot. A command for empty nodes drops
those that are no longer empty. A consolidation is valid as a whole or not at all, except a cheaper set of nodes, which
is made anew from those of its nodes that are still candidates. Nodes are recognised by the UIDs of their claims, as a
new node may have taken an old one's name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from dovetail.disruption.budgets.allowances import budget_notices
from dovetail.disruption.choose import METHODS, block_notices, screening_notices
from dovetail.disruption.methods.consolidation import unplaced_text
from dovetail.disruption.methods.emptiness import awaited_nodes
from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.plan import planned, target_of, text_for
from dovetail.disruption.rounds import Method, RemainingAllowances, Round
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, Seen
from dovetail.model.objects.judging import Unjudged
from dovetail.model.reasons.disruption_reasons import DisruptionReason, Invalidity
from dovetail.notices.decisions import decision_notice
from dovetail.notices.notice import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Valid:
    """The plan may be carried out, perhaps without some of its nodes."""

    kind: Literal["valid"] = "valid"
    plan: DisruptionPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid:
    """Nothing of the plan may be carried out. `candidates`: how many were proposed (DIS-134)."""

    kind: Literal["invalid"] = "invalid"
    reason: Invalidity
    message: str
    candidates: int


Validity = Valid | Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """The second look at a plan: whether it is still valid, and the notices of that look."""

    validity: Validity
    notices: tuple[Notice, ...]


def look_again(plan: DisruptionPlan, round_: Round) -> SecondLook:
    """The plan, as far as it is still valid."""
    kept: list[DisruptionCommand] = []
    refused: list[Invalid] = []
    notices: list[Notice] = []
    lists = {each: number for number, each in enumerate(plan.type_lists)}
    for command in plan.commands:
        result = round_.judging.judge(command, "second look", _judge, round_, lists, command, notices)
        if isinstance(result, Unjudged):
            result = _invalid(command, Invalidity.UNKNOWN, result.says)
        if isinstance(result, Invalid):
            refused.append(result)
            notices.extend(_rejections(round_, command, result))
        else:
            kept.append(result)
    if kept:
        stands = replace(plan, commands=tuple(kept), type_lists=tuple(lists), seen=Seen.of(round_.snapshot))
        return SecondLook(validity=Valid(plan=stands), notices=tuple(notices))
    nothing = Invalid(reason=Invalidity.CHURN, message="the plan is empty", candidates=0)
    return SecondLook(validity=refused[0] if refused else nothing, notices=tuple(notices))


def _rejections(round_: Round, command: DisruptionCommand, refused: Invalid) -> Iterator[Notice]:
    """The notices of a consolidation that is dropped (DIS-140); upstream forgets commands for several nodes (DIQ-1)."""
    if command.reason != DisruptionReason.UNDERUTILIZED:
        return
    if len(command.targets) > 1 and not round_.settings.profile.announces_shared_rejections:
        return
    for target in command.targets:
        text = text_for(command, target.node)
        message = f"Consolidation rejected: {text}, reason: {refused.reason} (savings: ${command.savings:.2f})"
        yield decision_notice("Node", target.node, "ConsolidationRejected", message)
        yield decision_notice("NodeClaim", target.claim, "ConsolidationRejected", message)


def _judge(
    round_: Round, lists: dict[tuple[str, ...], int], command: DisruptionCommand, notices: list[Notice]
) -> DisruptionCommand | Invalid:
    """`lists`: the plan's lists of types; a command that is made anew may add some."""
    method = next((m for m in METHODS if m.name == command.method), None)
    if method is None:
        return _invalid(command, Invalidity.UNKNOWN, f"no method is called {command.method}")
    allowed, blocks = round_.asked(method)
    notices.extend(screening_notices(round_, method.reason.is_eventual))
    notices.extend(n for c, block in blocks for n in block_notices(c, block))
    wanted = {t.claim_uid for t in command.targets}
    # The targets that are candidates of the method now, recognised by the UIDs of their claims (DIS-133).
    present = {c.claim.uid: c for c in allowed if c.claim.uid in wanted}
    if method.reason == DisruptionReason.EMPTY:
        awaited = awaited_nodes(round_)
        present = {uid: c for uid, c in present.items() if c.name not in awaited}
        return _still_empty(round_, command, present, notices)
    if method.anew is not None:
        kept = _permitted(round_, method.reason, command, present, notices) if present else []
        return _made_anew(round_, method, command, kept, lists)
    standing = _still_standing(round_, method, command, present, notices)
    if standing is not None or not method.reason.waits:
        return standing or command
    candidates = [present[t.claim_uid] for t in command.targets]
    return _same_answer(round_, tuple(lists), command, candidates) or command


def _permitted(
    round_: Round,
    reason: DisruptionReason,
    command: DisruptionCommand,
    present: Mapping[str, Candidate],
    notices: list[Notice],
) -> list[Candidate]:
    """The targets that are present and have an allowance; the first ones if it has shrunk."""
    allowed = round_.allowances(reason)
    notices.extend(budget_notices(allowed))
    left = RemainingAllowances.of(allowed)
    return [present[t.claim_uid] for t in command.targets if t.claim_uid in present and left.take(t.pool)]


def _made_anew(
    round_: Round,
    method: Method,
    command: DisruptionCommand,
    kept: list[Candidate],
    lists: dict[tuple[str, ...], int],
) -> DisruptionCommand | Invalid:
    """The method's new command for the nodes that it may still take; none if it would no longer take them."""
    if not kept:
        return _invalid(command, Invalidity.CHURN, f"{len(command.targets)} candidates are no longer valid")
    found = method.anew(round_, tuple(kept)) if method.anew is not None else None
    if found is None:
        return _invalid(command, Invalidity.SCHEDULING, "nothing is saved by it any more")
    return planned(method.name, found, round_.settings.well_known, lists)


def _still_empty(
    round_: Round, command: DisruptionCommand, present: Mapping[str, Candidate], notices: list[Notice]
) -> DisruptionCommand | Invalid:
    """The targets that are still empty; if a budget shrank, the first in the command's own order (DIS-134)."""
    if not present:
        return _invalid(command, Invalidity.CHURN, f"{len(command.targets)} candidates are no longer valid")
    kept = _permitted(round_, DisruptionReason.EMPTY, command, present, notices)
    if not kept:
        message = f"{len(command.targets)} candidates are nominated or would violate disruption budgets"
        return _invalid(command, Invalidity.BUDGET, message)
    return replace(command, targets=tuple(target_of(each, DisruptionReason.EMPTY) for each in kept))


def _still_standing(
    round_: Round,
    method: Method,
    command: DisruptionCommand,
    present: Mapping[str, Candidate],
    notices: list[Notice],
) -> Invalid | None:
    """Why not every node is still a candidate with an allowance (DIS-135 a, b)."""
    if any(t.claim_uid not in present for t in command.targets):
        return _invalid(command, Invalidity.CHURN, f"{len(command.targets)} candidates are no longer valid")
    if len(_permitted(round_, method.reason, command, present, notices)) < len(command.targets):
        message = "a candidate can no longer be disrupted without violating budgets"
        return _invalid(command, Invalidity.BUDGET, message)
    return None


def _same_answer(
    round_: Round, lists: tuple[tuple[str, ...], ...], command: DisruptionCommand, candidates: list[Candidate]
) -> Invalid | None:
    """Why the simulation no longer needs the same number of nodes of the planned types (DIS-135 c, d)."""
    simulation = round_.simulator.simulate(candidates, consolidating=True)
    if simulation.failed or simulation.candidate_leaves:
        return _invalid(command, Invalidity.UNKNOWN, simulation.failed or "a candidate is leaving")
    if simulation.unplaced:
        return _invalid(command, Invalidity.SCHEDULING, unplaced_text(simulation))
    if len(simulation.replacements) != len(command.replacements):
        return _invalid(command, Invalidity.SCHEDULING, "scheduling simulation produced new results")
    for asked, made in zip(command.replacements, simulation.replacements, strict=True):
        if not set(lists[asked.type_list]) <= {t.name for t in made.types}:
            return _invalid(command, Invalidity.SCHEDULING, "scheduling simulation produced new results")
    return None


def _invalid(command: DisruptionCommand, reason: Invalidity, message: str) -> Invalid:
    return Invalid(reason=reason, message=message, candidates=len(command.targets))
