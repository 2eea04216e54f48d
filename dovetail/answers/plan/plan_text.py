"""`dovetail plan` as text: what pending pods get, which nodes leave, what is left out and why, and what is left to
save."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from dovetail.answers.explain.node_words import lifted_by
from dovetail.answers.explain.pod_words import POOL_WORDS
from dovetail.answers.plan.plan import CommandAnswer, NewNodeAnswer, PlanAnswer
from dovetail.answers.wording import amounts_text, duration_text, plural, price_text, shown, when, wrapped

MOST: Final = 10


def plan_text(answer: PlanAnswer) -> str:
    return "\n".join(_lines(answer))


def _lines(answer: PlanAnswer) -> Iterator[str]:
    yield from wrapped("", f"Plan  ({answer.source}); nothing of it is carried out", indent=0)
    for line in answer.pauses:
        yield from wrapped("", line)
    for line in answer.held_back:
        yield from wrapped("held back  ", line)
    yield ""
    yield from _provisioning(answer)
    for name, why in answer.pools_left_out:
        yield from wrapped("! ", f"NodePool {name} is not asked: {why}")
    yield ""
    yield from _disruption(answer)
    for line in answer.unreadable:
        yield from wrapped("left out  ", line)
    for error in answer.errors:
        yield from wrapped("error     ", error)
    if answer.notes:
        yield ""
    for note in answer.notes:
        yield from wrapped("note      ", note)
    if answer.left is not None:
        yield ""
        yield from wrapped("", answer.left.says, indent=0)


def _provisioning(answer: PlanAnswer) -> Iterator[str]:
    waiting = sum(len(n.pods) for n in answer.new_nodes) + sum(count for _, count in answer.onto_existing)
    refused = sum(r.count for r in answer.refused_pods) - answer.not_reached
    if not waiting and not refused and not answer.not_reached and not answer.ignored_pods:
        yield "Provisioning: no pod waits for a node."
        return
    placed = f"{plural(waiting, 'waiting pod')} placed, {refused} without a place"
    placed += f", {answer.not_reached} not reached" if answer.not_reached else ""
    yield f"Provisioning: {plural(len(answer.new_nodes), 'new node')}; {placed}"
    for node in answer.new_nodes[:MOST]:
        yield from _new_node(node)
    if len(answer.new_nodes) > MOST or answer.more_new_nodes:
        rest = "the rest in the next round" if answer.more_new_nodes else "-o json has all"
        yield f"  ... {len(answer.new_nodes)} in all, {rest}"
    if answer.onto_existing:
        yield from wrapped("~ ", "onto " + shown(f"{name} ({plural(n, 'pod')})" for name, n in answer.onto_existing))
    for refusal in answer.refused_pods:
        what = "not reached" if refusal.reason == "not_reached" else "refused"
        yield from wrapped("! ", f"{plural(refusal.count, 'pod')} {what}: {_words(refusal.reason)}")
        yield from wrapped("", f"{shown(refusal.examples)}  (dovetail explain pod {refusal.examples[0]})", indent=4)
    for refusal in answer.ignored_pods:
        yield from wrapped(
            "! ", f"{plural(refusal.count, 'pod')} left out: {refusal.reason}: {shown(refusal.examples)}"
        )


def _new_node(node: NewNodeAnswer) -> Iterator[str]:
    kinds = ", ".join(node.capacity_types) or "any capacity type"
    zones = ", ".join(node.zones) or "any zone"
    asked = amounts_text({name: amount for name, amount in node.requests if name != "pods"})
    types = f"{node.cheapest} ({price_text(node.price)}) or one of {node.types - 1} dearer types"
    words = f"NodePool {node.pool}: {types}; {kinds}; {zones}; asked {asked}"
    yield from wrapped("+ ", words)
    yield from wrapped("", f"for {plural(len(node.pods), 'pod')}: {shown(node.pods, 3)}", indent=4)


def _words(reason: str) -> str:
    """The reasons of all pools; a plan joins them with commas."""
    parts = [part.strip() for part in reason.split(",")]
    return "; ".join(f"{words} [{part}]" for part in parts for words in [_pool_words(part)])


def _pool_words(part: str) -> str:
    return next((words for name, words in POOL_WORDS.items() if name == part), part)


def _second_looks(answer: PlanAnswer) -> Iterator[str]:
    """Shown before anything else: this is about to happen, and can still be cancelled."""
    for held in answer.second_looks[:MOST]:
        words = f"{held.reason}: {shown(held.nodes)}: looked at once more {when(held.due, answer.now)}, then it goes"
        yield from wrapped("- ", f"{words}; `dovetail cancel {held.nodes[0] if held.nodes else ''}` drops it")
    if len(answer.second_looks) > MOST:
        yield f"  ... and {len(answer.second_looks) - MOST} more (-o json has all)"


def _disruption(answer: PlanAnswer) -> Iterator[str]:
    if answer.second_looks:
        yield f"Disruption: {plural(len(answer.second_looks), 'command')} decided on"
        yield from _second_looks(answer)
    if not answer.disruptions:
        other = "other " if answer.second_looks else ""
        found = (
            f"no {other}node was found that would go, before time was up" if answer.cut else f"no {other}node would go"
        )
        yield f"Disruption: {found}."
        if answer.next_due is not None:
            yield f"  looked at again {when(answer.next_due, answer.now)}, when time alone changes an answer"
    else:
        yield f"Disruption: {plural(len(answer.disruptions), 'command')}"
    for command in answer.disruptions[:MOST]:
        yield from wrapped("- ", f"{command.reason} ({command.method}): {', '.join(command.nodes)}{_move(command)}")
        if command.look_again_after:
            yield f"    looked at once more after {duration_text(command.look_again_after)}, before anything is done"
    if len(answer.disruptions) > MOST:
        yield f"  ... and {len(answer.disruptions) - MOST} more (-o json has all)"
    yield from _sums(answer)
    if answer.refused_nodes:
        yield "Why nodes stay:"
    for refusal in answer.refused_nodes:
        yield from wrapped(f"{refusal.count:4}  ", f"{refusal.reason}: {lifted_by(refusal.reason)}")
        yield from wrapped("", shown(refusal.examples, 1), indent=8)


def _move(command: CommandAnswer) -> str:
    """What comes first, what moves and what it saves."""
    made = f" after {plural(command.replacements, 'replacement')} ({shown(command.becomes)})" if command.becomes else ""
    moved = f", moves {plural(command.pods, 'pod')}" if command.pods else ""
    saved = f", saves {price_text(command.savings)}" if command.savings else ""
    return f"{made}{moved}{saved}{f' of {price_text(command.price)}' if saved and command.price else ''}"


def _sums(answer: PlanAnswer) -> Iterator[str]:
    """What all commands save together, and what the budgets still allow."""
    saved = sum(command.savings for command in answer.disruptions)
    if len(answer.disruptions) > 1 and saved:
        yield f"  {price_text(saved)} saved in all"
    for pool, of_pool in groupby(answer.budgets, key=lambda each: each.pool):
        words = ", ".join(f"{each.reason} {each.left} of {each.allowed}" for each in of_pool)
        yield from wrapped("budgets   ", f"NodePool {pool}, nodes that may still go now: {words}")
