"""Which new nodes are wanted, and which pods on each: a proposal that a pass carries out."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from dovetail.model.pods import Pod
from dovetail.placement.cluster.states import State
from dovetail.placement.cluster.templates import Template
from dovetail.placement.cost.compiled import Compiled
from dovetail.placement.cost.filling import Bin


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A node to open: its pool, what it requires at least, the rows that it may be, and the pods for it."""

    template: Template
    start: State
    rows: int
    pods: tuple[Pod, ...]


def targets_of(compiled: Compiled, bins: Sequence[Bin], room: float) -> list[Target]:
    """The nodes that stay as they were, and those of the bins, with that share of their pods' amounts left free."""
    found = [
        Target(draft.template, draft.template.start, draft.template.rows, tuple(draft.pods))
        for draft in compiled.frozen
    ]
    left = [deque(item.pods) for item in compiled.items]
    for each in bins:
        choice = compiled.choices[each.choice]
        pods = [
            left[item].popleft()
            for item, count in zip(each.items.tolist(), each.counts.tolist(), strict=True)
            for _ in range(count)
        ]
        fixed = {key for item in each.items.tolist() for key, _ in compiled.items[item].fixed}
        start = _pinned(choice.template.start, choice.cell, fixed)
        found.append(Target(choice.template, start, _roomy_rows(compiled, each, room), tuple(pods)))
    return found


def _roomy_rows(compiled: Compiled, made: Bin, room: float) -> int:
    """The rows that hold the bin and leave room; a claim that named others would become the tightest of them."""
    template = compiled.choices[made.choice].template
    amounts = made.counts @ compiled.problem.sizes[made.items]
    return template.fit.holding([floor(amount * (1 + room)) for amount in amounts.tolist()], template.rows)


def _pinned(start: State, wanted: State, keys: set[str]) -> State:
    for key in sorted(keys):
        start = start.pin(key, wanted.requirements[key].values) or start
    return start
