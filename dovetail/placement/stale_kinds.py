"""What a decision leaves out while the watch of a kind on which only some objects depend is broken.

Nothing is decided on what was true before a connection broke. But a lost watch of CSINodes concerns the pods that have
volumes, and one of PodTemplates the buffers: those are set aside, and everybody else's pods are placed.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from dovetail.model.objects.pod_rules import is_terminal
from dovetail.model.objects.watched_kinds import BUFFERS, DEVICES, VOLUMES
from dovetail.model.places.moves import WORKLOAD_KINDS
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot

# A buffer may follow a StatefulSet or ReplicaSet.
_OF_BUFFERS: Final = BUFFERS | {"ReplicaSet", "StatefulSet"}

AGAIN_SECONDS: Final = 60.0  # a node is left alone this long after the look that found the watch broken


def without_stale(snapshot: Snapshot, stale: Collection[str]) -> Snapshot:
    """The snapshot without what depends on these kinds.

    Volumes and devices: pending pods that have some are left out, and the nodes of running ones rest, so that no
    simulation has to place them. Buffers: none asks for room. Moves: nobody is moved, so PDBs hold their nodes."""
    if not VOLUMES.isdisjoint(stale):
        snapshot = _without_pods(snapshot, lambda pod: bool(pod.shape.volumes))
    if not DEVICES.isdisjoint(stale):
        snapshot = _without_pods(snapshot, lambda pod: pod.shape.uses_resource_claims)
    if snapshot.buffers and not _OF_BUFFERS.isdisjoint(stale):
        snapshot = replace(snapshot, buffers={})
    if snapshot.guards and not WORKLOAD_KINDS.isdisjoint(stale):
        snapshot = replace(snapshot, guards={})
    return snapshot


def _without_pods(snapshot: Snapshot, concerned: Callable[[Pod], bool]) -> Snapshot:
    pods = {uid: pod for uid, pod in snapshot.pods.items() if pod.node_name or not concerned(pod)}
    held = {
        pod.node_name: snapshot.now + AGAIN_SECONDS
        for pod in pods.values()
        if pod.node_name and concerned(pod) and not is_terminal(pod)
    }
    return replace(snapshot, pods=pods, resting={**snapshot.resting, **held})
