"""The answer of `dovetail explain node` in one line, and what a person can do about each reason to stay.

The messages with the reasons are Karpenter's, because users search for them. The closed list of reasons says what each
means and what ends it.
"""

from collections.abc import Mapping
from typing import Final

from dovetail.answers.wording import moment_text, plural, price_text, shown
from dovetail.disruption.budgets.allowances import Allowance
from dovetail.disruption.choose import METHODS
from dovetail.disruption.commands import Command
from dovetail.disruption.explain import NodeExplanation
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import Budget
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot

CONSOLIDATING: Final = frozenset(m.name for m in METHODS if m.reason is DisruptionReason.UNDERUTILIZED)


def lifted_by(why: str) -> str:
    """What ends a reason to stay; empty for an empty one."""
    return next((known.lifted_by for known in WhyNot if known == why), "")


def verdict_of(
    found: NodeExplanation,
    claim: NodeClaim | None,
    held: str = "",
    until: Mapping[str, float] | None = None,
    drain: str = "",
) -> str:
    """The answer in one line. `held`: by whom, if only others keep it from having left; `until`: by reason, when the
    window of the binding budget opens or closes; `drain`: what holds its drain, since when and what comes next."""
    if held:
        return f"everything of ours is done, and its NodeClaim waits for the Node to go: {held}"
    if claim is not None and claim.deleting_since is not None:
        return f"it is being terminated: its NodeClaim is deleted, and there is no way back{drain and f'; {drain}'}"
    blocked = [check for check in found.checks if not check.passes]
    if found.goes_for:
        return f"it would go now, for: {', '.join(found.goes_for)}"
    if blocked:
        more = f" (and {len(blocked) - 1} more)" if len(blocked) > 1 else ""
        return f"it stays: {blocked[0].message}{more}"
    if found.passed_over:
        return f"it stays: {_passed_over(found, until or {})}"
    if found.held:
        return f"it stays: {found.held[0].message}"
    if found.outcome is not None and found.outcome.block is not None and _consolidatable(found):
        return f"it stays: {found.outcome.block.message}"
    paused = next((each for each in found.methods if each.why is WhyNot.PAUSED), None)
    return f"it stays: {paused.message if paused is not None else 'no method has a reason to take it now'}"


def _passed_over(found: NodeExplanation, until: Mapping[str, float]) -> str:
    """What the first method with a reason to take it waits for."""
    first = found.passed_over[0]
    method = next(each for each in METHODS if each.name == first.method)
    takes = f"it would go for {method.reason}, but "
    if first.why is not WhyNot.BUDGET:
        return f"{takes}{first.message}; {lifted_by(first.why or '')}"
    allowance = next((each for each in found.allowances if each.reason == method.reason), None)
    if allowance is None:
        return f"{takes}{first.message}"
    return f"{takes}{budget_words(allowance, until.get(method.reason))}"


def budget_words(allowance: Allowance, until: float | None) -> str:
    """The words for a budget that lets no more nodes leave, until when, and what ends it."""
    if allowance.errors:
        return f"a budget of NodePool {allowance.pool} cannot be read, so none may go: {allowance.errors[0]}"
    if allowance.held and allowance.left <= 0:
        return allowance.held
    binding = allowance.binding
    limit = "" if binding is None else f" ({budget_text(binding)})"
    of_pool = f"the budget of NodePool {allowance.pool}{limit} lets"
    if allowance.left > 0:
        return f"{of_pool} {plural(allowance.left, 'node')} go at once, and others come first"
    if allowance.allowed > 0:
        going = f"{of_pool} {plural(allowance.allowed, 'node')} go at once for {allowance.reason}"
        return f"{going}, and {allowance.consuming} are leaving or not ready; the next goes when one of them is done"
    if until is None:
        return f"{of_pool} no node go for {allowance.reason}, until spec.disruption.budgets says otherwise"
    return f"{of_pool} no node go for {allowance.reason} until {moment_text(until)}, when its window closes"


def budget_text(budget: Budget) -> str:
    window = f" in the window {budget.schedule!r}" if budget.schedule else ""
    only = f" for {', '.join(budget.reasons)}" if budget.reasons else ""
    return f"nodes: {budget.nodes}{window}{only}"


def step_words(step: Command, node: str) -> str:
    """What a cheaper set of nodes means for one of the nodes that it replaces."""
    others = [c.name for c in step.candidates if c.name != node]
    together = f" together with {shown(others)}" if others else ""
    made = f"{plural(len(step.replacements), 'new node')}" if step.replacements else "room that there is"
    pods = sum(len(c.pods) for c in step.candidates)
    saves = f"saves {price_text(step.savings)} of {price_text(step.price)} and moves {plural(pods, 'pod')}"
    return f"it leaves{together} for {made}: {saves}"


def _consolidatable(found: NodeExplanation) -> bool:
    return any(answer.passes and answer.method in CONSOLIDATING for answer in found.methods)
