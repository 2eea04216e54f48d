"""`dovetail explain node` as text: one screen, the answer first, each refusal with what can be done."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dovetail.answers.explain.explain_node import BEING_TERMINATED, BudgetAnswer, Move, NodeAnswer
from dovetail.answers.explain.node_words import lifted_by
from dovetail.answers.wording import duration_text, moment_text, plural, price_text, shown, when, wrapped
from dovetail.disruption.budgets.budgets import UNBOUNDED
from dovetail.disruption.choose import METHODS

MOST_HELD: Final = 8
TITLES: Final = {method.name: method.title for method in METHODS}


def node_text(answer: NodeAnswer) -> str:
    return "\n".join(_lines(answer))


def _lines(answer: NodeAnswer) -> Iterator[str]:
    yield from wrapped("", f"Node {answer.node}  ({answer.source})", indent=0)
    for line in answer.pauses:
        yield from wrapped("", line)
    yield from wrapped("", answer.says)
    yield from _identity(answer)
    yield from _timers(answer)
    yield from _checks(answer)
    yield from _held(answer)
    if answer.state != BEING_TERMINATED:
        yield from _ways(answer)
    if answer.notes:
        yield ""
    for note in answer.notes:
        yield from wrapped("note      ", note)


def _ways(answer: NodeAnswer) -> Iterator[str]:
    """Which methods may take it, and with what result."""
    yield from _choosy(answer)
    yield from _methods(answer)
    yield from _budgets(answer)
    if answer.step:
        yield ""
        yield "What the policy cost wants with it:"
        yield from wrapped("- ", answer.step)
    if answer.move is not None:
        yield from _move(answer.move)


def _identity(answer: NodeAnswer) -> Iterator[str]:
    pool = f"NodePool {answer.pool}" if answer.pool else "no NodePool"
    claim = f"NodeClaim {answer.claim}" if answer.claim else "no NodeClaim"
    yield from wrapped("is        ", "; ".join(filter(None, (claim, pool, answer.instance, answer.state))))
    yield f"  has       {plural(answer.pods, 'pod')}, {answer.movable_pods} of which would need another place"
    if answer.workflow:
        yield f"  workflow  {answer.workflow}  (dovetail history {answer.claim})"


def _timers(answer: NodeAnswer) -> Iterator[str]:
    if answer.rollout:
        yield from wrapped("roll-out  ", answer.rollout)
    if answer.expires_at is not None:
        yield f"  expires   {moment_text(answer.expires_at)} ({when(answer.expires_at, answer.now)}){_ageing(answer)}"
    if answer.quiet_since is None or answer.consolidate_after is None:
        return
    due = answer.quiet_since + answer.consolidate_after
    quiet = duration_text(answer.now - answer.quiet_since)
    after = duration_text(answer.consolidate_after)
    state = "" if due <= answer.now else f", may be consolidated {when(due, answer.now)}"
    yield f"  quiet     for {quiet} (consolidateAfter {after}){state}"


def _ageing(answer: NodeAnswer) -> str:
    if answer.replaced_from is None:
        return ""
    end = "never deleted for its age" if answer.deleted_at is None else f"deleted {when(answer.deleted_at, answer.now)}"
    from_then = "being replaced" if answer.replaced_from <= answer.now else "to be replaced"
    return f": {from_then} first, from {moment_text(answer.replaced_from)} on; {end}"


def _checks(answer: NodeAnswer) -> Iterator[str]:
    if not answer.checks:
        return
    yield ""
    yield "What holds it, whatever the reason to take it:"
    counts = Counter(answer.checks)
    for check, count in list(counts.items())[:MOST_HELD]:
        times = f", {count} times" if count > 1 else ""
        yield from wrapped("- ", f"{check.message} [{check.why}{times}]")
        if help_text := lifted_by(check.why):
            yield from wrapped("", help_text, indent=6)
    if len(counts) > MOST_HELD:
        yield f"  ... and {len(counts) - MOST_HELD} more (-o json has all)"


def _held(answer: NodeAnswer) -> Iterator[str]:
    pods = [f"{held.pod}: {held.by}, {held.detail}" for held in answer.held]
    yield from _some_of("Pods that must not be evicted now:", pods)


def _choosy(answer: NodeAnswer) -> Iterator[str]:
    pods = [f"{choosy.pod}: {choosy.by}" for choosy in answer.choosy]
    yield from _some_of("Pods whose preferences can prevent consolidation:", pods)


def _some_of(title: str, lines: list[str]) -> Iterator[str]:
    """The first of these lines below a title, and how many more there are; empty if there are none."""
    if not lines:
        return
    yield ""
    yield title
    for line in lines[:MOST_HELD]:
        yield from wrapped("- ", line)
    if len(lines) > MOST_HELD:
        yield f"  ... and {len(lines) - MOST_HELD} more (-o json has all)"


def _methods(answer: NodeAnswer) -> Iterator[str]:
    if not answer.methods:
        return
    yield ""
    yield "Each way to take it:"
    for method in answer.methods:
        title = TITLES.get(method.asked, method.asked)
        if method.asked in answer.goes_for:
            yield f"  {title:26} yes, now"
        elif not method.why and answer.cut:
            yield f"  {title:26} not known: time was up"
        elif not method.why:
            yield from wrapped(f"{title:26} ", "would, but not now: see what holds it, the budgets and the move below")
        else:
            yield from wrapped(f"{title:26} ", f"no: {method.message} [{method.why}]")


def _budgets(answer: NodeAnswer) -> Iterator[str]:
    if not answer.budgets:
        return
    yield ""
    yield f"What the budgets of NodePool {answer.pool} leave:"
    groups: dict[BudgetAnswer, list[BudgetAnswer]] = {}
    for budget in answer.budgets:
        groups.setdefault(replace(budget, reason=""), []).append(budget)
    for budgets in groups.values():
        first, reasons = budgets[0], ", ".join(b.reason for b in budgets)
        binding = f"; binding: {first.binding}" if first.binding else ""
        closes = f", until {moment_text(first.until)}" if first.until is not None else ""
        words = f"{first.left} now ({first.allowed} of {plural(first.nodes, 'node')} allowed, {first.consuming} in use"
        if first.allowed == UNBOUNDED:
            words = f"no limit ({first.consuming} in use"
        yield from wrapped("- ", f"{reasons}: {words}{binding}{closes})")
        for error in first.errors:
            yield from wrapped("", f"unreadable budget, so none is allowed: {error}", indent=6)


def _move(move: Move) -> Iterator[str]:
    yield ""
    yield "If it were gone, by itself (what consolidation compares):"
    yield from wrapped("- ", move.says)
    if move.moved:
        yield from wrapped("- ", "pods go to " + shown(f"{name} ({count})" for name, count in move.moved))
    for pod, why in move.unplaced[:3]:
        yield from wrapped("- ", f"{pod} has no place: {why}")
    for made in move.replacements[:3]:
        yield from wrapped("- ", f"a new node of NodePool {made}")
    if move.price_now is not None:
        then = f", afterwards {price_text(move.price_then)}" if move.price_then is not None else ""
        saved = f" (saves {price_text(move.price_now - move.price_then)})" if move.price_then is not None else ""
        yield f"  - it costs {price_text(move.price_now)}{then}{saved}"
    for score in move.scores:
        yield from wrapped("- ", score)
