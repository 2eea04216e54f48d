"""`dovetail explain pod` as text: one screen, the answer first."""

from collections.abc import Iterator

from dovetail.answers.explain.explain_pod import PodAnswer
from dovetail.answers.explain.pod_words import node_words, pool_words
from dovetail.answers.wording import plural, wrapped
from dovetail.model.places.placements import PoolRefusal


def pod_text(answer: PodAnswer) -> str:
    return "\n".join(_lines(answer))


def _lines(answer: PodAnswer) -> Iterator[str]:
    yield from wrapped("", f"Pod {answer.pod}  ({answer.source})", indent=0)
    for line in answer.pauses:
        yield from wrapped("", line)
    yield from wrapped("", answer.says)
    yield from wrapped("asks for  ", "; ".join(answer.asks_for))
    if answer.pool and answer.types:
        more = f" (of {answer.types_in_all}, cheapest first)"
        yield from wrapped("may be    ", ", ".join(answer.types) + more)
        if answer.together_with:
            yield f"  with      {plural(answer.together_with, 'other waiting pod')}"
    yield from _refusals(answer)
    yield from _left_out(answer)
    yield from _existing(answer)
    yield from _helps(answer)
    if answer.notes:
        yield ""
    for note in answer.notes:
        yield from wrapped("note      ", note)


def _refusals(answer: PodAnswer) -> Iterator[str]:
    if answer.pools:
        yield ""
        yield "Why no new node, by NodePool in the order tried:"
        yield from _pools(answer.pools)
    if answer.pools_alone and answer.state == "not_reached":
        yield ""
        yield "Why no new node if no other pod were waiting:"
        yield from _pools(answer.pools_alone)
    elif answer.pools_alone:
        yield ""
        yield "The same if no other pod were waiting (those before it may have used up limits):"
        yield from _pools(answer.pools_alone)


def _pools(refusals: tuple[PoolRefusal, ...]) -> Iterator[str]:
    for refusal in refusals:
        yield from wrapped(f"{refusal.pool or 'any'}: ", f"{pool_words(refusal.reason)} [{refusal.reason}]")
        if refusal.conflict:
            yield from wrapped("conflict: ", refusal.conflict, indent=6)
        if refusal.daemon_sets:
            yield from wrapped("would help: ", refusal.remedy, indent=6)


def _left_out(answer: PodAnswer) -> Iterator[str]:
    if not answer.pools_left_out:
        return
    yield ""
    yield "NodePools that are not asked:"
    for name, why in answer.pools_left_out:
        yield from wrapped(f"{name}: ", why)


def _existing(answer: PodAnswer) -> Iterator[str]:
    if not answer.pools:
        return
    yield ""
    if not answer.existing:
        yield "Existing nodes: there is none to put it on."
        return
    yield "Existing nodes, by the first thing that rules them out:"
    for reason, count in answer.existing.items():
        yield f"  {count:4}  {node_words(reason)}"


def _helps(answer: PodAnswer) -> Iterator[str]:
    if answer.state == "not_reached" and answer.helps:
        yield from wrapped("", f"{answer.helps[0].change}: {answer.helps[0].then}")
    if answer.state != "refused":
        return
    yield ""
    if not answer.helps:
        yield "What would have helped: no single change; more than one thing stands in the way."
        return
    yield "What would have helped (each tried on this snapshot, for this pod alone):"
    for found in answer.helps:
        yield from wrapped("- ", f"{found.change} -> {found.then}")
