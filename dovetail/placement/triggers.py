"""What asks for a provisioning round (S-1)?

Pods that the scheduler gave up on, and CapacityBuffers; those that were just tried ask again where room may have come
or gone, and after a while in any case. The trap avoided: a buffer's pods never stop being pending, so that they alone
would keep the planner busy for ever.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.pod_rules import is_provisionable, is_terminal
from dovetail.model.snapshot import Snapshot
from dovetail.placement.buffers.virtual_pods import Resolved, on_their_way, ours, resolve

AGAIN_SECONDS: Final = 10.0  # S-1: pods that stay pending are tried again
BUFFERS_AGAIN_SECONDS: Final = 30.0  # S-1: and where only buffers ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Who has just been tried, and what the answer depended on."""

    pods: frozenset[str] = frozenset()
    buffers: frozenset[str] = frozenset()
    room: frozenset[tuple[str, ...]] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        """UIDs of pods and of buffers."""
        return self.pods | self.buffers

    def again_after(self) -> float:
        """How long until they are tried again although nothing has changed; 0 where nobody was."""
        if self.pods:
            return AGAIN_SECONDS
        return BUFFERS_AGAIN_SECONDS if self.buffers else 0.0


def asking(snapshot: Snapshot) -> Tried:
    """Who asks for a round now, and what its answer will depend on."""
    return Tried(pods=pending_uids(snapshot), buffers=frozenset(_buffers(snapshot)), room=frozenset(_room(snapshot)))


def pending_uids(snapshot: Snapshot) -> frozenset[str]:
    """The pods that need a node and are not spoken for by a claim that is on its way."""
    spoken_for: set[str] = set()
    for claim in snapshot.claims.values():
        if claim.deleting_since is None and not claim.is_true(names.LAUNCHED):
            spoken_for.update(filter(None, claim.annotations.get(names.PLANNED_PODS, "").split(",")))
    return frozenset(uid for uid, p in snapshot.pods.items() if is_provisionable(p) and uid not in spoken_for)


def _buffers(snapshot: Snapshot) -> Iterator[str]:
    """The buffers whose pods would take part."""
    coming = on_their_way(snapshot)
    for buffer in ours(snapshot):
        found = resolve(buffer, snapshot)
        if isinstance(found, Resolved) and found.replicas > coming[buffer.uid]:
            yield buffer.uid


def _room(snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    """What new room comes from: pools as they are written and whether they are ready, nodes and launched claims. For
    buffers also how much they ask for, and which pods stand where: a pod that is bound takes room that was theirs."""
    for pool in snapshot.pools.values():
        yield "pool", pool.name, str(pool.generation), str(pool.is_true(names.READY))
    for name in snapshot.nodes:
        yield "node", name
    for claim in snapshot.claims.values():
        if claim.is_true(names.LAUNCHED):
            yield "claim", claim.name
    if not snapshot.buffers:
        return
    for buffer in ours(snapshot):
        found = resolve(buffer, snapshot)
        if isinstance(found, Resolved):
            yield "buffer", buffer.uid, str(buffer.generation), str(found.generation), str(found.replicas)
    standing = [(uid, pod.node_name) for uid, pod in snapshot.pods.items() if pod.node_name and not is_terminal(pod)]
    yield "pods", str(hash(frozenset(standing)))  # 100,000 pairs are not kept for an equality
