"""What does a NodePool offer to a new node?

A template is the compiled form of one NodePool, made once per snapshot (PLC-13, PLC-14, PLC-59, PLC-60): its
requirements, its instance types as a table, and what DaemonSets will take. Its requirements include two labels that a
real node gets later (registered and initialized), because DaemonSets that select them run on it too; no claim is given
these labels.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce
from itertools import count
from operator import and_

from dovetail.model import names
from dovetail.model.places.placements import EmptyPool
from dovetail.model.pods import PodShape, PodTerm
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.key_aliases import canonical_key
from dovetail.model.scheduling.requirements import (
    RequirementSet,
    from_expressions,
    from_labels,
    merge,
    requirement,
)
from dovetail.model.scheduling.selectors import matches
from dovetail.model.scheduling.taints import untolerated
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import NODES, Resources
from dovetail.placement.closed_offerings import overlap, withheld, withheld_words
from dovetail.placement.facts.claim_rules import SIMULATION_KEYS
from dovetail.placement.facts.dimensions import Dimensions
from dovetail.placement.facts.fit import Fit
from dovetail.placement.facts.overhead import Daemon, overheads_of
from dovetail.placement.facts.states import State, States
from dovetail.placement.facts.type_table import CompiledType, Compilers, TypeTable
from dovetail.placement.min_values import shortest_prefix
from dovetail.placement.settings import PlacementSettings


def usable_pools(snapshot: Snapshot) -> list[NodePool]:
    """Dynamic, ready, not deleting, of a known node class kind; heaviest first, ties by name descending (PLC-13)."""
    kinds = snapshot.supported_node_classes
    chosen = [
        pool
        for pool in snapshot.pools.values()
        if pool.replicas is None
        and pool.deleting_since is None
        and pool.is_true(names.READY)
        and (not kinds or (pool.template.node_class.group, pool.template.node_class.kind) in kinds)
    ]
    chosen.sort(key=lambda pool: pool.name, reverse=True)
    chosen.sort(key=lambda pool: -pool.weight)
    return chosen


def template_requirements(pool: NodePool) -> RequirementSet:
    """What every node of the pool has, with the two labels that it gets later (PLC-59)."""
    simulated = {key: requirement(key, "In", ("true",)) for key in SIMULATION_KEYS}
    own = from_expressions(pool.template.requirements)
    return merge(merge(own, from_labels(pool.node_labels)), simulated)


class Capacities:
    """The capacities of the types for one resource: the rows up to an amount, and the largest of some rows
    (PLC-159)."""

    def __init__(self, table: TypeTable, resource: str) -> None:
        amounts = [item.source.capacity.get(resource, 0) for item in table.types]
        self._largest_first = sorted(
            ((amount, table.type_rows[number]) for number, amount in enumerate(amounts)), reverse=True
        )
        self.most = self._largest_first[0][0] if self._largest_first else 0
        self._largest: dict[int, int] = {}
        self._values: list[int] = []
        self._masks: list[int] = [0]
        for amount, rows in reversed(self._largest_first):
            if self._values and self._values[-1] == amount:
                self._masks[-1] |= rows
            else:
                self._values.append(amount)
                self._masks.append(self._masks[-1] | rows)

    def at_most(self, amount: int) -> int:
        """The rows of types with no more capacity than that."""
        return self._masks[bisect_right(self._values, amount)]

    def largest(self, rows: int) -> int:
        """The capacity of the largest type that has a row in the mask."""
        known = self._largest.get(rows)
        if known is None:
            known = next((amount for amount, mask in self._largest_first if mask & rows), 0)
            self._largest[rows] = known
        return known


@dataclass(slots=True, kw_only=True, eq=False)
class Template:
    number: int
    pool: NodePool
    table: TypeTable
    fit: Fit
    states: States
    start: State
    rows: int  # PLC-60: the rows of the types that survived the pool's own requirements
    capacities: Mapping[str, Capacities]
    reserved_rows: int  # rows of types with reserved capacity
    running: tuple[PodShape, ...] = ()  # pods of DaemonSets that will run on its nodes
    absent: tuple[PodShape, ...] = ()  # and of those that will not
    oversized: tuple[str, ...] = ()  # DaemonSets whose pod none of its types holds, whether it is for sale now or not
    awaited: int = 0  # rows of what is not for sale for the moment, of a template that has it as if it were
    make_later: Callable[[], "Template | None"] = lambda: None

    @property
    def later(self) -> "Template | None":
        """The pool with what is not for sale for the moment, behind what is; None where that is nothing."""
        return self.make_later()

    def tolerated_by(self, shape: PodShape) -> bool:
        """Whether such a pod tolerates the taints of the pool's nodes, except startup taints (PLC-150), and finds there
        the DaemonSets that it must share a node with."""
        return untolerated(self.pool.template.taints, shape.tolerations) is None and not self.lacks_company_of(shape)

    def lacks_company_of(self, shape: PodShape) -> bool:
        """Whether the pool's nodes lack a DaemonSet that such a pod must share a node with (PLQ-66)."""
        return any(
            any(_is_beside(term, shape, daemon) for daemon in self.absent)
            and not any(_is_beside(term, shape, daemon) for daemon in self.running)
            for term in (shape.affinity if self.absent else ())
        )

    def is_for_company(self, shape: PodShape) -> bool:
        """Whether such a pod must share a node with a DaemonSet that will run on some of the pool's nodes."""
        return any(_is_beside(term, shape, daemon) for term in shape.affinity for daemon in self.running)


def _is_beside(term: PodTerm, shape: PodShape, daemon: PodShape) -> bool:
    """Whether the term asks for the daemon's node. A namespace selector counts as selecting every namespace."""
    spaces = term.namespaces or (shape.namespace,)
    return (
        canonical_key(term.topology_key) == names.HOSTNAME
        and (daemon.namespace in spaces or term.namespace_selector is not None)
        and term.selector is not None
        and matches(term.selector, daemon.labels)
    )


def _survivors(table: TypeTable, state: State, settings: PlacementSettings) -> tuple[int, dict[str, int]]:
    """The rows that suit the pool alone, and the keys whose minimum values emptied them, with how many these are
    (PLC-60)."""
    rows = state.rows & table.usable
    if rows and state.minima and settings.min_values_policy == "Strict":
        types = (table.types[n].requirements for n in table.types_in(rows))
        _, short = shortest_prefix(types, state.requirements, settings.profile.minimum_counts_listed)
        if short:
            return 0, short
    return rows, {}


class TemplateCompiler:
    """Compiles the pools of one snapshot."""

    def __init__(
        self, daemons: Sequence[Daemon], dimensions: Dimensions, settings: PlacementSettings, now: float
    ) -> None:
        self._daemons, self._now = daemons, now
        self._dimensions = dimensions
        self._settings = settings
        self._state_counter = count().__next__  # states of all templates are numbered together

    def compile(self, pool: NodePool, types: Sequence[CompiledType], number: int) -> Template | EmptyPool:
        """The template of a pool, with that number, or the fact that nothing is left of it.

        Which DaemonSets count is judged by all types, or a shortage of minutes would have nodes that can never hold
        their pods (PLQ-69). What is not for sale is compiled only where it is asked for.
        """
        made = self._compiled(pool, types, number)
        if isinstance(made, EmptyPool) or self._settings.profile.oversized_daemons_count:
            return made
        made.make_later = cache(partial(self._later, pool, types, number))
        if made.oversized and (later := made.later) is not None:
            overhead_of = later.fit.overhead_of[: len(made.table.rows)]
            made.fit, made.oversized = Fit(made.table, later.fit.overheads, overhead_of), later.oversized
            made.running, made.absent = self._company(made.fit)
        return made

    def _later(self, pool: NodePool, types: Sequence[CompiledType], number: int) -> Template | None:
        compiler = Compilers.current()
        to_come = [each for item in types for each in compiler.to_come(item.source)]
        made = self._compiled(pool, [*types, *to_come], number) if to_come else None
        if not isinstance(made, Template):
            return None
        behind = zip(made.table.types[len(types) :], made.table.type_rows[len(types) :], strict=True)
        made.awaited = sum(rows for item, rows in behind if item.offerings[0].reservation is None)
        return made

    def _company(self, fit: Fit) -> tuple[tuple[PodShape, ...], tuple[PodShape, ...]]:
        """The pods of DaemonSets that will run on some of these nodes, and the other ones."""
        known = {name for number in set(fit.overhead_of) for name in fit.overheads[number].daemon_sets}
        company = self._daemons if self._settings.profile.daemons_are_company else ()
        return (
            tuple(daemon.pod.shape for daemon in company if daemon.name in known),
            tuple(daemon.pod.shape for daemon in company if daemon.name not in known),
        )

    def _compiled(self, pool: NodePool, types: Sequence[CompiledType], number: int) -> Template | EmptyPool:
        settings = self._settings
        table = TypeTable(types, self._dimensions, settings.well_known)
        requirements = dict(template_requirements(pool))
        states = States(settings.well_known, table.rows_of, self._state_counter)
        start = states.intern(requirements)
        rows, short = _survivors(table, start, settings)
        if not rows:
            suiting = [item for item in types if overlap(item.requirements, requirements)]
            return self._empty(pool, start, suiting, short)
        limited: Resources = {name: most for name, most in (pool.limits or {}).items() if name != NODES}
        capacities = {name: Capacities(table, name) for name in limited}
        small_enough = reduce(and_, (capacities[name].at_most(most) for name, most in limited.items()), table.every)
        tolerant = (d for d in self._daemons if untolerated(pool.template.taints, d.pod.shape.tolerations) is None)
        overheads = overheads_of(tolerant, requirements, table, small_enough, settings.profile.daemon_rows)
        fit = Fit(table, overheads.groups, overheads.group_of)
        running, absent = self._company(fit)
        return Template(
            number=number,
            pool=pool,
            table=table,
            fit=fit,
            states=states,
            start=start,
            rows=rows,
            capacities=capacities,
            reserved_rows=_reserved_rows(table),
            running=running,
            absent=absent,
            oversized=overheads.oversized,
        )

    def _empty(
        self, pool: NodePool, start: State, suiting: Sequence[CompiledType], short: Mapping[str, int]
    ) -> EmptyPool:
        """`suiting`: what its requirements let through, whether it can be had or not."""
        wanted = start.requirements
        listed = self._settings.profile.minimum_counts_listed
        _, always = shortest_prefix((item.requirements for item in suiting), wanted, listed)
        few = [f"{key} has {count} of {start.minima[key]} values" for key, count in sorted(short.items())]
        too_few = f"of what can be had now {', '.join(few)} that minValues asks for" if few and not always else ""
        found = withheld(((item.source, item.requirements) for item in suiting), wanted, self._now)
        return EmptyPool(
            pool=pool.name,
            because_of_min_values=bool(short),
            suiting=bool(suiting),
            too_few=too_few,
            closed=withheld_words(found, self._now),
        )


def _reserved_rows(table: TypeTable) -> int:
    rows = 0
    for number, item in enumerate(table.types):
        if any(offering.reservation is not None for offering in item.offerings):
            rows |= table.type_rows[number]
    return rows
