"""Which instance types a new node may be, in which zone and at which price: the choices of a problem."""

from collections.abc import Sequence
from math import inf

import numpy as np

from dovetail.placement.cluster.states import State
from dovetail.placement.cluster.templates import Template
from dovetail.placement.cost.compiled import Choice
from dovetail.placement.cost.problem import Flags, Floats
from dovetail.placement.min_values import shortest_prefix


class Cells:
    """The offerings of a template by what they name, and the price of each row in each."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.states: list[State] = []
        self.prices: list[dict[int, float]] = []
        self.keys: set[str] = set()
        found: dict[int, dict[int, float]] = {}
        sets = {}
        for row, (number, group) in enumerate(template.table.rows):
            if not (template.rows & template.fit.valid) >> row & 1:
                continue
            for offering in template.table.types[number].groups[group][1]:
                if offering.reservation is not None:
                    continue
                identity = id(offering.requirements)
                sets[identity] = offering.requirements
                prices = found.setdefault(identity, {})
                prices[row] = min(prices.get(row, inf), offering.price)
        for identity, requirements in sets.items():
            state: State | None = template.start
            for key, item in requirements.items():
                state = state.pin(key, item.values) if state is not None and not item.complement else None
            if state is not None:
                self.keys |= set(requirements)
                self.states.append(state)
                self.prices.append({row: p for row, p in found[identity].items() if state.rows >> row & 1})

    def determined(self) -> set[str]:
        """The keys for which a choice has one value."""
        table = self.template.table
        keys = set(self.keys) | set(self.template.start.values)
        first = table.types[0].requirements if table.types else {}
        for key in first:
            items = [each.requirements.get(key) for each in table.types]
            if all(item is not None and not item.complement and len(item.values) == 1 for item in items):
                keys.add(key)
        return keys


def choices_of(
    all_cells: Sequence[Cells], needs: Sequence[Sequence[int]], types: int, prices_beside: Sequence[float]
) -> tuple[list[Choice], Floats, Floats, Flags]:
    """The choices, the cheapest first, with their room, their price and, per need, whether they suit.

    `needs`: for each the rows that suit it, by template and cell. `types`: so many are to be left to choose from.
    """
    choices: list[Choice] = []
    prices: list[float] = []
    columns: list[Flags] = []
    room: list[Sequence[int]] = []
    at = 0
    for cells, beside in zip(all_cells, prices_beside, strict=True):
        template = cells.template
        rows, flexible = len(template.table.rows), _flexible(template, types)
        for state, by_row in zip(cells.states, cells.prices, strict=True):
            suits = np.stack([flags(masks[at], rows) for masks in needs])
            at += 1
            asked = suits.any(axis=0) & flexible
            numbers = [row for row in by_row if asked[row]]
            choices += [Choice(template, state, row) for row in numbers]
            prices += [by_row[row] + beside for row in numbers]
            room += [template.fit.room[row] for row in numbers]
            columns.append(suits[:, numbers])
    suits = np.concatenate(columns, axis=1)
    rooms, costs = np.array(room, dtype=np.float64), np.array(prices)
    keep = _undominated(rooms, costs, suits)
    return [choices[n] for n in keep], rooms[keep], costs[keep], np.ascontiguousarray(suits[:, keep])


def flags(rows: int, count: int) -> Flags:
    """The rows of a mask as an array."""
    packed = np.frombuffer(rows.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=count, bitorder="little").astype(bool)


def _flexible(template: Template, least: int) -> Flags:
    """The rows on which a full node leaves enough types to choose from, minimum values included; all rows where no row
    does."""
    table = template.table
    valid = flags(template.rows & template.fit.valid, len(table.rows))
    room = np.array(template.fit.room, dtype=np.float64)
    holding = np.broadcast_to(valid, (len(room), len(room))).copy()  # per row those that hold what it holds
    for resource in range(room.shape[1]):
        holding &= room[None, :, resource] >= room[:, None, resource]
    if not table.simple:
        of_type = np.zeros((len(room), len(table.types)), dtype=np.float32)
        of_type[np.arange(len(room)), [number for number, _ in table.rows]] = 1
        holding = (holding.astype(np.float32) @ of_type) > 0
    flexible: Flags = valid & (holding.sum(axis=1) >= least)
    if template.start.minima:
        for row in np.flatnonzero(flexible).tolist():
            types = (table.types[n].requirements for n in np.flatnonzero(holding[row]).tolist())
            flexible[row] = not shortest_prefix(types, template.start.minima)[1]
    return flexible if flexible.any() else valid


def _undominated(room: Floats, price: Floats, suits: Flags) -> list[int]:
    """The choices without those for which another one suits the same pods, has as much room and costs no more; the
    cheapest first."""
    groups: dict[bytes, list[int]] = {}
    for number, column in enumerate(np.packbits(suits, axis=0).T):
        groups.setdefault(column.tobytes(), []).append(number)
    keep: list[int] = []
    for members in groups.values():
        order = np.array(sorted(members, key=lambda n: (price[n], -room[n].sum(), n)))
        beats = np.tri(len(order), k=-1, dtype=bool)  # those before it in the order
        for resource in range(room.shape[1]):
            amounts = room[order, resource]
            beats &= amounts[None, :] >= amounts[:, None]
        keep += order[~beats.any(axis=1)].tolist()
    return sorted(keep, key=lambda n: (price[n], n))
