"""Reads a finished pass as a problem: which of its pods may move, and what new nodes there could be.

Only pods on node drafts of pools under the policy take part. The domains that the pass chose for pods bound or counted
by a topology group are kept, so that they come out as they did; those of spreads may be dealt anew. A pod that asks for
what arrays do not say stays on its draft: host ports, company on its host, a domain that no offering names; and so does
what such company may count on. A draft with a reservation stays as it is.
"""

from collections.abc import Mapping
from operator import and_

import numpy as np

from dovetail.placement.cost.problem import Flags, Integers, Problem
from dovetail.placement.cost.reading.choices import Cells, choices_of
from dovetail.placement.cost.reading.compiled import Compiled, Item, Part
from dovetail.placement.cost.reading.dealing import Dealer
from dovetail.placement.cost.reading.host_rules import conflicts, exclusive, host_rules
from dovetail.placement.cost.reading.pods_read import Member, PodReader
from dovetail.placement.search.solve import Pass

_NEARLY_ALL = 0.9


class Compiler:
    def __init__(self, run: Pass, node_costs: Mapping[int, float], deals: bool) -> None:
        """`node_costs`: the templates that take part, by number, with what each node costs beside its instance.
        `deals`: the zones of spreads are dealt anew."""
        self._run = run
        self._deals = deals
        self._templates = [template for template in run.index.templates if template.number in node_costs]
        self._cells = [Cells(template, run.index.settings.cost.spot_chance) for template in self._templates]
        self._beside = [node_costs[template.number] for template in self._templates]
        self._reader = PodReader(run.demands_by_uid, self._cells)

    def compile(self) -> Compiled | None:
        """The problem; None: there is nothing to move.

        Pods that only types hold with too few others beside them may be on any that suits them. What no choice holds
        even so stays on its draft.
        """
        tight, staying = set[str](), set[str]()
        while True:
            found = self._compiled(tight, staying)
            if found is None:
                return None
            homeless = _homeless(found)
            if not homeless:
                return found
            staying |= homeless & tight
            tight |= homeless

    def _read(self, left: set[str]) -> tuple[list[Part], list[Part], list[Member]]:
        """What stays of each draft, `left` as well, what takes part, and the pods of that."""
        frozen, moving, found = list[Part](), list[Part](), list[Member]()
        chosen = {id(template) for template in self._templates}
        for draft in self._run.drafts.made:
            members, staying = list[Member](), draft.pods
            if id(draft.template) in chosen and not draft.held:
                members, staying = self._reader.members(draft)
                staying = [*staying, *(member.pod for member in members if member.pod.uid in left)]
                members = [member for member in members if member.pod.uid not in left]
            if staying:
                kept, fixed = self._reader.kept(draft, staying), self._reader.counted(draft, staying)
                frozen.append(Part(draft.number, draft.template, staying, kept, draft.held, fixed))
            if members:
                moving.append(Part(draft.number, draft.template, [member.pod for member in members]))
                found += members
        return frozen, moving, Dealer(self._reader, found).dealt() if self._deals else found

    def _compiled(self, tight: set[str], staying: set[str]) -> Compiled | None:
        frozen, moving, members = self._read(staying)
        settings = self._run.index.settings.cost
        found: dict[tuple[object, ...], Item] = {}
        keys: list[tuple[int, int]] = []
        asked: dict[tuple[int, int], int] = {}  # per need and number of types to keep, its place
        for member in members:
            need = member.need, 1 if member.pod.uid in tight else settings.types
            key = (id(member.demand), member.fixed, member.kept, need, member.colour)
            item = found.get(key)
            if item is None:
                item = found[key] = Item(member.demand, member.fixed, member.kept, [])
                keys.append((asked.setdefault(need, len(asked)), member.colour))
            item.pods.append(member.pod)
        if not found:
            return None
        items = list(found.values())
        kept = [(self._reader.needs[need], types) for need, types in asked]
        anywhere = self._may_be_anywhere(members)
        choices, room, price, suits = choices_of(self._cells, kept, self._beside, anywhere)
        needs, suits = _alike(np.array([need for need, _ in keys], dtype=np.int64), suits)
        host_needs = [self._reader.host_needs(item) for item in items]
        hosts = host_rules(host_needs)
        problem = Problem(
            sizes=np.array([item.demand.wanted for item in items], dtype=np.float64),
            stock=np.array([len(item.pods) for item in items], dtype=np.int64),
            need=needs,
            colour=np.array([colour for _, colour in keys], dtype=np.int64),
            room=room,
            price=price,
            suits=suits,
            hosts=hosts,
            conflicts=conflicts(host_needs),
            exclusive=None if hosts is None else exclusive(hosts, len(items)),
        )
        dealt = self._deals and any(item.fixed for item in items)
        spot = {cells.template: cells.spot for cells in self._cells}
        return Compiled(problem, items, choices, frozen, moving, spot, dealt)

    def _may_be_anywhere(self, members: list[Member]) -> bool:
        """Whether nearly all pods may be in any zone. If not, nodes for any zone would keep out the others, which are
        needed to fill them."""
        is_open = [bool(keys) for cells in self._cells for keys in cells.open]
        free = {number for number, rows in enumerate(self._reader.needs) if any(map(and_, is_open, map(bool, rows)))}
        return sum(member.need in free for member in members) >= _NEARLY_ALL * len(members)


def _homeless(compiled: Compiled) -> set[str]:
    """The UIDs of pods that no choice holds, even alone."""
    problem, found = compiled.problem, set[str]()
    for number, item in enumerate(compiled.items):
        holds = (problem.room >= problem.sizes[number]).all(axis=1)
        if not (holds & problem.suits[problem.need[number]]).any():
            found |= {pod.uid for pod in item.pods}
    return found


def _alike(need: Integers, suits: Flags) -> tuple[Integers, Flags]:
    """Needs that the same choices suit, as one."""
    numbers: dict[bytes, int] = {}
    rows: list[int] = []
    renamed = []
    for number, row in enumerate(np.packbits(suits, axis=1)):
        known = numbers.setdefault(row.tobytes(), len(numbers))
        if known == len(rows):
            rows.append(number)
        renamed.append(known)
    return np.array(renamed, dtype=np.int64)[need], np.ascontiguousarray(suits[rows])
