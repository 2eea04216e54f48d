"""Can a claim of this pass take the pod, or can a new one be opened for it?

Asked after the existing nodes (S-150 to S-163). Claims are bits: the states that suit a kin, minus the hosts that its
groups reject, minus the claims that were found dead for its kind, are the candidates. Only those are looked at, in
order, and only for types, minimum values and reservations. The trap avoided (against F-14): a claim that has no type
left in the domain that a spread asks for today is not dead; tomorrow the spread may ask for another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import add, le

from dovetail.model.host_ports import first_conflict
from dovetail.model.pods import HostPort, Pod
from dovetail.placement.cluster.states import State
from dovetail.placement.cluster.templates import Template
from dovetail.placement.constraints.domain_choices import forget_old_picks, options_of, targets
from dovetail.placement.constraints.limits import Limits
from dovetail.placement.constraints.reservations import NONE, Held, Reservations
from dovetail.placement.constraints.topology_groups import DomainGroup, HostGroup
from dovetail.placement.min_values import shortest_prefix
from dovetail.placement.search.headroom import Headroom
from dovetail.placement.search.kinds import Kin, Kind
from dovetail.placement.search.proposal_order import ClaimOrder
from dovetail.placement.settings import PlacementSettings

# After so many candidates without room the rest is asked for room all at once.
_PATIENCE = 8


@dataclass(slots=True, kw_only=True, eq=False)
class Claim:
    """A node under construction."""

    number: int
    template: Template
    state: State
    rows: int  # those that may hold all of it: exact when it was last settled, too many since
    used: list[int]
    witness: int = 0  # one row that does, and its room: as long as it does, the others need not be asked
    room: Sequence[int] = ()
    held: Held = NONE
    pods: list[Pod] = field(default_factory=list)
    ports: list[tuple[str, HostPort]] = field(default_factory=list)
    min_values_relaxed: bool = False

    def settle(self, rows: int) -> None:
        """Remember the exact rows."""
        self.rows = rows
        self.witness = rows.bit_length() - 1
        self.room = self.template.fit.room[self.witness]

    def settled_rows(self) -> int:
        """The rows that hold all of it."""
        self.settle(self.template.fit.holding(self.used, self.rows))
        return self.rows


class ReservationRefusal(Exception):
    """S-184: suitable reserved capacity exists but cannot be had now."""


class ClaimPlacer:
    """The claims of one pass."""

    def __init__(
        self, templates: list[Template], limits: Limits, reservations: Reservations, settings: PlacementSettings
    ) -> None:
        self.claims: list[Claim] = []
        self.order = ClaimOrder()
        self.limits = limits
        self.reservations = reservations
        self._templates = templates
        self._settings = settings
        self._states: list[State] = []  # every state that a claim of this pass has or had
        self._in_state: dict[State, int] = {}
        self._template_of = {template.states: template for template in templates}
        self._headroom = Headroom()
        self._somewhere = False  # whether topology left the last pod any place for a new claim

    # --- open claims

    def _admit_states(self, kin: Kin) -> None:
        """Show the kin the states that claims have come to since it last looked; states are only ever added."""
        for state in self._states[kin.seen_states :]:
            if kin.facts.tolerated[self._template_of[state.states].number]:
                kin.admit(state)
        kin.seen_states = len(self._states)

    def _candidates(self, kind: Kind) -> int:
        """The claims that may take the pod by everything but room."""
        kin = kind.kin
        allowed = ((1 << len(self.claims)) - 1) ^ kind.dead
        for levels, count in kin.full:
            masks = levels.masks
            if count <= len(masks):
                allowed ^= allowed & masks[count - 1]
        for group, own in kin.crowded:
            allowed ^= allowed & group.rejects(group.claims, own, allowed)
        if not allowed:
            return 0
        candidates, in_state = 0, self._in_state
        for state in chain(kin.settled, kin.open):
            claims = in_state[state] & allowed
            if claims and options_of(kin, state):
                candidates |= claims
        return candidates

    def place_on_open(self, kind: Kind, pod: Pod) -> bool:
        """Put the pod on the first open claim that accepts it (S-97)."""
        if not self.claims:
            return False
        kin = kind.kin
        if kin.seen_states < len(self._states):
            self._admit_states(kin)
        claim = self.claims[self.order.front()]  # most pods join the first of all, and are spared the masks
        if self._free(kind, claim.number):
            options = options_of(kin, claim.state)
            if options and self._join(kind, pod, claim, options):
                return True
        candidates = self._candidates(kind)
        if not candidates:
            return False
        claim = self.claims[self.order.first(candidates)]  # nearly all others join this one
        if self._join(kind, pod, claim, options_of(kin, claim.state)):
            return True
        tries = 1
        for number in self.order.among(candidates ^ 1 << claim.number):
            if tries >= _PATIENCE:
                if tries == _PATIENCE:
                    candidates &= self._headroom.with_room(kind.wanted, self.claims)
                tries += 1
                if not candidates >> number & 1:
                    continue
            tries += 1
            claim = self.claims[number]
            if self._join(kind, pod, claim, options_of(kin, claim.state)):
                return True
        return False

    @staticmethod
    def _free(kind: Kind, number: int) -> bool:
        """Whether neither a try before nor a group on the hostname keeps such a pod off the claim."""
        if kind.dead >> number & 1:
            return False
        kin = kind.kin
        for levels, most in kin.full:
            if levels.count(number) >= most:
                return False
        return not kin.crowded or not any(g.rejects(g.claims, own, 1 << number) >> number & 1 for g, own in kin.crowded)

    def _join(self, kind: Kind, pod: Pod, claim: Claim, options: tuple[State, ...]) -> bool:
        kin, template, present = kind.kin, claim.template, claim.state
        total = list(map(add, claim.used, kind.wanted))
        if all(map(le, total, claim.room)) and not kin.ports and not template.has_reserved:
            state = options[0]
            if (state is present or state.rows >> claim.witness & 1) and not state.minima:
                self._commit(kin, pod, claim, state, total)
                return True
        rows = template.fit.holding(total, claim.rows)
        if rows and kin.ports:
            rows = self.free_ports(pod, template, claim.ports, rows)
        if not rows:
            kind.dead |= 1 << claim.number
            return False
        for state in options:
            left = rows & state.rows
            if left and (not state.minima or not self.short(template, state, left)):
                held: Held | None = NONE
                if template.has_reserved:
                    held = self.reservations.available(template, state, left, claim.held)
                if held is not None:
                    claim.settle(left)
                    self._hold(claim, held)
                    self._commit(kin, pod, claim, state, total)
                    return True
                return False  # S-186: the next claim may still do
        if not any(rows & narrowed.rows for narrowed in kin.narrowings(present)):
            kind.dead |= 1 << claim.number
        return False

    def free_ports(self, pod: Pod, template: Template, taken: list[tuple[str, HostPort]], rows: int) -> int:
        """S-118: the rows whose DaemonSets and pods leave the pod's host ports free."""
        wanted = pod.shape.host_ports
        if first_conflict(wanted, [port for key, port in taken if key != pod.key]) is not None:
            return 0
        fit = template.fit
        for overhead, members in zip(fit.overheads, fit.overhead_rows, strict=True):
            if overhead.ports and first_conflict(wanted, overhead.ports) is not None:
                rows &= ~members
        return rows

    def short(self, template: Template, state: State, rows: int) -> dict[str, int]:
        """S-122: the keys with too few distinct values, and how many each has."""
        if not state.minima:
            return {}
        table = template.table
        return shortest_prefix((table.types[n].requirements for n in table.types_in(rows)), state.minima)[1]

    # --- new claims

    def place_on_new(self, kind: Kind, pod: Pod) -> bool:
        """Open a claim of the first template that accepts the pod (S-160)."""
        kin = kind.kin
        for group, own in kin.hosts:
            if not group.accepts_new(own):
                return False
        if kin.domains:  # F-21: a preference that cannot be met any more is not tried with every template again
            forget_old_picks(kin)
            if kin.nowhere_at == kin.picked_at:
                return False
            self._somewhere = False
        for template in self._templates:
            if not kin.facts.tolerated[template.number] or self.limits.nodes_exhausted(template):
                continue
            rows = self.limits.rows(template)
            if not rows:
                self._somewhere = True  # not asked
            elif self._open(kind, pod, template, rows):
                return True
        if kin.domains and not self._somewhere:
            kin.nowhere_at = kin.picked_at
        return False

    def _open(self, kind: Kind, pod: Pod, template: Template, rows: int) -> bool:
        rows = kind.holding(template.fit, rows)
        if rows and kind.kin.ports:
            rows = self.free_ports(pod, template, [], rows)
        if not rows:
            self._somewhere = True
            return False
        waits = False
        for narrowed in kind.kin.narrowings(template.start):
            for wished in targets(kind.kin, narrowed):
                self._somewhere = True
                left = rows & wished.rows
                if not left:
                    continue
                short = self.short(template, wished, left)
                if short and self._settings.min_values_policy == "Strict":
                    continue
                state = wished.with_minima(short) if short else wished
                held = self.reservations.available(template, state, left, NONE)
                if held is not None:
                    self._create(kind, pod, template, state, left, held, bool(short))
                    return True
                waits = True
        if waits:
            raise ReservationRefusal
        return False

    def _create(
        self, kind: Kind, pod: Pod, template: Template, state: State, rows: int, held: Held, relaxed: bool
    ) -> None:
        claim = Claim(
            number=len(self.claims),
            template=template,
            state=state,
            rows=rows,
            used=[],
            min_values_relaxed=relaxed,
        )
        claim.settle(rows)
        self.claims.append(claim)
        if template.start.minima:
            self._settings.profile.share_relaxed_mark(claim, self.claims)
        self._enter(state, 1 << claim.number)
        self.limits.charge_claim(template, rows)
        self._hold(claim, held)
        self._commit(kind.kin, pod, claim, state, list(kind.wanted))

    # --- placing

    def _enter(self, state: State, bit: int) -> None:
        present = self._in_state.get(state)
        if present is None:
            self._states.append(state)
            self._in_state[state] = bit
        else:
            self._in_state[state] = present | bit

    def _hold(self, claim: Claim, held: Held) -> None:
        if held or claim.held:
            self.reservations.exchange(claim.held, held)
            claim.held = held

    def _commit(self, kin: Kin, pod: Pod, claim: Claim, state: State, total: list[int]) -> None:
        """S-162."""
        number = claim.number
        if claim.pods:
            self.order.raise_claim(number)
        else:
            self.order.append(number)
        if state is not claim.state:
            bit = 1 << number
            self._in_state[claim.state] ^= bit
            self._enter(state, bit)
            claim.state = state
            claim.rows &= state.rows
        claim.used = total
        claim.pods.append(pod)
        self._headroom.changed.add(number)
        if kin.ports:
            claim.ports.extend((pod.key, port) for port in kin.ports)
        told = kin.recording
        for record_claim in told.by_claim:
            record_claim(number)
        for record, key in told.by_value:
            value = state.values.get(key)
            if value is not None:
                record(value)
        for group in told.by_values:
            group.record_placement(state.requirements.get(group.term.key))
        for filtered in told.filtered:
            self.record_in(filtered, claim)

    def record_in(self, group: DomainGroup | HostGroup, claim: Claim) -> None:
        """S-181: count one pod on a claim in one group, if the group counts pods of such nodes."""
        term = group.term
        if term.filter is not None and not term.filter.accepts(
            claim.template.pool.template.taints, claim.state.requirements
        ):
            return
        if isinstance(group, HostGroup):
            group.record(group.claims, claim.number)
        else:
            group.record_placement(claim.state.requirements.get(term.key))
