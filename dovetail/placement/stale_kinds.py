"""What a decision leaves out while the watch of a kind is broken that only some objects depend on.

Nothing is decided on what was true before a connection broke. But a lost watch of CSINodes concerns the pods that have
volumes, and one of PodTemplates the buffers: those are set aside, and everybody else's pods are placed.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from dovetail.model.moves import GUARD_KINDS
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.model.watched_kinds import BUFFERS, VOLUMES

# A StatefulSet or ReplicaSet may be what a buffer follows.
_OF_BUFFERS: Final = BUFFERS | {"ReplicaSet", "StatefulSet"}

_OF_MOVES: Final = frozenset({"Deployment", "ReplicaSet", *GUARD_KINDS})

AGAIN_SECONDS: Final = 60.0  # a node is left alone this long beyond the look that found the watch broken


def without_stale(snapshot: Snapshot, stale: Collection[str]) -> Snapshot:
    """The snapshot without what depends on these kinds.

    Volumes: pending pods that have some are left out, and the nodes of running ones rest, so that no simulation has to
    place them. Buffers: none asks for room. Moves: nobody is moved, so PDBs hold their nodes."""
    if not VOLUMES.isdisjoint(stale):
        snapshot = _without_pods_with_volumes(snapshot)
    if snapshot.buffers and not _OF_BUFFERS.isdisjoint(stale):
        snapshot = replace(snapshot, buffers={})
    if snapshot.guards and not _OF_MOVES.isdisjoint(stale):
        snapshot = replace(snapshot, guards={})
    return snapshot


def _without_pods_with_volumes(snapshot: Snapshot) -> Snapshot:
    pods = {uid: pod for uid, pod in snapshot.pods.items() if pod.node_name or not pod.shape.volumes}
    held = dict.fromkeys((pod.node_name for pod in pods.values() if _holds(pod)), snapshot.now + AGAIN_SECONDS)
    return replace(snapshot, pods=pods, resting={**snapshot.resting, **held})


def _holds(pod: Pod) -> bool:
    return bool(pod.node_name and pod.shape.volumes) and pod.phase not in ("Succeeded", "Failed")
