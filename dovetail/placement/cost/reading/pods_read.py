"""What do pods that may move ask of a new node, as far as arrays can say it?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dovetail.model.pods import Pod
from dovetail.placement.constraints.demands import Demand, ShapeInPass
from dovetail.placement.constraints.topology_groups import DomainGroup, HostGroup
from dovetail.placement.cost.reading.choices import Cells
from dovetail.placement.cost.reading.compiled import Fixed, Item
from dovetail.placement.cost.reading.held_preferences import HeldPreferences
from dovetail.placement.cost.reading.host_rules import HostNeeds
from dovetail.placement.facts.states import Needs, State
from dovetail.placement.facts.templates import Template
from dovetail.placement.search.node_draft import NodeDraft


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A pod that may move, and what makes it alike to others."""

    pod: Pod
    demand: Demand
    fixed: Fixed
    kept: Needs
    need: int
    colour: int
    weight: int  # of the pool that it has; it goes to no lighter one


class PodReader:
    def __init__(self, demands: Mapping[str, Demand], cells: Sequence[Cells]) -> None:
        """`demands`: of the pods that are placed, by UID."""
        self._demands = demands
        self._cells = cells
        self._cell_keys = set.intersection(*(each.keys for each in cells)) if cells else set()
        determined = [each.determined() for each in cells]
        self._determined = set.intersection(*determined) if determined else set()
        self._recorded: dict[ShapeInPass, list[DomainGroup | HostGroup]] = {}
        self._rigid: dict[ShapeInPass, bool] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self.needs: list[list[int]] = []  # per need and cell, the rows that suit
        self._colours: dict[frozenset[object], int] = {frozenset(): 0}
        self._held = HeldPreferences()

    def members(self, draft: NodeDraft) -> tuple[list[Member], list[Pod]]:
        """The pods of a draft that may move, as items, and those that stay."""
        if draft.rows & draft.template.fit.crowded:
            return [], list(draft.pods)
        found, staying = list[Member](), list[Pod]()
        for pod, demand, state in self._arrivals(draft):
            shape = demand.shape
            fixed = None if self._is_rigid(shape) else self._fixed(shape, draft, state)
            weight = draft.template.pool.weight
            kept = self._held.of(pod, shape, draft.state)
            need = -1 if fixed is None else self.need(shape, fixed, kept, weight)
            if fixed is None or need < 0:
                staying.append(pod)
            else:
                found.append(Member(pod, demand, fixed, kept, need, self._colour(shape, kept), weight))
        return found, staying

    def kept(self, draft: NodeDraft, pods: Sequence[Pod]) -> tuple[Needs, ...]:
        """What these pods of the draft prefer and have there, without asking for it."""
        found = (self._held.of(pod, self._demands[pod.uid].shape, draft.state) for pod in pods)
        return tuple(dict.fromkeys(needs for needs in found if needs.requirements))

    def counted(self, draft: NodeDraft, pods: Sequence[Pod]) -> Fixed:
        """The domains in which affinity counts these pods of the draft: others may have come there because of them."""
        found: dict[str, str] = {}
        uids = {pod.uid for pod in pods}
        for pod, demand, state in self._arrivals(draft):
            for group in self.domain_groups(demand.shape) if pod.uid in uids else ():
                value = (draft.state if group.every_value else state).values.get(group.term.key)
                if value is not None and group.term.kind != "spread":
                    found[group.term.key] = value
        return tuple(sorted(found.items()))

    def _arrivals(self, draft: NodeDraft) -> Iterator[tuple[Pod, Demand, State]]:
        """The pods of a draft as they came, each with its demand and with the draft's state once it was there."""
        state = draft.start or draft.template.start
        for pod in draft.pods:
            demand = self._demands[pod.uid]
            state = _after(demand.shape, state, draft)
            yield pod, demand, state

    def groups(self, shape: ShapeInPass) -> list[DomainGroup | HostGroup]:
        known = self._recorded.get(shape)
        if known is None:
            known = self._recorded[shape] = list(shape.recording.everything)
        return known

    def domain_groups(self, shape: ShapeInPass) -> list[DomainGroup]:
        """The groups that count such a pod by the values of a label other than the hostname."""
        return [group for group in self.groups(shape) if isinstance(group, DomainGroup)]

    def _is_rigid(self, shape: ShapeInPass) -> bool:
        known = self._rigid.get(shape)
        if known is None:
            domains = [group for group, _ in shape.domains]
            domains += self.domain_groups(shape)
            known = self._rigid[shape] = (
                bool(shape.ports)
                or any(group.term.kind == "affinity" for group, _ in shape.hosts)
                or any(isinstance(g, HostGroup) and g.term.kind == "affinity" for g in self.groups(shape))
                or any(group.term.key not in self._cell_keys for group in domains)
            )
        return known

    def _fixed(self, shape: ShapeInPass, draft: NodeDraft, state: State) -> Fixed | None:
        """The domains that the pod keeps; None: it is bound to several.

        `state`: the draft's when the pod came. A group that found no single domain then did not count the pod, which
        may be anywhere, if only it comes last.
        """
        found: dict[str, str] = {}
        for group, _ in shape.domains:
            value = draft.state.values.get(group.term.key)
            if value is None:
                return None
            found[group.term.key] = value
        for counting in self.domain_groups(shape):
            if counting.term.key not in found:
                value = (draft.state if counting.every_value else state).values.get(counting.term.key)
                if value is not None:
                    found[counting.term.key] = value
                elif counting.every_value:
                    return None
        return tuple(sorted(found.items()))

    def need(self, shape: ShapeInPass, fixed: Fixed, kept: Needs, weight: int) -> int:
        """The number of the needs of such pods in these domains; -1: no choice suits them."""
        key = (id(shape.facts), fixed, kept, weight)
        known = self._numbers.get(key)
        if known is None:
            rows = [each for cells in self._cells for each in _rows_of(shape, fixed, kept, weight, cells)]
            known = self._numbers[key] = len(self.needs) if any(rows) else -1
            if known >= 0:
                self.needs.append(rows)
        return known

    def _colour(self, shape: ShapeInPass, kept: Needs) -> int:
        """Pods that ask for different values of a label that no type decides are not put together."""
        facts = shape.facts
        sets = (facts.needs.others, kept.others, *(alternative.others for alternative in facts.alternatives))
        asked = frozenset(item for each in sets for key, item in each.items() if key not in self._determined)
        return self._colours.setdefault(asked, len(self._colours))

    def host_needs(self, item: Item) -> HostNeeds:
        """What pods like these ask of the others on their node."""
        shape = item.demand.shape
        counting = [group for group in self.groups(shape) if isinstance(group, HostGroup)]
        return HostNeeds(shape.hosts, counting, len(item.pods))


def _rows_of(shape: ShapeInPass, fixed: Fixed, kept: Needs, weight: int, cells: Cells) -> list[int]:
    """Per cell of a template the rows that suit such pods."""
    template = cells.template
    if not _admits(template, weight) or not shape.facts.tolerated[template.number]:
        return [0] * len(cells.states)
    suiting = template.rows & template.fit.whole
    each = zip(cells.states, cells.open, strict=True)
    return [suiting & _rows(shape, fixed, cell.narrow(kept), keys) for cell, keys in each]


def _rows(shape: ShapeInPass, fixed: Fixed, cell: State | None, left_open: frozenset[str]) -> int:
    """The rows of one cell; none if the pods ask for anything of a label that the cell leaves open."""
    if cell is None or any(cell.values.get(key) != value for key, value in fixed):
        return 0
    rows = 0
    for narrowed in shape.narrowings(cell):
        if all(narrowed.requirements.get(key) == cell.requirements.get(key) for key in left_open):
            rows |= narrowed.rows
    return rows


def _admits(template: Template, weight: int) -> bool:
    """Whether pods of a pool of this weight may come to this one.

    To no lighter one, and to a heavier one only if it has no limits: what they leave is for the pods that were there.
    """
    pool = template.pool
    return pool.weight == weight or (pool.weight > weight and not pool.limits)


def _after(shape: ShapeInPass, state: State, draft: NodeDraft) -> State:
    """The state of a draft after such a pod came, as far as the domains of its groups go."""
    narrowed = shape.narrowings(state)
    if len(narrowed) != 1:
        return draft.state
    [after] = narrowed
    for group, _ in shape.domains:
        key = group.term.key
        if key in draft.state.values:
            after = after.pin(key, frozenset((draft.state.values[key],))) or after
    return after
