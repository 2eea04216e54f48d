"""Can a draft of this pass take the pod, or can a new one be opened for it?

Asked after the existing nodes (PLC-150 to PLC-163). A set of drafts is the bits of an integer. Candidates are the
drafts in states that suit the pod's shape, except those that its groups on the hostname reject and those known never to
take such a pod again. Only candidates are checked, in order, for types, minimum values and reservations.

A draft that has no type left in the domain that a spread asks for now may still take such a pod later, when the spread
asks for another domain; it stays a candidate (unlike PLF-14).
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from operator import add, le
from typing import NamedTuple

from dovetail.model import names
from dovetail.model.pods import HostPort, Pod
from dovetail.model.scheduling.host_ports import first_conflict
from dovetail.placement.constraints.demands import Demand, ShapeInPass
from dovetail.placement.constraints.domain_choices import forget_old_picks, options_of, targets
from dovetail.placement.constraints.limits import Limits
from dovetail.placement.constraints.reservations import NONE, Held, Reservations
from dovetail.placement.constraints.topology_groups import DomainGroup, HostGroup
from dovetail.placement.devices.ledger import DeviceLedger
from dovetail.placement.devices.needs import DeviceNeeds
from dovetail.placement.facts.states import State
from dovetail.placement.facts.templates import Template
from dovetail.placement.facts.type_table import TypeTable
from dovetail.placement.min_values import shortest_prefix
from dovetail.placement.search.headroom import Headroom
from dovetail.placement.search.node_draft import NodeDraft
from dovetail.placement.search.proposal_order import DraftOrder
from dovetail.placement.settings import PlacementSettings

# After this many candidates without room, all others without room are ruled out at once.
_PATIENCE = 8


class ReservationRefusal(Exception):
    """Suitable reserved capacity exists but cannot be had now (PLC-184)."""


class Beginning(NamedTuple):
    """What a new draft requires and holds before its first pod."""

    state: State
    rows: int
    held: Held
    relaxed: bool  # whether a minimum was lowered for it (PLC-125)


class DraftPlacer:
    """The drafts of one pass, by number in `made`."""

    def __init__(
        self,
        templates: list[Template],
        limits: Limits,
        reservations: Reservations,
        settings: PlacementSettings,
        devices: DeviceLedger | None,
    ) -> None:
        self.made: list[NodeDraft] = []
        self.order = DraftOrder()
        self.closed: frozenset[str] = frozenset()  # pools of which none is opened now
        self.crowds = any(template.fit.crowded for template in templates)
        self.crowding = False  # whether one may be opened of types that are too small for a DaemonSet (PLQ-69)
        self.runs_beside: Callable[[Pod], frozenset[str]] = lambda _: frozenset()  # DaemonSets that it would lose
        self.limits = limits
        self.reservations = reservations
        self.devices = devices
        self._templates = self._offered = templates
        self._settings = settings
        self._states: list[State] = []  # every state that a draft of this pass has or had
        self._in_state: dict[State, int] = {}
        self._template_of = {template.states: template for template in templates}
        self._headroom = Headroom()
        self._somewhere = False  # whether topology would let the pod in hand be on some new draft

    # --- open drafts

    def _admit_states(self, shape: ShapeInPass) -> None:
        """Let the shape judge the states that drafts have reached since it last did; states are never removed."""
        for state in self._states[shape.seen_states :]:
            if shape.facts.tolerated[self._template_of[state.states].number]:
                shape.admit(state)
        shape.seen_states = len(self._states)

    def _candidates(self, demand: Demand) -> int:
        """The drafts that may take the pod if they have room."""
        shape = demand.shape
        allowed = ((1 << len(self.made)) - 1) ^ demand.dead
        for levels, count in shape.full:
            masks = levels.masks
            if count <= len(masks):
                allowed ^= allowed & masks[count - 1]
        for group, own in shape.crowded:
            allowed ^= allowed & group.rejects(group.drafts, own, allowed)
        if not allowed:
            return 0
        candidates, in_state = 0, self._in_state
        for state in chain(shape.settled, shape.open):
            drafts = in_state[state] & allowed
            if drafts and options_of(shape, state):
                candidates |= drafts
        return candidates

    def place_on_open(self, demand: Demand, pod: Pod) -> bool:
        """Put the pod on the first open draft that accepts it (PLC-97)."""
        if not self.made:
            return False
        shape = demand.shape
        if shape.seen_states < len(self._states):
            self._admit_states(shape)
        draft = self.made[self.order.front()]  # most pods join the first of all, without a look at the masks
        if self._free(demand, draft.number):
            options = options_of(shape, draft.state)
            if options and self._join(demand, pod, draft, options):
                return True
        candidates = self._candidates(demand)
        if not candidates:
            return False
        draft = self.made[self.order.first(candidates)]  # nearly all others join this one
        if self._join(demand, pod, draft, options_of(shape, draft.state)):
            return True
        return self._join_any(demand, pod, candidates ^ 1 << draft.number)

    def _join_any(self, demand: Demand, pod: Pod, candidates: int) -> bool:
        """Put the pod on the first of these drafts that accepts it, after one did not."""
        tries = 1
        for number in self.order.among(candidates):
            if tries >= _PATIENCE:
                if tries == _PATIENCE:
                    candidates &= self._headroom.with_room(demand.wanted, self.made)
                tries += 1
                if not candidates >> number & 1:
                    continue
            tries += 1
            draft = self.made[number]
            if self._join(demand, pod, draft, options_of(demand.shape, draft.state)):
                return True
        return False

    @staticmethod
    def _free(demand: Demand, number: int) -> bool:
        """Whether neither an earlier refusal nor a group on the hostname keeps such a pod off the draft."""
        if demand.dead >> number & 1:
            return False
        shape = demand.shape
        for levels, most in shape.full:
            if levels.count(number) >= most:
                return False
        return not shape.crowded or not any(
            g.rejects(g.drafts, own, 1 << number) >> number & 1 for g, own in shape.crowded
        )

    def _join(self, demand: Demand, pod: Pod, draft: NodeDraft, options: tuple[State, ...]) -> bool:
        """Put the pod on the draft if it has room for it in one of these states."""
        shape, template, present = demand.shape, draft.template, draft.state
        total = list(map(add, draft.used, demand.wanted))
        if all(map(le, total, draft.room)) and shape.plain and not template.reserved_rows:
            state = options[0]
            if (state is present or state.rows >> draft.witness & 1) and not state.minima:
                self._commit(shape, pod, draft, state, total)
                return True
        rows = template.fit.holding(total, draft.rows)
        if rows and not shape.plain:
            rows = self._beyond_room(demand, pod, template, rows, draft)
        if not rows:
            demand.dead |= 1 << draft.number
            return False
        for state in options:
            left = rows & state.rows
            if left and (not state.minima or not self.short(template, state, left)):
                held = self._kept(draft, state, left) if template.reserved_rows else NONE
                if held is not None:
                    draft.settle(left)
                    self._hold(draft, held)
                    self._commit(shape, pod, draft, state, total)
                    return True
                return False  # PLC-186: the next draft may still take it
        if not any(rows & narrowed.rows for narrowed in shape.narrowings(present)):
            demand.dead |= 1 << draft.number
        return False

    def _beyond_room(
        self, demand: Demand, pod: Pod, template: Template, rows: int, draft: NodeDraft | None = None
    ) -> int:
        """The rows that leave the pod's host ports free and bring its devices; without a draft, of a new one."""
        if demand.shape.ports:
            rows = self.free_ports(pod, template, draft.ports if draft is not None else [], rows)
        needs = demand.shape.facts.devices
        if not rows or needs is None:
            return rows
        return self.with_devices(needs, template, rows, draft.number if draft is not None else -1)

    def with_devices(self, needs: DeviceNeeds, template: Template, rows: int, draft: int = -1) -> int:
        """The rows whose types bring what the pod's resource claims ask for (PLC-153, PLC-156)."""
        return rows if self.devices is None else self.devices.rows(needs, template, rows, draft)

    def free_ports(self, pod: Pod, template: Template, taken: list[tuple[str, HostPort]], rows: int) -> int:
        """The rows whose DaemonSets and pods leave the pod's host ports free (PLC-118)."""
        wanted = pod.shape.host_ports
        if first_conflict(wanted, [port for key, port in taken if key != pod.key]) is not None:
            return 0
        fit = template.fit
        for overhead, members in zip(fit.overheads, fit.overhead_rows, strict=True):
            if overhead.ports and first_conflict(wanted, overhead.ports) is not None:
                rows &= ~members
        return rows

    def short(self, template: Template, state: State, rows: int) -> dict[str, int]:
        """The keys with too few distinct values among the types (PLC-122) or on the claim, and how many each has."""
        if not state.minima:
            return {}
        table, counts_listed = template.table, self._settings.profile.minimum_counts_listed
        types = (table.types[n].requirements for n in table.types_in(rows))
        short = shortest_prefix(types, state.requirements, counts_listed)[1]
        if not counts_listed:
            return short
        for key, wanted in state.minima.items():
            left = self._values_left(table, state, rows, key)
            if left is not None and left < min(wanted, short.get(key, wanted)):
                short[key] = left
        return short

    def _held_for(self, template: Template, state: State, rows: int, held: Held) -> tuple[Held, dict[str, int]]:
        """What of it one launch may go into, and the keys with too few values among its types, as a launch into
        reservations takes no others. Nothing is asked of its capacity types: it has one (PLC-187)."""
        if not held or not state.minima:
            return held, {}
        found: list[tuple[Held, dict[str, int]]] = []
        for part, its in self.reservations.launchable(template, state, rows, held):
            short = self.short(template, state, its)
            short.pop(names.CAPACITY_TYPE, None)
            found.append((part, short))
        return min(found, key=lambda each: sum(state.minima[key] - count for key, count in each[1].items()))

    def _kept(self, draft: NodeDraft, state: State, rows: int) -> Held | None:
        """What the draft would hold then; None: its pod must wait, or would cost the draft what it holds."""
        held = self.reservations.available(draft.template, state, rows, draft.held)
        if not held or not state.minima:
            return held
        kept, few = self._held_for(draft.template, state, rows, held & draft.held or held)
        return kept if not few else None if draft.held else NONE

    def begin(self, template: Template, target: State, rows: int) -> Beginning | Mapping[str, int] | None:
        """How a new draft of these rows would begin. Otherwise the keys with too few values and how many each has
        (PLC-122); None: its pod must wait for reserved capacity (PLC-184)."""
        strict = self._settings.min_values_policy == "Strict"
        short = self.short(template, target, rows)
        if short and strict:
            return short
        state = target.with_minima(short) if short else target
        available = self.reservations.available(template, state, rows, NONE)
        if available is None:
            return None
        held, few = self._held_for(template, state, rows, available)
        if not few:
            return Beginning(state, rows, held, relaxed=bool(short))
        if not strict:
            return Beginning(state.with_minima(few), rows, held, relaxed=True)
        every = self.reservations.worth_waiting_for(template, state, rows)
        if every and not self._held_for(template, state, rows, every)[1]:
            return None
        other = state.without_reserved()
        left = rows & other.rows if other is not None else 0
        if other is None or not left or self.short(template, other, left):
            return few
        return Beginning(other, left, NONE, relaxed=False)

    @staticmethod
    def _values_left(table: TypeTable, state: State, rows: int, key: str) -> int | None:
        """How many values of a key its claim would list; None if the number is not finite (PLC-196)."""
        if key == names.CAPACITY_TYPE:
            return len(table.offered_values(key, state.requirements, rows))
        item = state.requirements[key]
        return None if item.complement else len(item.values)

    # --- new drafts

    def close(self, pools: frozenset[str]) -> None:
        """Open drafts of all pools but these."""
        self.closed = pools
        self._offered = [template for template in self._templates if template.pool.name not in pools]

    def place_on_new(self, demand: Demand, pod: Pod) -> bool:
        """Open a draft of the first template that accepts the pod (PLC-160)."""
        shape = demand.shape
        for group, own in shape.hosts:
            if not group.accepts_new(own):
                return False
        if shape.domains:  # PLF-21: a preference that cannot be met any more is not tried with every template again
            forget_old_picks(shape)
            if shape.nowhere_at == shape.picked_at:
                return False
            self._somewhere = bool(self.closed)  # topology is not asked about these
        if self._open_any(demand, pod) or (self.crowding and self._open_any(demand, pod, crowded=True)):
            return True
        if shape.domains and not self._somewhere:
            shape.nowhere_at = shape.picked_at
        return False

    def _open_any(self, demand: Demand, pod: Pod, *, crowded: bool = False) -> bool:
        if crowded and self.has_room_beside_all(demand, pod):
            return False
        for template in self._offered:
            if not demand.shape.facts.tolerated[template.number] or self.limits.nodes_exhausted(template):
                continue
            rows = self.limits.rows(template) & (self.crowded(pod, template) if crowded else template.fit.whole)
            if not rows:
                self._somewhere = True  # as far as is known: topology was not asked
            elif self._open(demand, pod, template, rows):
                return True
        return False

    def crowded(self, pod: Pod, template: Template) -> int:
        """The rows too small for one of their DaemonSets that the pod may have all the same: it need not be beside one,
        and does not leave a node on which one runs that would then have none."""
        if template.is_for_company(pod.shape):
            return 0
        return template.fit.crowded & ~template.fit.lacking(self.runs_beside(pod))

    def has_room_beside_all(self, demand: Demand, pod: Pod) -> bool:
        """Whether a type would hold the pod beside all its DaemonSets but for minValues, or is awaited."""
        return any(
            any(self._suiting(demand, pod, template, self.limits.rows(template) & template.fit.whole))
            for template in self._offered
            if demand.shape.facts.tolerated[template.number] and not self.limits.nodes_exhausted(template)
        ) or any(self.awaits(demand, pod, template) for template in self._offered)

    def awaits(self, demand: Demand, pod: Pod, template: Template) -> bool:
        """Whether the pool has a type that would hold the pod beside its DaemonSets and is not for sale for the
        moment."""
        later = template.later
        if later is None or not later.tolerated_by(pod.shape) or self.limits.nodes_exhausted(template):
            return False
        rows = self.limits.rows(later) & later.fit.whole & later.awaited
        return any(self._suiting(demand, pod, later, rows))

    def place_on(self, demand: Demand, pod: Pod, number: int) -> bool:
        """Put the pod on exactly this draft, if it accepts the pod."""
        shape = demand.shape
        if shape.seen_states < len(self._states):
            self._admit_states(shape)
        draft = self.made[number]
        if not shape.facts.tolerated[draft.template.number] or not self._free(demand, number):
            return False
        options = options_of(shape, draft.state)
        return bool(options) and self._join(demand, pod, draft, options)

    def place_on_new_of(self, demand: Demand, pod: Pod, template: Template, start: State, rows: int) -> bool:
        """Open a draft of this template, limited to these rows, that begins with these requirements (the template's own
        or narrower ones)."""
        shape = demand.shape
        if not shape.facts.tolerated[template.number] or self.limits.nodes_exhausted(template):
            return False
        if any(not group.accepts_new(own) for group, own in shape.hosts):
            return False
        forget_old_picks(shape)
        return self._open(demand, pod, template, rows & self.limits.rows(template), start)

    def _open(self, demand: Demand, pod: Pod, template: Template, rows: int, start: State | None = None) -> bool:
        """Open a draft of this template if one of these rows would do."""
        waits = False
        for target, left in self._suiting(demand, pod, template, rows, start):
            begun = self.begin(template, target, left)
            if isinstance(begun, Beginning):
                draft = NodeDraft(
                    number=len(self.made),
                    template=template,
                    state=begun.state,
                    rows=begun.rows,
                    used=[],
                    min_values_relaxed=begun.relaxed,
                    start=start,
                )
                self._create(draft, begun.held)
                self._commit(demand.shape, pod, draft, begun.state, list(demand.wanted))
                return True
            waits = waits or begun is None
        if waits:
            raise ReservationRefusal
        return False

    def _suiting(
        self, demand: Demand, pod: Pod, template: Template, rows: int, start: State | None = None
    ) -> Iterator[tuple[State, int]]:
        """The states that a new draft could have for the pod, with those of these rows that would do in each."""
        rows = demand.holding(template.fit, rows)
        if rows and not demand.shape.plain:
            rows = self._beyond_room(demand, pod, template, rows)
        if not rows:
            self._somewhere = True
            return
        for narrowed in demand.shape.narrowings(start or template.start):
            for target in targets(demand.shape, narrowed):
                self._somewhere = True
                if left := rows & target.rows:
                    yield target, left

    def _create(self, draft: NodeDraft, held: Held) -> None:
        """The draft counts against limits and reservations (PLC-161)."""
        draft.settle(draft.rows)
        self.made.append(draft)
        if draft.template.start.minima:
            self._settings.profile.share_relaxed_mark(draft, self.made)
        self._enter(draft.state, 1 << draft.number)
        self.limits.charge_draft(draft.template, draft.rows)
        self._hold(draft, held)

    # --- placing

    def _enter(self, state: State, bit: int) -> None:
        present = self._in_state.get(state)
        if present is None:
            self._states.append(state)
            self._in_state[state] = bit
        else:
            self._in_state[state] = present | bit

    def _hold(self, draft: NodeDraft, held: Held) -> None:
        if held or draft.held:
            self.reservations.exchange(draft.held, held)
            draft.held = held

    def _commit(self, shape: ShapeInPass, pod: Pod, draft: NodeDraft, state: State, total: list[int]) -> None:
        """Put the pod on the draft, which takes that state (PLC-162)."""
        number = draft.number
        if draft.pods:
            self.order.raise_draft(number)
        else:
            self.order.append(number)
        if state is not draft.state:
            bit = 1 << number
            self._in_state[draft.state] ^= bit
            self._enter(state, bit)
            draft.state = state
            draft.rows &= state.rows
        draft.used = total
        draft.pods.append(pod)
        self._headroom.changed.add(number)
        if not shape.plain:
            draft.ports.extend((pod.key, port) for port in shape.ports)
            if self.devices is not None and shape.facts.devices is not None:
                self.devices.commit_draft(shape.facts.devices, number)
        recording = shape.recording
        for record_draft in recording.by_draft:
            record_draft(number)
        for record, key in recording.by_value:
            value = state.values.get(key)
            if value is not None:
                record(value)
        for group in recording.by_values:
            group.record_placement(state.requirements.get(group.term.key))
        for filtered in recording.filtered:
            self.record_in(filtered, draft)

    def record_in(self, group: DomainGroup | HostGroup, draft: NodeDraft) -> None:
        """Count one pod on a draft in one group, if the group counts pods of such nodes (PLC-181)."""
        term = group.term
        if term.filter is not None and not term.filter.accepts(
            draft.template.pool.template.taints, draft.state.requirements
        ):
            return
        if isinstance(group, HostGroup):
            group.record(group.drafts, draft.number)
        else:
            group.record_placement(draft.state.requirements.get(term.key))
