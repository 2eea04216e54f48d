"""What asks for a provisioning round (PLC-1)?

Pods that the kube-scheduler gave up on, pods whose node is leaving, and CapacityBuffers. What has just been tried asks
again if room may have changed, and after a while in any case. A buffer's pods never stop being pending, so without this
rule they alone would keep the planner busy forever.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.judging import Judging
from dovetail.model.objects.pod_rules import is_terminal
from dovetail.model.objects.watched_kinds import NODES_AND_STANDING_CLAIMS, POOLS
from dovetail.model.places.kept_places import needs_a_node, planned_pods
from dovetail.model.reasons.endings import is_interrupted
from dovetail.model.snapshot import Snapshot
from dovetail.placement.buffers.virtual_pods import Resolved, on_their_way, resolutions
from dovetail.placement.earlier_claims import earlier_claims
from dovetail.placement.pdbs import pdbs_of

AGAIN_SECONDS: Final = 10.0  # PLC-1: after this long pods that stay pending are tried again
BUFFERS_AGAIN_SECONDS: Final = 30.0  # PLC-1: the same where only buffers ask


Room = str | tuple[str, ...]  # a node's name, a launched claim's UID; pools and buffers with what they say


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The pods and buffers that have just been tried, and the room that the answer depended on."""

    pods: frozenset[str] = frozenset()
    buffers: frozenset[str] = frozenset()
    leaving: frozenset[str] = frozenset()  # pods that run on leaving nodes
    room: frozenset[Room] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        """UIDs of pods and of buffers."""
        return self.pods | self.buffers | self.leaving

    def again_after(self) -> float:
        """How long until they are tried again although nothing has changed; 0 if nothing was tried."""
        if self.pods or self.leaving:
            return AGAIN_SECONDS
        return BUFFERS_AGAIN_SECONDS if self.buffers else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The part that depends only on NodePools, Nodes and NodeClaims: slow to compute, and rarely changed between
    looks."""

    planned: frozenset[str]  # pods for which a claim that is not launched yet is on its way
    leaving: frozenset[str]  # nodes
    ending: frozenset[str]  # those of them whose instance is about to be lost
    room: frozenset[Room]


STANDING_ON: Final = NODES_AND_STANDING_CLAIMS | POOLS


def standing(snapshot: Snapshot) -> Standing:
    leaving, ending = _leaving_nodes(snapshot)
    launched, unlaunched = _by_launch(snapshot)
    return Standing(
        planned=_planned(unlaunched),
        leaving=leaving,
        ending=ending,
        room=frozenset(_pools(snapshot)).union(snapshot.nodes, (claim.uid for claim in launched)),
    )


def asking(snapshot: Snapshot, known: Standing | None = None) -> Tried:
    """The pods and buffers that ask for a round now, and what its answer will depend on. `known`: the `Standing`, if
    it has been worked out already."""
    known = known or standing(snapshot)
    return Tried(
        pods=_pending(snapshot, known.planned),
        buffers=frozenset(_buffers(snapshot)),
        leaving=_leaving(snapshot, known.leaving, known.ending),
        room=room_of(snapshot, known),
    )


def room_of(snapshot: Snapshot, known: Standing) -> frozenset[Room]:
    """All sources of new room, which the answer of a round depends on."""
    of_buffers = frozenset(_room_of_buffers(snapshot))
    return known.room | of_buffers if of_buffers else known.room  # of thousands of nodes, at each look


def pending_uids(snapshot: Snapshot) -> frozenset[str]:
    """The pods that need a node, without those for which a claim is on its way."""
    return _pending(snapshot, _planned(_by_launch(snapshot)[1]))


def _by_launch(snapshot: Snapshot) -> tuple[list[NodeClaim], list[NodeClaim]]:
    """The claims that are launched, and the others."""
    launched, unlaunched = list[NodeClaim](), list[NodeClaim]()
    for claim in snapshot.claims.values():
        (launched if claim.is_true(names.LAUNCHED) else unlaunched).append(claim)
    return launched, unlaunched


def _planned(unlaunched: Iterable[NodeClaim]) -> frozenset[str]:
    return frozenset(uid for claim in unlaunched if claim.deleting_since is None for uid in planned_pods(claim))


def _pending(snapshot: Snapshot, planned: frozenset[str]) -> frozenset[str]:
    waiting = [pod for pod in snapshot.unbound_pods if pod.uid not in planned and needs_a_node(pod, snapshot)]
    return frozenset(pod.uid for pod in waiting)


def unpromised(snapshot: Snapshot, uids: frozenset[str]) -> frozenset[str]:
    """The pods without a claim on its way, launched or not: nothing has been decided for them yet."""
    if not uids:
        return uids
    promised: set[str] = set()
    for claim in snapshot.claims.values():
        if claim.deleting_since is None and not claim.is_true(names.INITIALIZED_CONDITION):
            promised.update(planned_pods(claim))
    return uids - promised


def leaving_uids(snapshot: Snapshot) -> frozenset[str]:
    """The pods that must move because their node is leaving, without those for which a claim is on its way: a new node
    is launched at a spot warning, not once the last pod has been evicted."""
    return _leaving(snapshot, *_leaving_nodes(snapshot))


def _leaving_nodes(snapshot: Snapshot) -> tuple[frozenset[str], frozenset[str]]:
    """Their names, and those whose instance is about to be lost."""
    gone = [c for c in snapshot.claims.values() if c.deleting_since is not None and c.node_name]
    deleted = {node.name for node in snapshot.nodes.values() if node.deleting_since is not None}
    ending = frozenset(claim.node_name for claim in gone if is_interrupted(claim))
    return frozenset(deleted | {claim.node_name for claim in gone}), ending


def _leaving(snapshot: Snapshot, leaving: frozenset[str], ending: frozenset[str]) -> frozenset[str]:
    if not leaving:
        return frozenset()
    pdbs = pdbs_of(snapshot)
    on_node = snapshot.pods_by_node
    pods = [p for name in leaving for p in on_node.get(name, ()) if pdbs.needs_room(p, ends=name in ending)]
    awaited = earlier_claims(snapshot, pods, on_node, most=0).awaited
    return frozenset(pod.uid for pod in pods if pod.uid not in awaited)


def _buffers(snapshot: Snapshot) -> Iterator[str]:
    """The buffers whose pods would take part."""
    coming = on_their_way(snapshot)
    for buffer, found in resolutions(snapshot, "trigger", Judging()):
        if isinstance(found, Resolved) and found.replicas > coming[buffer.uid]:
            yield buffer.uid


def _pools(snapshot: Snapshot) -> Iterator[Room]:
    """With their generation, and whether they are ready."""
    for pool in snapshot.pools.values():
        yield "pool", pool.name, str(pool.generation), str(pool.is_true(names.READY))


def _room_of_buffers(snapshot: Snapshot) -> Iterator[Room]:
    """If there are buffers, how much they ask for and where pods run: a bound pod takes some of their room."""
    if not snapshot.buffers:
        return
    for buffer, found in resolutions(snapshot, "trigger", Judging()):
        if isinstance(found, Resolved):
            yield "buffer", buffer.uid, str(buffer.generation), str(found.generation), str(found.replicas)
    running = [(uid, pod.node_name) for uid, pod in snapshot.pods.items() if pod.node_name and not is_terminal(pod)]
    yield "pods", str(hash(frozenset(running)))  # the hash replaces perhaps 100,000 pairs
