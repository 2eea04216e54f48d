"""Which new nodes are wanted, and which pods on each: a proposal that a pass carries out."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import floor
from operator import or_

from dovetail.model.pods import Pod
from dovetail.placement.cluster.states import Needs, State
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


def targets_of(compiled: Compiled, bins: Sequence[Bin], room: float, least: int) -> list[Target]:
    """The nodes that stay as they were, and those of the bins, with that share of their pods' amounts left free.
    `least`: how many types a node keeps to choose from."""
    found = [
        Target(part.template, _kept(part.template.start, part.kept), part.template.rows, tuple(part.pods))
        for part in compiled.frozen
    ]
    shares = {template: _shares(template) for template in {choice.template for choice in compiled.choices}}
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
        start = _kept(start, [compiled.items[item].kept for item in each.items.tolist()])
        rows = _roomy_rows(compiled, each, room)
        if taken := shares[choice.template]:
            rows = _modest_rows(compiled, each, rows, taken, least)
        found.append(Target(choice.template, start, rows, tuple(pods)))
    return found


def _kept(start: State, kept: Iterable[Needs]) -> State:
    for needs in kept:
        start = start.narrow(needs) or start
    return start


def _roomy_rows(compiled: Compiled, made: Bin, room: float) -> int:
    """The rows that hold the bin and leave room; a claim that named others would become the tightest of them."""
    template = compiled.choices[made.choice].template
    amounts = made.counts @ compiled.problem.sizes[made.items]
    return template.fit.holding([floor(amount * (1 + room)) for amount in amounts.tolist()], template.rows)


def _shares(template: Template) -> dict[int, float]:
    """How much a node of each type takes of its pool's limits, at most; empty where they ask for no choice among types:
    without limits, and where minimum values need the names."""
    limits = {name: limit for name, limit in (template.pool.limits or {}).items() if name in template.capacities}
    if not limits or template.start.minima:
        return {}
    capacities = [item.source.capacity for item in template.table.types]
    return {
        number: max(capacity.get(name, 0) / max(limit, 1) for name, limit in limits.items())
        for number, capacity in enumerate(capacities)
    }


def _modest_rows(compiled: Compiled, made: Bin, rows: int, shares: Mapping[int, float], least: int) -> int:
    """Of a pool with limits the rows of the types that take the smallest shares of them, so many types that the launch
    has a choice: each new node is charged for the largest type that it may be, and limits would be used up by names."""
    choice = compiled.choices[made.choice]
    table = choice.template.table
    suiting = rows & choice.cell.rows
    for item in made.items.tolist():
        cell = choice.cell.narrow(compiled.items[item].kept) or choice.cell
        narrowed = compiled.items[item].demand.shape.narrowings(cell)
        suiting &= reduce(or_, [each.rows for each in narrowed], 0)

    suited = table.types_in(suiting)
    enough = max([shares[table.rows[choice.row][0]], *sorted(shares[number] for number in suited)[:least]])
    kept = [table.type_rows[number] for number in suited if shares[number] <= enough]
    return rows & reduce(or_, kept, 0) or rows


def _pinned(start: State, wanted: State, keys: set[str]) -> State:
    for key in sorted(keys):
        start = start.pin(key, wanted.requirements[key].values) or start
    return start
