"""Which pods are alike, and what does a pass know about all of them at once?

Pods of one shape are bound by the same rules: a `ShapeInPass`. Pods of one shape that also ask for the same amounts of
resources make the same `Demand`, so what is refused to one is refused to all. A demand that gives up a preference
becomes another demand. Both belong to one pass; facts about a shape that hold in every pass over a snapshot are shared
as `ShapeFacts`.

A pod has a relaxed form for each preference that it gives up, and a form takes 10 to 20 kB. They are kept for the next
pod that is alike, up to a bound: 2,400 pods of sixty preferences each took 3 GiB.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from dovetail.model.pods import PodShape
from dovetail.model.scheduling.requirements import Requirement
from dovetail.placement.constraints.preferences import relaxed
from dovetail.placement.constraints.topology import Topology
from dovetail.placement.constraints.topology_groups import DomainGroup, HostGroup, OwnDomainGroup, OwnHostGroup
from dovetail.placement.constraints.topology_terms import Term, TermBook
from dovetail.placement.constraints.volumes import Alternatives
from dovetail.placement.devices.needs import DeviceNeeds
from dovetail.placement.facts.fit import Fit
from dovetail.placement.facts.pod_needs import pod_requirements
from dovetail.placement.facts.states import Needs, NeedsPool, State
from dovetail.placement.facts.templates import Template

# A spread that is the only group of a shape on any key but the hostname, with whether it counts the pod itself, and the
# pod's own requirement on the key. A plain tuple, because it is unpacked at nearly every try.
LoneSpread = tuple[DomainGroup, bool, Requirement | None]


MOST_KEPT: Final = 5_000  # relaxed forms of one index, and of one pass; they are forgotten together


class Beyond(NamedTuple):
    """What a pod asks for through other objects: the alternatives of its volumes, and devices."""

    alternatives: tuple[Needs, ...]
    devices: DeviceNeeds | None = None


class Ground:
    """What all shapes of one index are judged by, and those of them whose next relaxed form is kept."""

    def __init__(self, pool: NeedsPool, book: TermBook, templates: Sequence[Template], preferences: bool) -> None:
        self.pool, self.book, self.templates, self.preferences = pool, book, templates, preferences
        self._keeping: list[ShapeFacts] = []

    def keep(self, facts: "ShapeFacts") -> None:
        """The shape keeps its next form; all others forget theirs where that is one too many."""
        if len(self._keeping) >= MOST_KEPT:
            for each in self._keeping:
                each.forget()
            self._keeping.clear()
        self._keeping.append(facts)


class ShapeFacts:
    """What holds for a shape in every pass over a snapshot."""

    __slots__ = ("_ground", "_next", "_terms", "alternatives", "devices", "needs", "pod_shape", "strict", "tolerated")

    def __init__(self, shape: PodShape, beyond: Beyond, ground: Ground) -> None:
        self.pod_shape = shape
        self.alternatives, self.devices = beyond
        self._ground = ground
        strict = pod_requirements(shape, preferences=False)
        self.strict = ground.pool.intern(strict)  # PLC-46
        soft = ground.preferences and shape.preferred_terms
        self.needs = ground.pool.intern(pod_requirements(shape, preferences=True)) if soft else self.strict
        self.tolerated = tuple(template.tolerated_by(shape) for template in ground.templates)
        self._next: dict[bool, ShapeFacts | None] = {}
        self._terms: list[Term] | None = None

    @property
    def preferences(self) -> bool:
        return self._ground.preferences

    @property
    def terms(self) -> list[Term]:
        """The groups that bind such a pod."""
        if self._terms is None:
            self._terms = self._ground.book.owned(self.pod_shape, self.preferences)
        return self._terms

    def relaxed(self, prefer_no_schedule: bool) -> "ShapeFacts | None":
        """The facts about the shape after one step of relaxation (PLC-101)."""
        if prefer_no_schedule not in self._next:
            shape = relaxed(self.pod_shape, prefer_no_schedule=prefer_no_schedule)
            self._ground.keep(self)
            self._next[prefer_no_schedule] = (
                None if shape is None else ShapeFacts(shape, Beyond(self.alternatives, self.devices), self._ground)
            )
        return self._next[prefer_no_schedule]

    def forget(self) -> None:
        """Keep the next form no longer."""
        self._next.clear()


class Recording:
    """The groups that count a placement, by how they count (PLC-181). Most count pods on any node.

    On a node draft a group counts by the draft's number, by the one value that the draft's state has for the group's
    key, or by all the values that it has left. A group with a filter looks at the node first.
    """

    __slots__ = ("by_draft", "by_value", "by_values", "everything", "filtered")

    def __init__(self, groups: Sequence[DomainGroup | HostGroup]) -> None:
        self.everything = groups
        self.filtered = [group for group in groups if group.term.filter is not None]
        plain = [group for group in groups if group.term.filter is None]
        self.by_draft = [group.record_draft() for group in plain if isinstance(group, HostGroup)]
        domains = [group for group in plain if isinstance(group, DomainGroup)]
        self.by_value = [(group.record, group.term.key) for group in domains if not group.every_value]
        self.by_values = [group for group in domains if group.every_value]


class ShapeInPass:
    """Pods of one shape in one pass: the groups that bind them, and the states of drafts that suit them."""

    __slots__ = (
        "_recording",
        "_recording_generation",
        "_topology",
        "by_key",
        "crowded",
        "domains",
        "facts",
        "full",
        "held",
        "hosts",
        "lone_spread",
        "node_mask",
        "nowhere_at",
        "open",
        "options",
        "picked_at",
        "picks",
        "plain",
        "ports",
        "seen_states",
        "settled",
        "spread_choices",
        "values",
    )

    def __init__(self, facts: ShapeFacts, topology: Topology) -> None:
        self.facts = facts
        self._topology = topology
        self.spread_choices = topology.spread_choices
        pod_shape = facts.pod_shape
        self.ports = pod_shape.host_ports
        self.plain = not self.ports and facts.devices is None  # a suitable node needs nothing but room
        # Each group with whether it counts such a pod.
        groups = [(group, group.term.counts(pod_shape)) for group in topology.owned(facts.terms)]
        groups += [(group, True) for group in topology.repelling(pod_shape)]
        self.hosts: list[OwnHostGroup] = [(g, own) for g, own in groups if isinstance(g, HostGroup)]
        self.domains: list[OwnDomainGroup] = [(g, own) for g, own in groups if isinstance(g, DomainGroup)]
        self.held = topology.held(pod_shape)
        # Nearly all questions about domains are about a spread that is the only group on any key but the hostname.
        self.lone_spread: LoneSpread | None = None
        if len(self.domains) == 1 and self.domains[0][0].term.kind == "spread":
            group, own = self.domains[0]
            self.lone_spread = (group, own, facts.strict.requirements.get(group.term.key))
        self.by_key: dict[str, list[OwnDomainGroup]] = {}
        for group, own in self.domains:
            self.by_key.setdefault(group.term.key, []).append((group, own))
        self.picks: dict[tuple[str, int], list[frozenset[str]]] = {}  # kept by domain_choices, valid for one version
        self.values: list[tuple[str, set[str]]] | None = None  # kept like them, for nodes whose domains are fixed
        self.picked_at = -1
        self.nowhere_at = -1  # when its groups alone ruled out every new node; valid as long as the picks are
        # Groups in which a draft rejects the pod by its own count: the masks per count, and the count from which it
        # does. The other groups on the hostname are asked each time.
        self.full = [(g.drafts, g.full_from(own)) for g, own in self.hosts if g.full_from(own)]
        self.crowded = [(g, own) for g, own in self.hosts if not g.full_from(own)]
        self.options: dict[State, tuple[State, ...]] = {}  # the states that a draft would reach; () is none
        self._recording = Recording([])
        self._recording_generation = -1
        self.node_mask: int | None = None
        self.seen_states = 0
        # States of drafts that suit, each narrowed per alternative. Where every key of the groups has one value left,
        # the state stays, and only whether those values are allowed changes: they are kept with it.
        self.settled: dict[State, tuple[tuple[str, ...], tuple[State, ...]]] = {}
        self.open: dict[State, tuple[State, ...]] = {}

    @property
    def recording(self) -> "Recording":
        """The groups that count a pod of this shape: ordinary ones, and those by which it keeps others away."""
        if self._recording_generation != self._topology.generation:
            self._recording = Recording([*self._topology.counting(self.facts.pod_shape), *self.held])
            self._recording_generation = self._topology.generation
        return self._recording

    def admit(self, state: State) -> None:
        """Remember a state that drafts have reached, if it suits."""
        narrowed = self.narrowings(state)
        if not narrowed:
            return
        values: list[str] = []
        for key in self.by_key:
            item = narrowed[0].requirements.get(key)
            if len(narrowed) > 1 or item is None or item.complement or len(item.values) != 1:
                self.open[state] = narrowed
                return
            values += item.values
        self.settled[state] = (tuple(values), narrowed)

    def narrowings(self, state: State) -> tuple[State, ...]:
        """The state with the pod's needs and each alternative of its volumes, if they agree (PLC-151, PLC-152)."""
        narrowed = state.narrow(self.facts.needs)
        if narrowed is None:
            return ()
        if len(self.facts.alternatives) == 1:
            only = narrowed.narrow(self.facts.alternatives[0])
            return () if only is None else (only,)
        each = (narrowed.narrow(alternative) for alternative in self.facts.alternatives)
        return tuple(state for state in each if state is not None)


class Demand:
    """What each of many like pods asks for: a shape, and amounts of resources."""

    __slots__ = (
        "_holding",
        "dead",
        "failed_at",
        "last",
        "next",
        "next_is_known",
        "node_dead",
        "shape",
        "spares_settling",
        "wanted",
    )

    def __init__(self, shape: ShapeInPass, wanted: tuple[int, ...], spares_settling: bool) -> None:
        self.shape = shape
        self.wanted = wanted
        self.spares_settling = spares_settling  # PLC-91: the pod must not go to a node that is still settling
        self.dead = 0  # drafts that can never take such a pod any more (PLF-14), as bits
        self.node_dead = 0  # the same for existing nodes
        self.failed_at = -1  # the number of placements when such a pod last failed
        self.next: Demand | None = None  # the demand after one step of relaxation
        self.next_is_known = False
        self.last: Demand | None = None  # the most relaxed demand that was tried when it failed
        self._holding: tuple[Fit, int, int] | None = None

    def holding(self, fit: Fit, rows: int) -> int:
        """The given rows that hold such a pod alone. The last answer is kept."""
        known = self._holding
        if known is None or known[0] is not fit or known[1] != rows:
            known = self._holding = (fit, rows, fit.holding(self.wanted, rows))
        return known[2]


_Key = tuple[int, tuple[int, ...], bool]


class Demands:
    """The demands of one pass, each once."""

    def __init__(self, topology: Topology, prefer_no_schedule: bool) -> None:
        self._topology = topology
        self._prefer_no_schedule = prefer_no_schedule
        self._shapes: dict[ShapeFacts, ShapeInPass] = {}
        self._demands: dict[_Key, Demand] = {}
        self._relaxed: list[_Key] = []  # those of them that are relaxed forms

    def shape(self, facts: ShapeFacts) -> ShapeInPass:
        """The shape in this pass; its groups are made when it is first asked for."""
        found = self._shapes.get(facts)
        if found is None:
            found = self._shapes[facts] = ShapeInPass(facts, self._topology)
        return found

    def demand(self, facts: ShapeFacts, wanted: tuple[int, ...], spares_settling: bool) -> Demand:
        key = (id(facts), wanted, spares_settling)  # a demand keeps its facts, so that no others get their identity
        found = self._demands.get(key)
        if found is None:
            found = self._demands[key] = Demand(self.shape(facts), wanted, spares_settling)
        return found

    def relaxed(self, demand: Demand) -> Demand | None:
        """The demand after one step of relaxation, or None if nothing is left to give up."""
        if not demand.next_is_known:
            if len(self._relaxed) >= MOST_KEPT:
                self._forget()
            facts = demand.shape.facts.relaxed(self._prefer_no_schedule)
            demand.next = None if facts is None else self._relaxed_form(facts, demand)
            demand.next_is_known = True
        return demand.next

    def _relaxed_form(self, facts: ShapeFacts, demand: Demand) -> Demand:
        before = len(self._demands)
        found = self.demand(facts, demand.wanted, demand.spares_settling)
        if len(self._demands) > before:
            self._relaxed.append((id(facts), demand.wanted, demand.spares_settling))
        return found

    def _forget(self) -> None:
        """Keep no relaxed form but those that pods were placed with or refused in; what they say is worked out anew
        where it is asked for again."""
        for demand in self._demands.values():
            demand.next, demand.next_is_known = None, False
        for key in self._relaxed:
            self._shapes.pop(self._demands.pop(key).shape.facts, None)
        self._relaxed.clear()


def alternatives_as_needs(alternatives: Alternatives, pool: NeedsPool) -> tuple[Needs, ...]:
    """The alternatives of a pod's volumes, interned."""
    return tuple(pool.intern(dict(alternative)) for alternative in alternatives)
