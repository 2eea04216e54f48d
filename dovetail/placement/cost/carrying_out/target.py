"""Which new nodes are wanted, and which pods on each: a proposal that a pass carries out."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dovetail.model.pods import Pod
from dovetail.placement.constraints.reservations import NONE, Held
from dovetail.placement.cost.carrying_out.naming import Namer
from dovetail.placement.cost.reading.compiled import Compiled
from dovetail.placement.cost.searching.filling import Bin
from dovetail.placement.facts.states import Needs, State
from dovetail.placement.facts.templates import Template


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A node to open: its pool, what it requires at least, the rows that it may be, and the pods for it."""

    template: Template
    start: State
    rows: int
    pods: tuple[Pod, ...]
    held: Held = NONE  # reservations that are promised to it before it is opened


def targets_of(compiled: Compiled, bins: Sequence[Bin], least: int) -> list[Target]:
    """The nodes that stay as they were, and those of the bins. `least`: how many types a node keeps to choose from."""
    found = [
        Target(
            template=part.template,
            start=_kept(_in(part.template.start, part.fixed), part.kept),
            rows=part.template.rows,
            pods=tuple(part.pods),
            held=part.held,
        )
        for part in compiled.frozen
    ]
    namer = Namer(compiled, least)
    left = [deque(item.pods) for item in compiled.items]
    for each in bins:
        choice = compiled.choices[each.choice]
        pods = [
            left[item].popleft()
            for item, count in zip(each.items.tolist(), each.counts.tolist(), strict=True)
            for _ in range(count)
        ]
        fixed = {pair for item in each.items.tolist() for pair in compiled.items[item].fixed}
        start = _in(choice.template.start, sorted(fixed))
        start = _kept(start, [compiled.items[item].kept for item in each.items.tolist()])
        found.append(Target(choice.template, start, namer.rows_of(each, start), tuple(pods)))
    return found


def _kept(start: State, kept: Iterable[Needs]) -> State:
    for needs in kept:
        start = start.narrow(needs) or start
    return start


def _in(start: State, fixed: Iterable[tuple[str, str]]) -> State:
    for key, value in fixed:
        start = start.pin(key, frozenset((value,))) or start
    return start
