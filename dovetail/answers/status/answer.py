"""What `dovetail status` and `dovetail nodes` answer, as facts: times are seconds since the epoch, prices dollars an
hour. The engines are not loaded: a command that asks a worker reads these records from the worker's documents.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dovetail.answers.look.troubles import OwnTrouble
from dovetail.answers.rollouts.answer import RolloutShown

NOT_OURS: Final = "not ours"  # the state of a node that Dovetail leaves alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How much of the nodes' room their pods ask for."""

    used: float
    room: float

    @property
    def share(self) -> float:
        """The share that is used; 0 if there is no room."""
        return self.used / self.room if self.room else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The whole cluster in one line."""

    nodes: int
    claims: int
    pods: int
    pending_pods: int
    price: float  # of all claims, at current prices
    unpriced: int  # claims of unknown price
    spot: float  # the share of spot among the claims that have a capacity type
    cpu: Use
    memory: Use
    not_ours: int = 0  # of the nodes: those without a NodeClaim, or with another provider's


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One node that is coming, or leaving, or about to leave."""

    kind: str  # held, disruption, termination, launch
    name: str  # the Node, or the NodeClaim as long as there is none
    claim: str
    pool: str
    why: str
    step: str
    since: float
    progress: str = ""
    due: float | None = None  # of a held plan: the time of its second look
    pods_left: int | None = None  # that must still leave the node
    blockers: tuple[str, ...] = ()
    savings: float | None = None  # of a held plan, divided among its nodes
    stop: str = ""  # the command that stops it; empty: it can no longer be stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Something that is stuck until a person acts."""

    about: str
    what: str
    since: float | None = None
    command: str = ""  # the command that shows more
    pool: str = ""  # the NodePool that it concerns; empty: no single one


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """How many nodes may leave now for one reason."""

    reason: str
    left: int
    allowed: int
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    name: str
    nodes: int
    price: float
    cpu: Use
    memory: Use
    drifted: int
    may_go: tuple[Allowed, ...]
    next_due: float | None = None  # when the next thing is due by time
    next: str = ""
    pods: int = 0
    pending_pods: int = 0  # those that select the pool by its label
    unpriced: int = 0
    spot: float = 0.0  # as in the totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer:
    source: str
    now: float
    scheduler: str  # planning, paused, or why it does not answer
    totals: Totals
    pauses: tuple[str, ...] = ()
    under_way: tuple[Move, ...] = ()
    needs_person: tuple[Need, ...] = ()
    pools: tuple[PoolStatus, ...] = ()
    recent: tuple[Done, ...] = ()
    unreadable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pool: str = ""  # the only NodePool that was asked for; empty: the whole cluster
    troubles: tuple[OwnTrouble, ...] = ()  # what does not work in Dovetail itself
    shortages: tuple[str, ...] = ()  # what the cloud has run out of, a line for each NodePool
    rollouts: tuple[RolloutShown, ...] = ()  # under way or stuck


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus(StatusAnswer):
    """The answer with the further fields of its document."""

    cluster: str
    workers: int | None = None  # None: the number is not known
    workflows: str = ""  # their address in Temporal's Web UI, before the id; empty: the worker knows of none


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One node, or a claim without a node yet. A node without a claim is not ours."""

    name: str
    claim: str
    pool: str
    type: str
    zone: str
    capacity_type: str
    since: float
    price: float | None
    cpu_share: float
    memory_share: float
    pods: int
    state: str
    what: str = ""  # what happens to it; empty: nothing is under way
    stays: str = ""  # what prevents its disruption; empty: no check does
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesAnswer:
    source: str
    now: float
    nodes: tuple[NodeRow, ...] = ()
    pools: tuple[str, ...] = ()  # the NodePools that are ours, with or without nodes
