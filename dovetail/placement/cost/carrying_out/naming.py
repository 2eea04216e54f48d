"""Which types does a new node name? Those that hold its pods; fewer of them where names cost something.

A launch wants many to choose from. But each new node is charged to its pool's limits as the largest type that it may
be, so limits would be used up by names. And of spot capacity AWS takes what is deep rather than what is cheap, so a
node that names expensive types may become one.
"""

from collections.abc import Mapping
from functools import reduce
from math import floor
from operator import or_

from dovetail.placement.cost.reading.compiled import Choice, Compiled
from dovetail.placement.cost.searching.filling import Bin
from dovetail.placement.cost.spot import SpotCell, is_spot
from dovetail.placement.facts.states import State
from dovetail.placement.facts.templates import Template

_EXPENSIVE = 1.5  # times the cheapest spot price: types above it are named only to have enough to choose from


class Namer:
    """Names the types of nodes of one problem. `least`: how many types are named at least, where there are so many."""

    def __init__(self, compiled: Compiled, least: int) -> None:
        self._compiled = compiled
        self._least = least
        templates = {choice.template for choice in compiled.choices}
        self._shares = {template: _shares(template) for template in templates}

    def rows_of(self, made: Bin, start: State) -> int:
        """The rows that a node with these pods may be, if it requires at least `start`."""
        choice = self._compiled.choices[made.choice]
        template = choice.template
        rows = self._holding(made, template)
        if template.start.minima:  # minimum values need the names
            return rows
        shares, spot = self._shares[template], is_spot(choice.cell.requirements)
        suiting = rows & self._suiting(made, start) if shares or spot else rows
        if shares:
            suiting &= _modest(choice, suiting, shares, self._least)
        if spot:
            cells = [each for each in self._compiled.spot[template] if start.accepts(each.requirements)]
            suiting &= _inexpensive(template, suiting, cells, self._least)
        return suiting or rows

    def _holding(self, made: Bin, template: Template) -> int:
        amounts = made.counts @ self._compiled.problem.sizes[made.items]
        return template.fit.holding(list(map(floor, amounts.tolist())), template.rows & template.fit.whole)

    def _suiting(self, made: Bin, start: State) -> int:
        """The rows that suit all of the pods, in whichever zone the node comes to be."""
        rows = start.rows
        for number in made.items.tolist():
            narrowed = self._compiled.items[number].demand.shape.narrowings(start)
            rows &= reduce(or_, [each.rows for each in narrowed], 0)
        return rows


def _shares(template: Template) -> dict[int, float]:
    """How much a node of each type takes of its pool's limits, at most; empty without limits."""
    limits = {name: limit for name, limit in (template.pool.limits or {}).items() if name in template.capacities}
    if not limits:
        return {}
    capacities = [item.source.capacity for item in template.table.types]
    return {
        number: max(capacity.get(name, 0) / max(limit, 1) for name, limit in limits.items())
        for number, capacity in enumerate(capacities)
    }


def _modest(choice: Choice, rows: int, shares: Mapping[int, float], least: int) -> int:
    """The types that take the smallest shares of the pool's limits."""
    table = choice.template.table
    found = table.types_in(rows)
    enough = max([shares[table.rows[choice.row][0]], *sorted(shares[number] for number in found)[:least]])
    return reduce(or_, (table.type_rows[number] for number in found if shares[number] <= enough), 0)


def _inexpensive(template: Template, rows: int, cells: list[SpotCell], least: int) -> int:
    """The types that are the cheapest in some cell, at least `least` of them, and those that cost hardly more; all
    types where there are fewer."""
    table, kept = template.table, 0
    for cell in cells:
        ascending = sorted((price, row) for row, price in cell.prices.items() if rows >> row & 1)
        named = set[int]()
        for price, row in ascending:
            number = table.rows[row][0]
            if len(named) >= least and number not in named and price > _EXPENSIVE * ascending[0][0]:
                break
            named.add(number)
        kept |= reduce(or_, (table.type_rows[number] for number in named), 0)
    return kept if len(table.types_in(kept)) >= least else rows
