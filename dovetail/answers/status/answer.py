"""What `dovetail status` answers, as facts: times are seconds since the epoch, prices dollars an hour."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How much of the nodes' room the pods on them ask for."""

    used: float
    room: float

    @property
    def share(self) -> float:
        """Of one; 0 where there is no room."""
        return self.used / self.room if self.room else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The whole cluster in one line."""

    nodes: int
    claims: int
    pods: int
    pending_pods: int
    price: float  # of all claims, at the prices of now
    unpriced: int  # claims whose price nobody knows
    spot: float  # the share of spot among the claims that have a capacity type
    cpu: Use
    memory: Use
    not_ours: int = 0  # of the nodes: those of no NodeClaim, or of another provider's


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
    due: float | None = None  # of a held plan: its second look
    pods_left: int | None = None  # that must leave the node still
    blockers: tuple[str, ...] = ()
    savings: float | None = None  # of a held plan, all its nodes together
    stop: str = ""  # the command that stops it; empty: nothing does any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Something that does not go on without a person."""

    about: str
    what: str
    since: float | None = None
    command: str = ""  # the command that says more
    pool: str = ""  # the NodePool that it concerns; empty: none alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """How many nodes may go now for one reason."""

    reason: str
    left: int
    allowed: int
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """One NodePool, with its nodes."""

    name: str
    nodes: int
    price: float
    cpu: Use
    memory: Use
    drifted: int
    may_go: tuple[Allowed, ...]
    next_due: float | None = None  # the first thing that is due by time
    next: str = ""
    pods: int = 0
    pending_pods: int = 0  # those that select the pool by its label
    unpriced: int = 0
    spot: float = 0.0  # as in the totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One thing that the Scheduler did."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer:
    """The whole answer."""

    source: str
    now: float
    scheduler: str  # planning, paused, or why it gives no answer
    totals: Totals
    pauses: tuple[str, ...] = ()
    under_way: tuple[Move, ...] = ()
    needs_person: tuple[Need, ...] = ()
    pools: tuple[PoolStatus, ...] = ()
    recent: tuple[Done, ...] = ()
    unreadable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pool: str = ""  # the NodePool that was asked for alone; empty: the whole cluster
