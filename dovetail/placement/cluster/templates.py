"""What does a NodePool offer to a new node?

Asked once per snapshot (S-13, S-14, S-59, S-60). A template is the compiled form of one NodePool: its requirements, its
instance types as a table, what DaemonSets will take. The trap avoided: the two labels that only the simulation knows
(registered, initialized), so that DaemonSets which select them count; they are never exported.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dovetail.model import names
from dovetail.model.pods import PodShape
from dovetail.model.pools import NodePool
from dovetail.model.requirements import RequirementSet, from_expressions, from_labels, merge, requirement
from dovetail.model.resources import NODES, Resources
from dovetail.model.snapshot import Snapshot
from dovetail.model.taints import untolerated
from dovetail.placement.cluster.overhead import Daemon, overhead_groups
from dovetail.placement.cluster.states import State, States
from dovetail.placement.cluster.type_table import CompiledType, TypeTable
from dovetail.placement.constraints.fit import Fit
from dovetail.placement.min_values import shortest_prefix
from dovetail.placement.settings import PlacementSettings

SIMULATION_KEYS = frozenset({names.REGISTERED, names.INITIALIZED})


def usable_pools(snapshot: Snapshot) -> list[NodePool]:
    """S-13: dynamic, ready, not deleting, of a known node class kind; heaviest first, ties by name descending."""
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


def template_labels(pool: NodePool) -> dict[str, str]:
    """S-59: the template's labels, the pool's name and the node class."""
    reference = pool.template.node_class
    return {
        **pool.template.labels,
        names.NODE_POOL: pool.name,
        f"{reference.group}/{reference.kind.lower()}": reference.name,
    }


def template_requirements(pool: NodePool) -> RequirementSet:
    """S-59: what every node of the pool has, with the two labels of the simulation."""
    simulated = {key: requirement(key, "In", ("true",)) for key in SIMULATION_KEYS}
    own = from_expressions(pool.template.requirements)
    return merge(merge(own, from_labels(template_labels(pool))), simulated)


class Capacities:
    """For one resource: which rows have at most so much capacity, and how much the largest of some rows has (S-159)."""

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
    """One NodePool, compiled."""

    number: int
    pool: NodePool
    table: TypeTable
    fit: Fit
    states: States
    start: State
    rows: int  # S-60: the rows of the types that survived the pool's own requirements
    capacities: Mapping[str, Capacities]
    has_reserved: bool

    def tolerated_by(self, shape: PodShape) -> bool:
        """S-150: startup taints do not count."""
        return untolerated(self.pool.template.taints, shape.tolerations) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyPool:
    """A pool that was left without instance types (S-60), and whether its minimum of values was the cause."""

    pool: NodePool
    because_of_min_values: bool


def _survivors(table: TypeTable, state: State, settings: PlacementSettings) -> tuple[int, bool]:
    """S-60: the rows that suit the pool alone, and whether minimum values emptied them."""
    rows = state.rows & table.usable
    if rows and state.minima and settings.min_values_policy == "Strict":
        _, short = shortest_prefix((table.types[n].requirements for n in table.types_in(rows)), state.minima)
        if short:
            return 0, True
    return rows, False


def compile_template(
    pool: NodePool,
    types: Sequence[CompiledType],
    daemons: Sequence[Daemon],
    dimensions: Sequence[str],
    settings: PlacementSettings,
    counter: Callable[[], int],
) -> Template | EmptyPool:
    """The template of a pool, or the news that nothing is left of it. `number` is set by the caller's order."""
    table = TypeTable(types, dimensions, settings.well_known)
    requirements = dict(template_requirements(pool))
    states = States(settings.well_known, table.rows_of, counter)
    start = states.intern(requirements)
    rows, because_of_min_values = _survivors(table, start, settings)
    if not rows:
        return EmptyPool(pool=pool, because_of_min_values=because_of_min_values)
    overheads, overhead_of = overhead_groups(
        daemons, requirements, pool.template.taints, table, settings.profile.daemon_rows
    )
    limited: Resources = pool.limits or {}
    return Template(
        number=0,
        pool=pool,
        table=table,
        fit=Fit(table, overheads, overhead_of),
        states=states,
        start=start,
        rows=rows,
        capacities={name: Capacities(table, name) for name in limited if name != NODES},
        has_reserved=any(o.reservation is not None for item in table.types for o in item.offerings),
    )
