"""The state that the Scheduler carries from run to run, and what it is made of.

Additive changes only: new code must read the state of an old run. Only tuples cross, sorted, so that every worker
iterates in the same order.
"""

from dataclasses import dataclass, replace
from typing import Final

from dovetail.messages.plans import ClaimRefusal, DisruptionPlan
from dovetail.messages.sizes import HELD_BYTES, NOMINATED_BYTES, encoded_bytes
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.writes import Write

MOST_REFUSED_PODS: Final = 2000  # 80 kB in each request
FRESH_QUIET_SECONDS: Final = 20.0  # of a Scheduler that begins anew
MOST_GONE: Final = 100  # objects that are gone, of those that a snapshot must no longer contain


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A write that the next snapshots must contain, until a moment."""

    write: Write
    until: float


def remembered(known: tuple[Remembered, ...], writes: tuple[Write, ...], until: float) -> tuple[Remembered, ...]:
    """The memory with these writes added: the newest of each kind, since a worker that has seen that has seen all
    before it, and the last objects that are gone, which no version shows."""
    newest: dict[str, Remembered] = {}
    gone: dict[tuple[str, str], Remembered] = {}
    for each in (*known, *[Remembered(write=write, until=until) for write in writes]):
        write = each.write
        if write.version == 0:
            gone.pop((write.kind, write.name), None)
            gone[write.kind, write.name] = each
        elif write.kind not in newest or newest[write.kind].write.version <= write.version:
            newest[write.kind] = each
    latest = sorted(gone.values(), key=lambda each: each.until)[-MOST_GONE:]
    return (
        *[newest[kind] for kind in sorted(newest)],
        *sorted(latest, key=lambda each: (each.write.kind, each.write.name)),
    )


def expiry_of(known: tuple[Remembered, ...]) -> float:
    """When the last of these is no longer waited for; 0 where there is none."""
    return max((each.until for each in known), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A plan that is checked again at a moment, on a fresh snapshot, before it is carried out (DIS-134)."""

    plan: DisruptionPlan
    due: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedMark:
    """A disruption that was started and whose mark has not been seen yet."""

    workflow_id: str
    claims: tuple[ClaimRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """One thing that the Scheduler did, for people."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerState:
    """Everything that the Scheduler must not forget."""

    cluster: str
    generation: int = 0
    must_see: tuple[Remembered, ...] = ()
    nominations: tuple[tuple[str, float], ...] = ()  # node -> until
    expected: tuple[str, ...] = ()  # those of them that end with the last pod that waits, as plans for pending pods ask
    expected_seen: int = 0  # the Pods' resourceVersion that the last such plan was made by
    launching: tuple[ClaimRef, ...] = ()  # claims of the last round, which the next one waits for
    launching_since: float = 0.0
    awaiting: tuple[AwaitedMark, ...] = ()
    held: tuple[Held, ...] = ()
    recent: tuple[Recent, ...] = ()
    quiet_until: float = 0.0  # no disruption plan before: nominations may have been lost with a database
    max_history: int = 0  # tests make it small, so that many generations pass
    refused_pods: tuple[str, ...] = ()  # UIDs of pods whose claims the API server refused when they were last asked for
    cluster_uid: str = ""  # of its namespace kube-system: a name repeats
    claim_refusals: tuple[ClaimRefusal, ...] = ()  # why, as far as it has been found for whose sake

    def remember(self, writes: tuple[Write, ...], until: float) -> "SchedulerState":
        """The state with these writes added to must_see."""
        return replace(self, must_see=remembered(self.must_see, writes, until))

    def refuse(self, asked: frozenset[str], refused: tuple[str, ...]) -> "SchedulerState":
        """After a plan for the pods asked for: those for which the API server refused the claims, and earlier ones."""
        pods = (*refused, *(uid for uid in self.refused_pods if uid not in asked))
        return replace(self, refused_pods=tuple(sorted(pods[:MOST_REFUSED_PODS])))

    def expect(self, nodes: tuple[str, ...], until: float, seen: int) -> "SchedulerState":
        """The state with these nodes nominated for pods that wait, of which a plan knew that had seen this version.
        One that is nominated for pods of a node that leaves stays nominated for as long as that asked for."""
        lasting = {node for node, _ in self.nominations}.difference(self.expected)
        state = self.nominate(nodes, until)
        return replace(
            state,
            expected=tuple(sorted({*self.expected, *nodes} - lasting)),
            expected_seen=max(seen, self.expected_seen),
        )

    def nominate(self, nodes: tuple[str, ...], until: float) -> "SchedulerState":
        """The state with these nodes nominated until then, or longer where they already are. Where they are more than a
        request carries, nothing is disrupted until then instead."""
        latest = dict(self.nominations)
        latest.update({node: max(until, latest.get(node, 0.0)) for node in nodes})
        nominations = tuple(sorted(latest.items()))
        if encoded_bytes(nominations) > NOMINATED_BYTES:
            return replace(self, quiet_until=max(until, self.quiet_until))
        return replace(self, nominations=nominations, expected=tuple(n for n in self.expected if n not in nodes))

    @property
    def holds_enough(self) -> bool:
        """Whether so much is held that nothing more is chosen until some of it has been carried out or dropped."""
        return encoded_bytes(self.held) > HELD_BYTES

    def forget(self, now: float) -> "SchedulerState":
        """The state without what has run out."""
        nominations = tuple(n for n in self.nominations if n[1] > now)
        nominated = {node for node, _ in nominations}
        return replace(
            self,
            must_see=tuple(r for r in self.must_see if r.until > now),
            nominations=nominations,
            expected=tuple(node for node in self.expected if node in nominated),
        )


def fresh_state(cluster: str, now: float, nominated_for: float = 0.0) -> SchedulerState:
    """The state of a Scheduler that begins anew: no disruption for 20 s, because nominations may have been lost, and
    for longer where they last longer."""
    quiet = max(FRESH_QUIET_SECONDS, nominated_for)
    return SchedulerState(cluster=cluster, quiet_until=now + quiet)
