"""The cluster at one moment: everything that a decision may read.

Adapters take it from the cache that their watches feed, and nothing changes it afterwards. `seen`, the newest
resourceVersion of each kind, shows how new it is; its time does not.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.objects.buffers import CapacityBuffer
from dovetail.model.objects.overlays import NodeOverlay
from dovetail.model.objects.pairing import Pairing
from dovetail.model.objects.pod_index import NodePods, PodIndex
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.objects.watched_kinds import STANDING
from dovetail.model.objects.workloads import (
    AdmissionGuard,
    CsiNode,
    DaemonSet,
    Deployment,
    Namespace,
    PodDisruptionBudget,
    PodSource,
    SelectorSource,
    StorageClass,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)
from dovetail.model.own.health import Readiness, readiness_by_pool
from dovetail.model.own.policies import Freeze, Policy
from dovetail.model.own.rollouts import REFUSED, PoolNodes, Rollout
from dovetail.model.pods import Pod
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.scheduling.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice

Claims = tuple[NodeClaim, ...]
SEEN_BY_ALL: Final = 60.0  # after a registration: the watch of NodeClaims may be ahead of that of Nodes


@dataclass(frozen=True, kw_only=True)  # without slots, because of the cached properties
class Snapshot:
    """Objects by name, namespaced ones by namespace/name, pods by UID. The mappings are copies that nothing changes."""

    now: float
    seen: Mapping[str, int] = field(default_factory=dict)
    # Kind -> the view's last change of that kind, for NodeClaims also the last change of what is written on them; empty
    # if nobody counts. Of one view, and before anything was replaced in the snapshot.
    changed: Mapping[str, int] = field(default_factory=dict)
    pods: Mapping[str, Pod] = field(default_factory=dict)
    pod_index: PodIndex | None = field(default=None, compare=False, repr=False)  # of a view; asked only if of `pods`
    nodes: Mapping[str, Node] = field(default_factory=dict)
    claims: Mapping[str, NodeClaim] = field(default_factory=dict)
    pools: Mapping[str, NodePool] = field(default_factory=dict)
    overlays: Mapping[str, NodeOverlay] = field(default_factory=dict)  # none if the gate NodeOverlay is closed
    buffers: Mapping[str, CapacityBuffer] = field(default_factory=dict)  # none if the gate CapacityBuffer is closed
    pod_templates: Mapping[str, PodSource] = field(default_factory=dict)  # likewise
    deployments: Mapping[str, Deployment] = field(default_factory=dict)  # none if neither buffers nor moves are on
    guards: Mapping[str, AdmissionGuard] = field(default_factory=dict)  # by kind/name; none if moves are off
    catalogues: Mapping[str, Catalogue] = field(default_factory=dict)  # by pool
    daemon_sets: Mapping[str, DaemonSet] = field(default_factory=dict)
    pdbs: Mapping[str, PodDisruptionBudget] = field(default_factory=dict)
    volume_claims: Mapping[str, VolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    storage_classes: Mapping[str, StorageClass] = field(default_factory=dict)
    csi_nodes: Mapping[str, CsiNode] = field(default_factory=dict)
    attachments: Mapping[str, VolumeAttachment] = field(default_factory=dict)
    resource_slices: Mapping[str, ResourceSlice] = field(default_factory=dict)  # none if devices are ignored
    resource_claims: Mapping[str, ResourceClaim] = field(default_factory=dict)  # likewise, and the next two
    claim_templates: Mapping[str, ResourceClaimTemplate] = field(default_factory=dict)
    device_classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    selector_sources: Mapping[str, SelectorSource] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(default_factory=dict)
    freezes: Mapping[str, Freeze] = field(default_factory=dict)
    rollouts: Mapping[str, Rollout] = field(default_factory=dict)
    nominations: Mapping[str, float] = field(default_factory=dict)  # node name -> until
    disrupting: frozenset[str] = frozenset()  # claims that a running plan of ours has taken
    leaving: frozenset[str] = frozenset()  # claims that will be deleted whatever their objects say yet (DIS-19)
    resting: Mapping[str, float] = field(default_factory=dict)  # node name -> not to be tried again before
    buffer_pods: Mapping[str, int] = field(default_factory=dict)  # node name -> virtual buffer pods on it (DIS-68)
    supported_node_classes: frozenset[tuple[str, str]] = frozenset()  # (group, kind); empty: every kind
    repair_policies: tuple[RepairPolicy, ...] = ()  # the cloud's
    refused_pods: Mapping[str, str] = field(default_factory=dict)  # pod -> why the API server takes no claim for it
    unreadable: tuple[Unreadable, ...] = ()  # what is left out because it cannot be read
    stale: frozenset[str] = (
        frozenset()
    )  # kinds whose watch was broken or had not answered yet: an object may be missing

    def version_of(self, kinds: Collection[str]) -> tuple[object, ...] | None:
        """A value that stays equal as long as no object of these kinds says anything new; None if nobody counts."""
        if not self.changed:
            return None
        return (self.supported_node_classes, *[self._changed(kind) for kind in sorted(kinds)])

    def _changed(self, kind: str) -> int:
        found = self.changed.get(kind)
        return self.changed.get(kind.removesuffix(STANDING), 0) if found is None else found

    def is_ours(self, reference: NodeClassRef) -> bool:
        """Whether this cloud understands the NodeClass; claims and pools of another are another provider's (PLM-1)."""
        supported = self.supported_node_classes
        return not supported or (reference.group, reference.kind) in supported

    def is_leaving(self, node: Node | None, claim: NodeClaim | None) -> bool:
        """Whether the node with this Node and this claim is deleted, taken by a plan of ours, or lost its Node."""
        if node is not None and node.deleting_since is not None:
            return True
        if claim is None:
            return False
        taken = claim.deleting_since is not None or claim.name in self.disrupting
        return taken or (node is None and self.has_lost_its_node(claim))

    def has_lost_its_node(self, claim: NodeClaim) -> bool:
        """Whether its Node has joined and is gone: not if one of that name is still without an id, cannot be read, or
        may be missing only here."""
        registered = claim.condition(names.REGISTERED_CONDITION)
        if registered is None or registered.status != "True" or self.now - registered.changed < SEEN_BY_ALL:
            return False
        if not claim.node_name or "Node" in self.stale or self.pairing.nodes_of(claim):
            return False
        named = self.nodes.get(claim.node_name)
        if named is not None and named.provider_id in ("", claim.provider_id):
            return False
        return not any(one.kind == "Node" and one.name == claim.node_name for one in self.unreadable)

    @cached_property
    def claims_by_pool(self) -> Mapping[str, Claims]:
        found: dict[str, list[NodeClaim]] = {}
        for claim in self.claims.values():
            found.setdefault(claim.labels.get(names.NODE_POOL, ""), []).append(claim)
        return {pool: tuple(claims) for pool, claims in found.items()}

    @property
    def _index(self) -> PodIndex | None:
        return self.pod_index if self.pod_index is not None and self.pod_index.pods is self.pods else None

    @cached_property
    def pods_by_node(self) -> Mapping[str, NodePods]:
        """The pods that are bound to each node, including those that have ended."""
        if self._index is not None:
            return self._index.by_node
        found: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            if pod.node_name:
                found.setdefault(pod.node_name, []).append(pod)
        return {node: NodePods(pods) for node, pods in found.items()}

    @cached_property
    def unbound_pods(self) -> Collection[Pod]:
        if self._index is not None:
            return self._index.unbound
        return tuple(pod for pod in self.pods.values() if not pod.node_name)

    @cached_property
    def unready_pods(self) -> tuple[Pod, ...]:
        """The pods that are bound to a node and not ready, including those that have ended."""
        return tuple(pod for pod in self.pods.values() if not pod.ready and pod.node_name)

    @cached_property
    def rollouts_by_pool(self) -> Mapping[str, Mapping[str, Rollout]]:
        """The roll-outs of each pool, by name. Unreadable ones are under an empty name."""
        found: dict[str, dict[str, Rollout]] = {}
        for name, rollout in self.rollouts.items():
            found.setdefault(rollout.pool, {})[name] = rollout
        return found

    @cached_property
    def going_back(self) -> frozenset[str]:
        """The pools with a roll-out that goes back."""
        return frozenset(rollout.pool for rollout in self.rollouts.values() if rollout.goes_back)

    @cached_property
    def stable_images(self) -> Mapping[str, frozenset[str]]:
        """The images to which each pool's roll-outs go back, by pool. What others know from before says nothing: the
        image that is refused may be the one from which an earlier roll-out came."""
        refused = [each for each in self.rollouts.values() if each.status.state in REFUSED]
        found: dict[str, frozenset[str]] = {}
        for each in refused:
            found[each.pool] = found.get(each.pool, frozenset()) | {image.id for image in each.status.stable.images}
        return found

    @cached_property
    def refused_since(self) -> Mapping[str, float]:
        """By pool, since when nodes are made of a target that is refused now."""
        return {each.pool: each.status.begun for each in self.rollouts.values() if each.status.state in REFUSED}

    @cached_property
    def taken(self) -> frozenset[str]:
        """Claims that leave by a decision of ours, even if their objects do not show it yet."""
        return self.disrupting | self.leaving

    @cached_property
    def split(self) -> dict[tuple[str, str], tuple[Claims, Claims]]:
        """Results of `split_of`, by pool and hash, because every rule asks for them."""
        return {}

    @cached_property
    def counted(self) -> dict[tuple[str, str], PoolNodes]:
        """Counts of `nodes_of`, by pool and hash, because every rule and reason asks for them."""
        return {}

    @cached_property
    def readiness(self) -> Mapping[str, Readiness]:
        """How many nodes of each pool are not ready. Unreadable claims are under an empty name."""
        lost = sum(1 for each in self.unreadable if each.kind == "NodeClaim")
        found = dict(readiness_by_pool(self.claims.values(), self.nodes))
        return {**found, "": found.get("", Readiness()) + Readiness(nodes=lost, not_ready=lost)}

    @cached_property
    def pairing(self) -> Pairing:
        """Which node and which claim belong together."""
        return Pairing(self.nodes.values(), self.claims.values())
