"""Which requirements does a node draft have by now?

Drafts with equal requirements share one `State`, so that "this state narrowed by that pod" is computed once per pair
and then looked up. A state knows which rows of its template's type table suit it. The hostname is not part of a state:
it is a different one for every draft, and a placeholder until the node exists.
"""

from collections.abc import Callable, Mapping

from dovetail.model.names import CAPACITY_RESERVED, CAPACITY_TYPE, HOSTNAME
from dovetail.model.scheduling.requirements import (
    Requirement,
    RequirementSet,
    compatible,
    merge,
    requirement,
    with_min_values,
)
from dovetail.placement.facts.claim_rules import bytes_of, entries_of, outgrows, set_fault
from dovetail.placement.min_values import minima_of

_PLACEHOLDER = {HOSTNAME: requirement(HOSTNAME, "In", ("hostname-placeholder",))}


class Needs:
    """An interned requirement set of pods: equal sets are one object, so that it can be a key at no cost.

    `fault` is the part that no NodeClaim can require: existing nodes may suit such pods, new ones never do.
    """

    __slots__ = ("fault", "hostname", "others", "requirements")

    def __init__(self, requirements: dict[str, Requirement]) -> None:
        self.requirements = requirements
        self.others = {key: item for key, item in requirements.items() if key != HOSTNAME}
        self.hostname = {HOSTNAME: requirements[HOSTNAME]} if HOSTNAME in requirements else None
        self.fault = set_fault(requirements)


class NeedsPool:
    """All requirement sets of pods seen so far, each once."""

    def __init__(self) -> None:
        self._known: dict[frozenset[Requirement], Needs] = {}
        self.nothing = self.intern({})

    def intern(self, requirements: dict[str, Requirement]) -> Needs:
        key = frozenset(requirements.values())
        needs = self._known.get(key)
        if needs is None:
            needs = self._known[key] = Needs(requirements)
        return needs


class State:
    """One requirement set of drafts of one template."""

    __slots__ = (
        "_narrowed",
        "_pinned",
        "_pinned_each",
        "minima",
        "number",
        "requirements",
        "rows",
        "size",
        "states",
        "values",
    )

    def __init__(self, states: "States", requirements: dict[str, Requirement], rows: int) -> None:
        self.states = states
        self.requirements = requirements
        self.rows = rows
        self.minima = minima_of(requirements)
        self.size = entries_of(requirements), bytes_of(requirements)  # of its claim
        # The one value of each key that has only one left.
        self.values = {
            key: next(iter(item.values))
            for key, item in requirements.items()
            if len(item.values) == 1 and not item.complement
        }
        self.number = states.counter()
        self._narrowed: dict[Needs, State | None] = {}
        self._pinned: dict[tuple[str, frozenset[str]], State | None] = {}
        self._pinned_each: dict[tuple[str, tuple[str, ...]], tuple[State, ...]] = {}

    def narrow(self, needs: Needs) -> "State | None":
        """This set and the pod's, or None if they cannot both hold (PLC-151, PLC-152) or no claim could state them."""
        if needs in self._narrowed:
            return self._narrowed[needs]
        result: State | None = None
        if not needs.fault and (needs.hostname is None or compatible(_PLACEHOLDER, needs.hostname)):
            result = self._with(needs.others)
        self._narrowed[needs] = result
        return result

    def pin(self, key: str, domains: frozenset[str]) -> "State | None":
        """This set with the domains that topology left for one key (PLC-154)."""
        pinned = (key, domains)
        if pinned not in self._pinned:
            self._pinned[pinned] = self._with({key: Requirement(key=key, complement=False, values=domains)})
        return self._pinned[pinned]

    def pin_each(self, key: str, domains: tuple[str, ...]) -> "tuple[State, ...]":
        """This set with each of the domains in turn, as far as that is possible."""
        pinned = (key, domains)
        found = self._pinned_each.get(pinned)
        if found is None:
            each = (self.pin(key, frozenset((domain,))) for domain in domains)
            found = self._pinned_each[pinned] = tuple([state for state in each if state is not None])
        return found

    def without_reserved(self) -> "State | None":
        """This set for capacity that is not reserved; None if it asks for nothing else."""
        return self._with({CAPACITY_TYPE: requirement(CAPACITY_TYPE, "NotIn", (CAPACITY_RESERVED,))})

    def accepts(self, offering: RequirementSet) -> bool:
        """Whether an offering suits; well-known labels may be undefined (PLC-43, PLC-44)."""
        return compatible(self.requirements, offering, self.states.well_known)

    def with_minima(self, lowered: Mapping[str, int]) -> "State":
        """This set with lower minimum numbers of values (PLC-123); none at all is no minimum."""
        changed = {key: with_min_values(self.requirements[key], count or None) for key, count in lowered.items()}
        return self.states.intern({**self.requirements, **changed})

    def _with(self, wanted: RequirementSet) -> "State | None":
        if not compatible(self.requirements, wanted, self.states.well_known):
            return None
        if not wanted:
            return self
        merged = self.states.intern(merge(self.requirements, wanted))
        return None if outgrows(self.size, merged.size) else merged


class States:
    """All states of one template. `rows_of` gives the rows of the type table that suit a requirement set."""

    def __init__(
        self, well_known: frozenset[str], rows_of: Callable[[RequirementSet], int], counter: Callable[[], int]
    ) -> None:
        self.well_known = well_known
        self.counter = counter
        self._rows_of = rows_of
        self._known: dict[frozenset[Requirement], State] = {}

    def intern(self, requirements: dict[str, Requirement]) -> State:
        key = frozenset(requirements.values())
        state = self._known.get(key)
        if state is None:
            state = self._known[key] = State(self, requirements, self._rows_of(requirements))
        return state
