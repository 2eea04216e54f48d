"""What do the drafts of a pass cost? Each at the cheapest suitable offering that holds it."""

from collections.abc import Mapping
from math import inf

from dovetail.model.requirements import RequirementSet
from dovetail.placement.cluster.states import State
from dovetail.placement.cluster.templates import Template
from dovetail.placement.search.node_draft import NodeDraft
from dovetail.placement.search.solve import Pass


class _Offerings:
    """The offerings of a template: by what they require, the price of each row."""

    def __init__(self, template: Template) -> None:
        self._found: dict[tuple[int, bool], tuple[RequirementSet, dict[int, float]]] = {}
        for row, (number, group) in enumerate(template.table.rows):
            for offering in template.table.types[number].groups[group][1]:
                key = (id(offering.requirements), offering.reservation is not None)
                prices = self._found.setdefault(key, (offering.requirements, {}))[1]
                prices[row] = min(prices.get(row, inf), offering.price)
        self._by_state: dict[tuple[State, bool], list[tuple[float, int]]] = {}
        self._known: dict[tuple[State, bool, int], float] = {}

    def cheapest(self, draft: NodeDraft) -> float:
        """The price of the cheapest offering that the draft could be launched as."""
        reserved, rows = bool(draft.held), draft.settled_rows()
        key = (draft.state, reserved, rows)
        known = self._known.get(key)
        if known is None:
            ascending = self._of(draft.state, reserved)
            known = self._known[key] = next((price for price, row in ascending if rows >> row & 1), inf)
        return known

    def _of(self, state: State, reserved: bool) -> list[tuple[float, int]]:
        """The rows by price."""
        known = self._by_state.get((state, reserved))
        if known is None:
            found: dict[int, float] = {}
            for (_, of_reservation), (requirements, prices) in self._found.items():
                if of_reservation <= reserved and state.accepts(requirements):
                    for row, price in prices.items():
                        found[row] = min(found.get(row, inf), price)
            known = self._by_state[state, reserved] = sorted((price, row) for row, price in found.items())
        return known


class DraftPrices:
    """Prices drafts of passes over one index."""

    def __init__(self, node_costs: Mapping[int, float]) -> None:
        self._node_costs = node_costs
        self._of: dict[int, _Offerings] = {}

    def total(self, run: Pass) -> float:
        """What all drafts of a pass cost together, with what nodes cost beside their instances."""
        return sum(self._one(draft) for draft in run.drafts.made)

    def _one(self, draft: NodeDraft) -> float:
        number = draft.template.number
        offerings = self._of.get(number)
        if offerings is None:
            offerings = self._of[number] = _Offerings(draft.template)
        return offerings.cheapest(draft) + self._node_costs.get(number, 0.0)
