"""The answer of `dovetail explain node` in one line, and what a person can do about each reason to stay.

The messages beside the reasons are Karpenter's, because users search for them. What each means, and what ends it,
stands with the closed list of reasons.
"""

from typing import Final

from dovetail.answers.wording import plural, price_text, shown
from dovetail.disruption.choose import METHODS
from dovetail.disruption.commands import Command
from dovetail.disruption.explain import NodeExplanation
from dovetail.model.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.nodes import NodeClaim

CONSOLIDATING: Final = frozenset(m.name for m in METHODS if m.reason is DisruptionReason.UNDERUTILIZED)


def lifted_by(why: str) -> str:
    """What ends a reason to stay; nothing for an empty one."""
    return next((known.lifted_by for known in WhyNot if known == why), "")


def verdict_of(found: NodeExplanation, claim: NodeClaim | None, held: str = "") -> str:
    """The answer in one line. `held`: by whom, where it has left but for others."""
    if held:
        return f"everything of ours is done, and its NodeClaim waits for the Node to go: {held}"
    if claim is not None and claim.deleting_since is not None:
        return "it is being terminated: its NodeClaim is deleted, and there is no way back"
    blocked = [check for check in found.checks if not check.passes]
    if found.goes_for:
        return f"it would go now, for: {', '.join(found.goes_for)}"
    if blocked:
        more = f" (and {len(blocked) - 1} more)" if len(blocked) > 1 else ""
        return f"it stays: {blocked[0].message}{more}"
    if found.outcome is not None and found.outcome.block is not None and _consolidatable(found):
        return f"it stays: {found.outcome.block.message}"
    return "it stays: no method has a reason to take it now"


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
