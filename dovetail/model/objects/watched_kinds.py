"""Kinds of object by the decisions that need them. A step declares what it reads as a set of these.

A step is refused its look only while the watch of a kind that it reads is broken: a lost right on CSINodes stops no
drain. A pass does not require kinds on which only some objects depend (volumes, buffers): those objects are set aside
while their kinds cannot be trusted, and the rest goes on (dovetail/placement/stale_kinds.py).
"""

from typing import Final

Kinds = frozenset[str]

STANDING: Final = ", standing"  # after a kind: what its objects say apart from what changes with pods
CLAIMS: Final[Kinds] = frozenset({"NodeClaim"})
STANDING_CLAIMS: Final[Kinds] = frozenset({"NodeClaim" + STANDING})
NODES: Final[Kinds] = frozenset({"Node"})
NODES_AND_CLAIMS: Final[Kinds] = NODES | CLAIMS
NODES_AND_STANDING_CLAIMS: Final[Kinds] = NODES | STANDING_CLAIMS
POOLS: Final[Kinds] = frozenset({"NodePool"})
OVERLAYS: Final[Kinds] = frozenset({"NodeOverlay"})  # watched only while its feature gate is open
POLICIES: Final[Kinds] = frozenset({"DisruptionPolicy", "Freeze", "NodeRollout"})  # nothing voluntary without them
PODS: Final[Kinds] = frozenset({"Pod"})
FLEET: Final[Kinds] = NODES_AND_CLAIMS | POOLS | PODS

# What every pass of placement reads.
PLACEMENT: Final[Kinds] = FLEET | OVERLAYS | {"DaemonSet", "PodDisruptionBudget", "Namespace"}

VOLUMES: Final[Kinds] = frozenset({"PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode"})
DEVICES: Final[Kinds] = frozenset({"ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"})
BUFFERS: Final[Kinds] = frozenset({"CapacityBuffer", "PodTemplate", "Deployment"})
SELECTORS: Final[Kinds] = frozenset({"Service", "ReplicationController", "ReplicaSet", "StatefulSet"})
