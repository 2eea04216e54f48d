"""Where would the pods of these nodes go (DIS-82 to DIS-95)?

The placement engine answers; simulator.py adds what is specific to disruption. Methods know only the protocols of this
module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dovetail.disruption.nodes.candidates import Candidate
from dovetail.messages.plans import ProposedNode
from dovetail.model.places.placements import NewNode
from dovetail.model.pools import InstanceType
from dovetail.model.scheduling.requirements import RequirementSet
from dovetail.notices.notice import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A new node that a simulation needs, with its types in price order; or one from the template of a static pool."""

    pool: str
    requirements: RequirementSet
    types: tuple[InstanceType, ...]
    pods: tuple[str, ...] = ()  # namespace/name, sorted
    cheapest: float = 0.0  # of the first type, among the offerings that the requirements admit
    node: NewNode | None = None
    static: ProposedNode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Where pods are placed, and which found no place. `failed`: why there is no answer, in words."""

    replacements: tuple[Replacement, ...] = ()
    moved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unplaced: Mapping[str, str] = field(default_factory=dict)  # pod that runs today -> why it finds no place
    candidate_leaves: bool = False  # DIS-83
    failed: str = ""


class Wave(Protocol):
    """Nodes leave one after another, each in the cluster without those before it."""

    def take(self, candidate: Candidate, closed: frozenset[str] = frozenset()) -> Simulation:
        """`closed`: NodePools of which no new node is made for it."""
        ...


class Simulator(Protocol):
    @property
    def notices(self) -> tuple[Notice, ...]:
        """What people should know about the simulations, as notices."""
        ...

    @property
    def destinations(self) -> frozenset[str]:
        """The nodes on which pods that have no place now are about to land."""
        ...

    @property
    def buffered(self) -> Mapping[str, int]:
        """The number of virtual pods of CapacityBuffers that now have room on each node."""
        ...

    @property
    def cost_pools(self) -> Mapping[str, float]:
        """The pools under the policy cost, with what each of their nodes costs in addition to its instance."""
        ...

    def worth(self, candidates: Sequence[Candidate]) -> Mapping[str, float]:
        """For each pod that would move, its share of the least that new nodes for all of them would cost; any subset
        of them costs at least the sum of its shares."""
        ...

    def simulate(
        self, candidates: Sequence[Candidate], *, consolidating: bool, cheaper: bool = False, up_only: bool = False
    ) -> Simulation:
        """The cluster without these nodes; `cheaper`: new nodes are chosen by the policy of their pool; `up_only`:
        no pod is placed on a node that is not up yet, where its place would not be certain."""
        ...

    def without(self, candidate: Candidate, closed: frozenset[str]) -> Simulation:
        """The cluster without this node, and without new nodes of these NodePools."""
        ...

    def freed(
        self, candidates: Sequence[Candidate], reservation: str, closed: frozenset[str], *, awaited: bool
    ) -> Simulation:
        """Where the pods of the last of these nodes go, after those of the others, with its instance back in its
        reservation; `closed`: NodePools of which no new node is made for it; `awaited`: pods that wait for that
        instance have it first."""
        ...

    def is_hopeless(self, candidates: Sequence[Candidate]) -> bool:
        """Whether resources and list prices alone rule out that they leave, or become one cheaper node."""
        ...

    def wave(self, candidates: Sequence[Candidate]) -> Wave:
        """The cluster as all of these leave, one after the other."""
        ...
