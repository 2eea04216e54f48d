"""What do the drafts of a pass cost? Each at the cheapest suitable offering that holds it; spot capacity at what is to
be expected of the pools that it may come from."""

from collections.abc import Mapping
from itertools import takewhile
from math import inf
from typing import NamedTuple

from dovetail.model.scheduling.requirements import RequirementSet
from dovetail.placement.cost.spot import expected_price, is_spot
from dovetail.placement.facts.masks import bits
from dovetail.placement.facts.states import State
from dovetail.placement.facts.templates import Template
from dovetail.placement.search.node_draft import NodeDraft
from dovetail.placement.search.solve import Pass


class _Pool(NamedTuple):
    """Capacity of one type in one zone."""

    price: float
    other: bool  # than spot, which comes first at the same price because it is launched where it is allowed
    kind: int  # which of the offerings


class _Offerings:
    """The offerings of a template: by row what they cost, and what each kind of them requires."""

    def __init__(self, template: Template, spot_chance: float) -> None:
        self._spot_chance = spot_chance
        self._kinds: list[tuple[RequirementSet, bool]] = []  # and whether a reservation is behind it
        self._by_row: list[list[_Pool]] = []
        numbers: dict[tuple[int, bool], int] = {}
        for number, group in template.table.rows:
            cheapest: dict[int, float] = {}
            for offering in template.table.types[number].groups[group][1]:
                reserved = offering.reservation is not None
                kind = numbers.setdefault((id(offering.requirements), reserved), len(numbers))
                if kind == len(self._kinds):
                    self._kinds.append((offering.requirements, reserved))
                cheapest[kind] = min(cheapest.get(kind, inf), offering.price)
            spot = {kind: is_spot(self._kinds[kind][0]) for kind in cheapest}
            self._by_row.append([_Pool(price, not spot[kind], kind) for kind, price in cheapest.items()])
        self._accepted: dict[tuple[State, bool], list[bool]] = {}
        self._known: dict[tuple[State, bool, int], tuple[float, float]] = {}

    def price(self, draft: NodeDraft) -> tuple[float, float]:
        """What the draft is expected to cost, and the price of the cheapest offering that it could be launched as."""
        reserved, rows = bool(draft.held), draft.settled_rows()
        key = (draft.state, reserved, rows)
        known = self._known.get(key)
        if known is None:
            accepted = self._of(draft.state, reserved)
            pools = [pool for row in bits(rows) for pool in self._by_row[row] if accepted[pool.kind]]
            known = self._known[key] = self._price(sorted(pools))
        return known

    def _price(self, pools: list[_Pool]) -> tuple[float, float]:
        """The expected and the lowest price of a draft. AWS takes one of the spot pools that cost no more than any
        other capacity."""
        if not pools:
            return inf, inf
        lowest = pools[0].price
        if pools[0].other or self._spot_chance == 1.0:
            return lowest, lowest
        return expected_price((p.price for p in takewhile(lambda p: not p.other, pools)), self._spot_chance), lowest

    def _of(self, state: State, reserved: bool) -> list[bool]:
        """Of each kind of offerings, whether such a draft may be launched as one."""
        known = self._accepted.get((state, reserved))
        if known is None:
            known = self._accepted[state, reserved] = [
                of_reservation <= reserved and state.accepts(requirements)
                for requirements, of_reservation in self._kinds
            ]
        return known


class DraftPrices:
    def __init__(self, node_costs: Mapping[int, float], spot_chance: float) -> None:
        self._node_costs = node_costs
        self._spot_chance = spot_chance
        self._of: dict[int, _Offerings] = {}

    def total(self, run: Pass) -> tuple[float, float]:
        """What all drafts of a pass are expected to cost together, nodes' own costs included; and the same if every
        node is launched as its cheapest offering."""
        found = [self._one(draft) for draft in run.drafts.made]
        return sum(expected for expected, _ in found), sum(lowest for _, lowest in found)

    def _one(self, draft: NodeDraft) -> tuple[float, float]:
        number = draft.template.number
        offerings = self._of.get(number)
        if offerings is None:
            offerings = self._of[number] = _Offerings(draft.template, self._spot_chance)
        expected, lowest = offerings.price(draft)
        beside = self._node_costs.get(number, 0.0)
        return expected + beside, lowest + beside
