"""Which pods are alike, and what is known about all of them at once?

Asked for every pod at every try. Pods of one *kin* share a shape: the same rules bind them. Pods of one *kind* also ask
for the same amounts, so that what was refused to one is refused to all. A relaxed kind hangs on the kind that it came
from. Kin and kind belong to one pass; what is true for the whole snapshot is kept in `ShapeFacts` and shared.
"""

from collections.abc import Sequence

from dovetail.model.pods import PodShape
from dovetail.model.requirements import Requirement
from dovetail.placement.cluster.states import Needs, NeedsPool, State
from dovetail.placement.cluster.templates import Template
from dovetail.placement.constraints.fit import Fit
from dovetail.placement.constraints.pod_needs import pod_requirements
from dovetail.placement.constraints.preferences import relaxed
from dovetail.placement.constraints.topology import Topology
from dovetail.placement.constraints.topology_groups import DomainGroup, HostGroup
from dovetail.placement.constraints.volumes import Alternatives


class ShapeFacts:
    """What holds for a shape in every pass over a snapshot."""

    __slots__ = ("_next", "alternatives", "needs", "pool", "preferences", "shape", "strict", "templates", "tolerated")

    def __init__(
        self,
        shape: PodShape,
        alternatives: tuple[Needs, ...],
        pool: NeedsPool,
        templates: Sequence[Template],
        preferences: bool,
    ) -> None:
        self.shape = shape
        self.alternatives = alternatives
        self.pool = pool
        self.templates = templates
        self.preferences = preferences
        strict = pod_requirements(shape, preferences=False)
        self.strict = pool.intern(strict)  # S-46
        soft = preferences and shape.preferred_terms
        self.needs = pool.intern(pod_requirements(shape, preferences=True)) if soft else self.strict
        self.tolerated = tuple(template.tolerated_by(shape) for template in templates)
        self._next: dict[bool, ShapeFacts | None] = {}

    def relaxed(self, prefer_no_schedule: bool) -> "ShapeFacts | None":
        """The facts about the shape after one step of relaxation (S-101)."""
        if prefer_no_schedule not in self._next:
            shape = relaxed(self.shape, prefer_no_schedule=prefer_no_schedule)
            self._next[prefer_no_schedule] = (
                None
                if shape is None
                else ShapeFacts(shape, self.alternatives, self.pool, self.templates, self.preferences)
            )
        return self._next[prefer_no_schedule]


class Recording:
    """Groups to tell of a placement, by what there is to do: most count pods wherever they are.

    The ways to tell of one on a claim are kept at hand: by the claim's number, by the one value that its state has for
    a key, or by all values that it has left (S-181).
    """

    __slots__ = ("by_claim", "by_value", "by_values", "everything", "filtered")

    def __init__(self, groups: Sequence[DomainGroup | HostGroup]) -> None:
        self.everything = groups
        self.filtered = [group for group in groups if group.term.filter is not None]
        plain = [group for group in groups if group.term.filter is None]
        self.by_claim = [group.record_claim() for group in plain if isinstance(group, HostGroup)]
        domains = [group for group in plain if isinstance(group, DomainGroup)]
        self.by_value = [(group.record, group.term.key) for group in domains if not group.every_value]
        self.by_values = [group for group in domains if group.every_value]


class Kin:
    """Pods of one shape in one pass: the groups that bind them, and the states of claims that suit them."""

    __slots__ = (
        "_recording",
        "_recording_born",
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
        shape = facts.shape
        self.ports = shape.host_ports
        groups = [(group, group.term.counts(shape)) for group in topology.owned(shape)]
        groups += [(group, True) for group in topology.repelling(shape)]
        self.hosts: list[tuple[HostGroup, bool]] = [(g, own) for g, own in groups if isinstance(g, HostGroup)]
        self.domains: list[tuple[DomainGroup, bool]] = [(g, own) for g, own in groups if isinstance(g, DomainGroup)]
        self.held = topology.held(shape)
        # A spread that nothing else on any key but the hostname goes with: the group, whether it counts the pod, and
        # the pod's own requirement. Nearly all that is asked of domains is asked of these.
        self.lone_spread: tuple[DomainGroup, bool, Requirement | None] | None = None
        if len(self.domains) == 1 and self.domains[0][0].term.kind == "spread":
            group, own = self.domains[0]
            self.lone_spread = (group, own, facts.strict.requirements.get(group.term.key))
        self.by_key: dict[str, list[tuple[DomainGroup, bool]]] = {}
        for group, own in self.domains:
            self.by_key.setdefault(group.term.key, []).append((group, own))
        self.picks: dict[tuple[str, int], list[frozenset[str]]] = {}  # kept by domain_picks, valid for one version
        self.values: list[tuple[str, set[str]]] | None = None  # kept like them, for nodes whose domains are fixed
        self.picked_at = -1
        self.nowhere_at = -1  # when no new claim was possible for the sake of its groups alone; good while picks are
        # Claims that reject by a count of their own: the masks per count, and the count from which they do. The groups
        # in which that is no matter of one count are asked each time.
        self.full = [(g.claims, g.full_from(own)) for g, own in self.hosts if g.full_from(own)]
        self.crowded = [(g, own) for g, own in self.hosts if not g.full_from(own)]
        self.options: dict[State, tuple[State, ...]] = {}  # where a claim of a state would go; () is nowhere
        self._recording = Recording([])
        self._recording_born = -1
        self.node_mask: int | None = None
        self.seen_states = 0
        # States of claims that suit, each narrowed per alternative. Where every key of the groups has one value, the
        # state goes nowhere else, and only whether those values are allowed changes: they are kept beside it.
        self.settled: dict[State, tuple[tuple[str, ...], tuple[State, ...]]] = {}
        self.open: dict[State, tuple[State, ...]] = {}

    @property
    def recording(self) -> "Recording":
        """The groups to tell of a pod of this kin, wherever it lands: those that count it, and those it holds."""
        if self._recording_born != self._topology.born:
            self._recording = Recording([*self._topology.counting(self.facts.shape), *self.held])
            self._recording_born = self._topology.born
        return self._recording

    def admit(self, state: State) -> None:
        """Remember a state that claims have come to, if it suits."""
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
        """S-151, S-152: the state with the pod's needs and each alternative of its volumes, where they agree."""
        narrowed = state.narrow(self.facts.needs)
        if narrowed is None:
            return ()
        if len(self.facts.alternatives) == 1:
            only = narrowed.narrow(self.facts.alternatives[0])
            return () if only is None else (only,)
        each = (narrowed.narrow(alternative) for alternative in self.facts.alternatives)
        return tuple(state for state in each if state is not None)


class Kind:
    """Pods of one kin that ask for the same amounts."""

    __slots__ = ("_holding", "dead", "failed_at", "kin", "last", "next", "node_dead", "relaxed", "settled", "wanted")

    def __init__(self, kin: Kin, wanted: tuple[int, ...], settled: bool) -> None:
        self.kin = kin
        self.wanted = wanted
        self.settled = settled  # S-91: the pod must not go to a node that is still settling
        self.dead = 0  # claims that can never take such a pod any more (F-14)
        self.node_dead = 0
        self.failed_at = -1  # the number of placements when such a pod last failed
        self.relaxed = False  # whether `next` is known
        self.next: Kind | None = None
        self.last: Kind = self  # the most relaxed kind that was tried when it failed
        self._holding: tuple[Fit, int, int] | None = None

    def holding(self, fit: Fit, rows: int) -> int:
        """Of the given rows those that hold such a pod alone; asked again for the same, the same is given."""
        known = self._holding
        if known is None or known[0] is not fit or known[1] != rows:
            known = self._holding = (fit, rows, fit.holding(self.wanted, rows))
        return known[2]


class KindBook:
    """The kinds of one pass."""

    def __init__(self, topology: Topology, prefer_no_schedule: bool) -> None:
        self._topology = topology
        self._prefer_no_schedule = prefer_no_schedule
        self._kins: dict[ShapeFacts, Kin] = {}
        self._kinds: dict[tuple[int, tuple[int, ...], bool], Kind] = {}

    def kin(self, facts: ShapeFacts) -> Kin:
        """The kin of a shape; its groups are made when it is first asked for."""
        found = self._kins.get(facts)
        if found is None:
            found = self._kins[facts] = Kin(facts, self._topology)
        return found

    def kind(self, facts: ShapeFacts, wanted: tuple[int, ...], settled: bool) -> Kind:
        """The kind of a shape and a vector of requests."""
        key = (id(facts), wanted, settled)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = Kind(self.kin(facts), wanted, settled)
        return found

    def relaxed(self, kind: Kind) -> Kind | None:
        """The kind after one step of relaxation, or None if nothing is left to give up."""
        if not kind.relaxed:
            facts = kind.kin.facts.relaxed(self._prefer_no_schedule)
            kind.next = None if facts is None else self.kind(facts, kind.wanted, kind.settled)
            kind.relaxed = True
        return kind.next


def alternatives_as_needs(alternatives: Alternatives, pool: NeedsPool) -> tuple[Needs, ...]:
    """The alternatives of a pod's volumes, interned."""
    return tuple(pool.intern(dict(alternative)) for alternative in alternatives)
