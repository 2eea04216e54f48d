"""Which instance types a new node may be, in which zone and at which price: the choices of a problem."""

from collections.abc import Sequence
from functools import cached_property
from math import inf

import numpy as np

from dovetail.model import names
from dovetail.placement.cost.problem import Flags, Floats, Integers
from dovetail.placement.cost.reading.compiled import Choice
from dovetail.placement.cost.spot import SpotCell, expected_prices, is_spot
from dovetail.placement.facts.states import State
from dovetail.placement.facts.templates import Template
from dovetail.placement.min_values import shortest_prefix


class Cells:
    """The offerings of a template by what they name, and the price of each row in each."""

    def __init__(self, template: Template, spot_chance: float = 1.0) -> None:
        """`spot_chance`: of each pool of spot capacity, that it is deep."""
        self.template = template
        self.states: list[State] = []
        self.open: list[frozenset[str]] = []  # per state the labels of offerings that it leaves open
        self.prices: list[dict[int, float]] = []  # per state of each row, at its cheapest pool
        self.spot: list[SpotCell] = []
        self.pools: list[tuple[tuple[float, int], ...]] = []  # per state those of spot capacity: price and row
        self._spot_chance = spot_chance
        self.keys: set[str] = set()
        found: dict[int, dict[int, float]] = {}
        sets = {}
        for row, (number, group) in enumerate(template.table.rows):
            if not (template.rows & template.fit.whole) >> row & 1:
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
                self.open.append(frozenset())
                prices = {row: p for row, p in found[identity].items() if state.rows >> row & 1}
                if is_spot(requirements):
                    self.spot.append(SpotCell(requirements, prices))
                self.pools.append(tuple((price, row) for row, price in prices.items()) if is_spot(requirements) else ())
                self.prices.append(prices)
        if len(self.spot) > 1 and spot_chance < 1.0:
            self._add_spot_anywhere()

    def _add_spot_anywhere(self) -> None:
        """Spot capacity for pods that may be in any zone: more pools, and so less to expect of a node's price."""
        spot = self.spot[0].requirements[names.CAPACITY_TYPE]
        state = self.template.start.pin(spot.key, spot.values)
        pools = [(price, row) for cell in self.spot for row, price in cell.prices.items()]
        if state is None or not pools:
            return
        prices = {row: price for price, row in sorted(pools, reverse=True)}  # the cheapest comes last, and stays
        self.states.append(state)
        self.open.append(frozenset(self.keys - {spot.key}))
        self.pools.append(tuple(pools))
        self.prices.append(prices)

    @cached_property
    def holding(self) -> Flags:
        """For each row of the template, the rows that hold what it holds."""
        room = np.array(self.template.fit.room, dtype=np.float64)
        found = np.ones((len(room), len(room)), dtype=bool)
        for resource in range(room.shape[1]):
            found &= room[None, :, resource] >= room[:, None, resource]
        return found

    def expected(self, at: int, suits: Flags) -> dict[int, float]:
        """What each row of a state is to cost. A node of spot capacity becomes one of the pools that its pods suit as
        well: those that suit all needs which its row suits. `suits`: per need and row."""
        prices, pools = self.prices[at], self.pools[at]
        if self._spot_chance == 1.0 or not pools:
            return prices
        rows, others = list(prices), [row for _, row in pools]
        named = self.holding[np.ix_(rows, others)]
        for need in np.unique(suits, axis=0):
            named &= ~need[rows][:, None] | need[others][None, :]
        found = expected_prices(np.array([price for price, _ in pools]), named, self._spot_chance)
        return dict(zip(rows, found.tolist(), strict=True))

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
    all_cells: Sequence[Cells],
    needs: Sequence[tuple[Sequence[int], int]],
    prices_beside: Sequence[float],
    anywhere: bool,
) -> tuple[list[Choice], Floats, Floats, Flags]:
    """The choices, the cheapest first, with their room, their price and, per need, whether they suit.

    `needs`: for each the rows that suit it, by template and cell, and how many types of them a node is to leave to
    choose from. `anywhere`: those that leave the zone open are choices as well.
    """
    choices: list[Choice] = []
    prices: list[float] = []
    columns: list[Flags] = []
    room: list[Sequence[int]] = []
    at = 0
    for cells, beside in zip(all_cells, prices_beside, strict=True):
        template, rows = cells.template, len(cells.template.table.rows)
        suiting: list[Flags] = [
            np.stack([flags(masks[at + n], rows) for masks, _ in needs]) for n in range(len(cells.states))
        ]
        at += len(suiting)
        flexible = _flexible(cells, [types for _, types in needs], _offered(cells, suiting, len(needs), rows))
        for number, (state, suited, left_open) in enumerate(zip(cells.states, suiting, cells.open, strict=True)):
            if left_open and not anywhere:
                continue
            by_row = cells.expected(number, suited)
            kept: Flags = suited & flexible
            numbers = [row for row in by_row if kept[:, row].any()]
            choices += [Choice(template, state, row) for row in numbers]
            prices += [by_row[row] + beside for row in numbers]
            room += [template.fit.room[row] for row in numbers]
            columns.append(kept[:, numbers])
    suits = np.concatenate(columns, axis=1)
    rooms, costs = np.array(room, dtype=np.float64), np.array(prices)
    keep = _undominated(rooms, costs, suits)
    return [choices[n] for n in keep], rooms[keep], costs[keep], np.ascontiguousarray(suits[:, keep])


def flags(rows: int, count: int) -> Flags:
    packed = np.frombuffer(rows.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=count, bitorder="little").astype(bool)


def _offered(cells: Cells, suiting: Sequence[Flags], needs: int, rows: int) -> Flags:
    """Per need the rows that suit it and that are offered to it in one cell or another."""
    found = np.zeros((needs, rows), dtype=bool)
    for by_row, suits in zip(cells.prices, suiting, strict=True):
        numbers = list(by_row)
        found[:, numbers] |= suits[:, numbers]
    return found


def _flexible(cells: Cells, types: Sequence[int], suiting: Flags) -> Flags:
    """Per need the rows on which a full node leaves enough types to choose from that suit it, minimum values included;
    all that suit it where no row does."""
    known: dict[tuple[bytes, int], Flags] = {}
    for suits, least in zip(suiting, types, strict=True):
        key = suits.tobytes(), least
        if key not in known:
            own = np.flatnonzero(suits)
            found = np.zeros(len(suits), dtype=bool)
            found[own] = _leaves_enough(cells.template, least, own, cells.holding[np.ix_(own, own)])
            known[key] = found if found.any() else suits
    flexible: Flags = np.stack([known[each.tobytes(), least] for each, least in zip(suiting, types, strict=True)])
    return flexible


def _leaves_enough(template: Template, least: int, rows: Integers, holding: Flags) -> Flags:
    """The rows that leave enough types to choose from. `holding`: for each row, the rows that hold what it holds."""
    table = template.table
    numbers = np.array([table.rows[row][0] for row in rows.tolist()], dtype=np.int64)
    if not table.simple:
        own = np.unique(numbers)
        of_type = (numbers[:, None] == own[None, :]).astype(np.float32)
        holding, numbers = (holding.astype(np.float32) @ of_type) > 0, own
    enough: Flags = holding.sum(axis=1) >= least
    if template.start.minima:
        for row in np.flatnonzero(enough).tolist():
            types = (table.types[n].requirements for n in numbers[holding[row]].tolist())
            enough[row] = not shortest_prefix(types, template.start.requirements)[1]
    return enough


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
