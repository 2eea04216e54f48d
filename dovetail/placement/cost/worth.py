"""What are pods worth that run: what must new nodes for them cost at the least?

Amounts, and the offerings that suit a pod, are all that is looked at. The caller wants to know where to look for a
saving, and lets a pass judge what is found.
"""

from collections.abc import Sequence

import numpy as np

from dovetail.model.pods import Pod
from dovetail.placement.constraints.demands import ShapeFacts
from dovetail.placement.cost.policy import node_costs
from dovetail.placement.cost.problem import Flags, Problem
from dovetail.placement.cost.reading.choices import Cells, flags
from dovetail.placement.cost.searching.values import least_values
from dovetail.placement.index.index import Index


def worth_of_pods(index: Index, pods: Sequence[Pod]) -> dict[str, float]:
    """What each pod is worth in dollars an hour, by UID: its share of a bound for all of them, which holds for any part
    of them as well. Pods that no offering of a pool under the policy suits are left out."""
    choices = _Choices(index)
    needs, numbers = _Needs(choices), dict[tuple[int, tuple[int, ...]], int]()
    item_of: dict[str, int] = {}
    for pod in pods:
        facts = index.facts(pod)
        need = None if facts is None else needs.of(facts)
        if need is not None:
            item_of[pod.uid] = numbers.setdefault((need, index.vector(pod.requests)), len(numbers))
    if not item_of:
        return {}
    items = len(numbers)
    problem = Problem(
        sizes=np.array([size for _, size in numbers], dtype=np.float64),
        stock=np.bincount(list(item_of.values()), minlength=items).astype(np.int64),
        need=np.array([need for need, _ in numbers], dtype=np.int64),
        colour=np.zeros(items, dtype=np.int64),
        room=np.array(choices.room, dtype=np.float64),
        price=np.array(choices.price),
        suits=np.stack(needs.suits),
        hosts=None,
        conflicts=np.zeros(items),
        exclusive=None,
    )
    values = least_values(problem, np.random.default_rng(index.settings.cost.seed))
    return {uid: float(values[item]) for uid, item in item_of.items()}


class _Choices:
    """The room and the price, node cost included, of every offering that the pools under the policy may launch."""

    def __init__(self, index: Index) -> None:
        costs = node_costs(index.templates, index.settings.cost, index.judging)
        self._prefer_no_schedule = index.prefer_no_schedule
        self.cells = [Cells(template) for template in index.templates if template.number in costs]
        self.room: list[Sequence[int]] = []
        self.price: list[float] = []
        for each in self.cells:
            for by_row in each.prices:
                self.room += [each.template.fit.room[row] for row in by_row]
                self.price += [price + costs[each.template.number] for price in by_row.values()]

    def suiting(self, facts: ShapeFacts) -> Flags:
        """The offerings that suit what pods of this shape ask of a node, also once preferences and all but one of its
        alternatives are given up; what pods ask of one another is left out."""
        found = np.zeros(len(self.price), dtype=bool)
        each: ShapeFacts | None = facts
        while each is not None:
            found |= self._suiting(each)
            each = each.relaxed(self._prefer_no_schedule)
        return found

    def _suiting(self, facts: ShapeFacts) -> Flags:
        found = [np.zeros(0, dtype=bool)]
        for each in self.cells:
            rows = len(each.template.table.rows)
            for state, by_row in zip(each.states, each.prices, strict=True):
                narrowed = state.narrow(facts.strict) if facts.tolerated[each.template.number] else None
                suits = flags(narrowed.rows if narrowed is not None else 0, rows)
                found.append(suits[list(by_row)])
        return np.concatenate(found)


class _Needs:
    """What pods ask of a node, each once; what suits nobody's offerings is none."""

    def __init__(self, choices: _Choices) -> None:
        self._choices = choices
        self._of: dict[int, int | None] = {}
        self._numbers: dict[bytes, int] = {}
        self.suits: list[Flags] = []

    def of(self, facts: ShapeFacts) -> int | None:
        """Its number, equal for all that the same offerings suit."""
        key = id(facts)
        if key not in self._of:
            suits = self._choices.suiting(facts)
            self._of[key] = self._number(suits) if suits.any() else None
        return self._of[key]

    def _number(self, suits: Flags) -> int:
        number = self._numbers.setdefault(suits.tobytes(), len(self._numbers))
        if number == len(self.suits):
            self.suits.append(suits)
        return number
