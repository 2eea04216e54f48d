"""A world of a few dictionaries behind the ports, with a clock that only moves when a step pauses.

Versions, conflicts, finalizers and UIDs behave as the API server's; every write and every launch is in `ledger`. The
cache shows writes at once unless `lag` holds some back. `at` plays what others do at a moment: pods end, kubelets
report, instances die.
"""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkPorts
from dovetail.activities.launch.await_registered_and_initialized import JoinPorts
from dovetail.activities.termination.drain_node import EvictionLimits
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.owner_turns import OwnerTurns
from dovetail.model.devices import ResourceSlice
from dovetail.model.names import PLAN
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.notice import Notice
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.resources import Resources
from dovetail.model.taints import Taint
from dovetail.model.workloads import PodDisruptionBudget, VolumeAttachment, VolumeClaim
from dovetail.ports.cloud import ClassNotReady, Instance, LaunchRefused, NoCapacity, Prepared
from dovetail.ports.failures import Conflict, Failure, Taken
from dovetail.ports.objects import ClaimStatus, Eviction, MetadataChange, NewClaim

AnyObject = TypeVar("AnyObject", Node, NodeClaim)


@dataclass(slots=True)
class World:
    """Everything that exists, and everything that was done."""

    clock: float = 1000.0
    claims: dict[str, NodeClaim] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    pools: dict[str, NodePool] = field(default_factory=dict)  # as look-ups know them
    budgets: list[PodDisruptionBudget] = field(default_factory=list)
    instances: dict[str, Instance] = field(default_factory=dict)
    attachments: dict[str, VolumeAttachment] = field(default_factory=dict)
    volume_claims: dict[str, VolumeClaim] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    ledger: list[str] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)  # names that the cache does not know yet
    later: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    slices: dict[str, tuple[ResourceSlice, ...]] | None = None  # by node; None: devices are ignored
    versions: int = 100

    def now(self) -> float:
        return self.clock

    async def pause(self, seconds: float) -> None:
        """The only thing that moves the clock."""
        self.clock += seconds
        if self.clock > 10**6:
            raise AssertionError("the step waits for ever")
        for item in sorted((one for one in self.later if one[0] <= self.clock), key=lambda one: one[0]):
            self.later.remove(item)
            item[1]()

    def at(self, moment: float, act: Callable[[], None]) -> None:
        self.later.append((moment, act))

    def version(self) -> str:
        self.versions += 1
        return str(self.versions)

    def put(self, *objects: Node | NodeClaim | Pod) -> None:
        """As another writer would write them."""
        for one in objects:
            if isinstance(one, NodeClaim):
                self.claims[one.name] = replace(one, resource_version=self.version())
            elif isinstance(one, Node):
                self.nodes[one.name] = replace(one, resource_version=self.version())
            else:
                self.pods[one.uid] = one

    def kill(self, pod: Pod) -> None:
        self.pods.pop(pod.uid, None)

    def said(self) -> set[str]:
        """The reasons of the notices."""
        return {notice.reason for notice in self.notices}


def _patched(world: World, kept: dict[str, AnyObject], one: AnyObject, fields: dict[str, Any]) -> AnyObject | None:
    live = kept.get(one.name)
    if live is None or live.uid != one.uid:
        return None
    if live.resource_version != one.resource_version:
        world.ledger.append(f"conflict {one.name}")
        raise Conflict(one.name, "the object has been modified")
    changed = replace(live, **fields, resource_version=world.version())
    if changed.deleting_since is not None and not changed.finalizers:
        del kept[one.name]
        return changed
    kept[one.name] = changed
    return changed


def _metadata(live: Node | NodeClaim, change: MetadataChange) -> dict[str, Any]:
    labels = {**live.labels, **change.labels}
    annotations = {**live.annotations, **change.annotations}
    fields: dict[str, Any] = {
        "labels": {key: value for key, value in labels.items() if value is not None},
        "annotations": {key: value for key, value in annotations.items() if value is not None},
    }
    if change.finalizers is not None:
        fields["finalizers"] = change.finalizers
    if change.add_owner is not None:
        fields["owners"] = (*live.owners, change.add_owner)
    return fields


def _deleted(world: World, kept: dict[str, AnyObject], name: str, uid: str) -> int:
    live = kept.get(name)
    if live is None or live.uid != uid:
        return 0
    if not live.finalizers:
        del kept[name]
        return 0
    if live.deleting_since is None:
        kept[name] = replace(live, deleting_since=world.clock, resource_version=world.version())
    return int(kept[name].resource_version)


class FakeClaims:
    """NodeClaims."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def create(self, claim: NewClaim) -> NodeClaim:
        self.world.ledger.append(f"create claim {claim.name}")
        known = self.world.claims.get(claim.name)
        if known is not None:
            if known.annotations.get(PLAN) != claim.annotations.get(PLAN):
                raise Taken(claim.name, "made by someone else")
            return known
        fields = {one.name: getattr(claim, one.name) for one in dataclasses.fields(claim) if one.name != "owner"}
        owners = () if claim.owner is None else (claim.owner,)
        made = NodeClaim(
            **fields, uid=f"uid-{claim.name}", created=self.world.clock, owners=owners, capacity={}, allocatable={}
        )
        self.world.put(made)
        return self.world.claims[claim.name]

    async def may_create(self, claim: NewClaim) -> None:
        self.world.ledger.append(f"judge claim {claim.name}")

    async def read(self, name: str) -> NodeClaim | None:
        self.world.ledger.append(f"get claim {name}")
        return self.world.claims.get(name)

    def answered(self, name: str) -> NodeClaim | None:
        return None

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        self.world.ledger.append(f"patch claim {claim.name}")
        return _patched(self.world, self.world.claims, claim, _metadata(claim, change))

    async def annotated_by(self, name: str, annotation: str) -> str:
        return "kubectl-annotate"

    async def patch_status(self, claim: NodeClaim, status: ClaimStatus) -> NodeClaim | None:
        self.world.ledger.append(f"patch status {claim.name}")
        plain = ("provider_id", "image_id", "node_name", "capacity", "allocatable", "conditions", "last_pod_event")
        given = {name: getattr(status, name) for name in plain}
        fields = {name: value for name, value in given.items() if value is not None}
        return _patched(self.world, self.world.claims, claim, fields)

    async def delete(self, name: str, uid: str) -> int:
        self.world.ledger.append(f"delete claim {name}")
        return _deleted(self.world, self.world.claims, name, uid)


class FakeNodes:
    """Nodes."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def read(self, name: str) -> Node | None:
        self.world.ledger.append(f"get node {name}")
        return self.world.nodes.get(name)

    async def list_by_provider_id(self, provider_id: str) -> tuple[Node, ...]:
        found = self.world.nodes.values()
        return tuple(node for node in found if node.provider_id == provider_id)

    async def patch(self, node: Node, change: MetadataChange, taints: tuple[Taint, ...] | None = None) -> Node | None:
        self.world.ledger.append(f"patch node {node.name}")
        fields = _metadata(node, change)
        if taints is not None:
            fields["taints"] = taints
        return _patched(self.world, self.world.nodes, node, fields)

    async def set_conditions(self, node: Node, conditions: tuple[Condition, ...]) -> None:
        said = " ".join(f"{each.type}={each.status}" for each in conditions)
        self.world.ledger.append(f"node {node.name} says {said}")
        live = self.world.nodes.get(node.name)
        if live is not None and live.uid == node.uid:
            merged = {each.type: each for each in (*live.conditions, *conditions)}
            self.world.put(replace(live, conditions=tuple(merged.values())))

    async def delete(self, name: str, uid: str) -> int:
        self.world.ledger.append(f"delete node {name}")
        return _deleted(self.world, self.world.nodes, name, uid)


class FakePods:
    """Pods. `answers` names what an eviction of a pod answers; `leave` is what happens to one that was evicted."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.answers: dict[str, Literal["blocked", "unsupported", "gone", "replaced"]] = {}
        self.fails: dict[str, Failure] = {}
        self.lasts = 1.0  # seconds from eviction to end
        self.lingers = False  # a kubelet that stops nothing: pods stay past the end of their grace

    async def list_on(self, node: str) -> tuple[Pod, ...]:
        self.world.ledger.append(f"list pods {node}")
        return tuple(pod for pod in self.world.pods.values() if pod.node_name == node)

    async def evict(self, pod: Pod) -> Eviction:
        self.world.ledger.append(f"evict {pod.name} {self.world.clock:.1f}")
        if pod.uid in self.fails:
            raise self.fails[pod.uid]
        answer = self.answers.get(pod.uid)
        if answer is not None:
            codes = {"blocked": 429, "unsupported": 500, "gone": 404, "replaced": 409}
            return Eviction(outcome=answer, code=codes[answer])
        self._end(pod, self.lasts)
        return Eviction(outcome="evicted", code=201)

    async def read(self, pod: Pod) -> Pod | None:
        self.world.ledger.append(f"get pod {pod.name}")
        return self.world.pods.get(pod.uid)

    async def nominate(self, pod: Pod, node: str) -> None:
        self.world.ledger.append(f"nominate {pod.name} {node or 'nowhere'}")
        if pod.uid in self.fails:
            raise self.fails[pod.uid]
        live = self.world.pods.get(pod.uid)
        if live is None:
            return
        if live.resource_version != pod.resource_version:
            raise Conflict(pod.key, "the object has been modified")
        self.world.pods[pod.uid] = replace(live, nominated_node=node, resource_version=self.world.version())

    async def annotate(self, pod: Pod, key: str, value: str | None) -> None:
        self.world.ledger.append(f"annotate {pod.name} {value}")
        if pod.uid in self.fails:
            raise self.fails[pod.uid]

    async def delete(self, pod: Pod, grace_seconds: int) -> None:
        self.world.ledger.append(f"force {pod.name} {grace_seconds} {self.world.clock:.1f}")
        self._end(pod, float(grace_seconds))

    def _end(self, pod: Pod, after: float) -> None:
        self.world.pods[pod.uid] = replace(pod, deleting_since=self.world.clock + after)
        if not self.lingers:
            self.world.at(self.world.clock + after, lambda: self.world.kill(pod))


class FakeCloud:
    """Instances. A token launches once. `answer` replaces what a launch answers; `before`/`after` break a call."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tokens: dict[str, str] = {}
        self.answer: NoCapacity | ClassNotReady | LaunchRefused | None = None
        self.prepared: Prepared | NoCapacity | ClassNotReady | LaunchRefused | None = None
        self.before: Failure | None = None  # the call never arrives
        self.after: Failure | None = None  # it arrives, and the answer is lost
        self.during: Callable[[], None] = lambda: None
        self.blind = False  # looking up by tag lags behind
        self.lingers = 0  # how often "terminating" is answered before "gone"
        self.size: Resources = {"cpu": 4 * 10**9, "memory": 16 * 2**30, "pods": 58}

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        self.world.ledger.append(f"prepare {claim.name}")
        return self.prepared or Prepared(request=f"request-{len(self.world.ledger)}")

    async def launch(
        self, claim: NodeClaim, request: str, token: str
    ) -> Instance | NoCapacity | ClassNotReady | LaunchRefused:
        self.world.ledger.append(f"launch {claim.name} {request}")
        if self.before is not None:
            raise self.before
        if self.answer is not None:
            return self.answer
        known = self.tokens.get(token)
        if known is not None and known != request:
            raise AssertionError("one token, two requests")
        if known is None:
            self.tokens[token] = request
            self._add_instance(claim, token)
        self.during()
        if self.after is not None:
            raise self.after
        return self.world.instances[f"aws:///zone/{token[:8]}"]

    def _add_instance(self, claim: NodeClaim, token: str) -> None:
        provider_id = f"aws:///zone/{token[:8]}"
        self.world.ledger.append(f"instance for {claim.uid}")
        self.world.instances[provider_id] = Instance(
            provider_id=provider_id,
            claim_uid=claim.uid,
            claim_name=claim.name,
            image_id="ami-1",
            labels={"node.kubernetes.io/instance-type": "m5.xlarge"},
            annotations={"karpenter.k8s.aws/ec2nodeclass-hash": "1"},
            capacity=self.size,
            allocatable=self.size,
        )

    async def find(self, claim_uid: str = "", provider_id: str = "") -> Instance | None:
        if claim_uid and self.blind:
            return None
        found = self.world.instances.values()
        wanted = (i for i in found if (i.claim_uid == claim_uid if claim_uid else i.provider_id == provider_id))
        # Newest first: a claim may have an older one that is ending.
        return next(iter(sorted(wanted, key=lambda i: i.state != "running")), None)

    async def terminate(self, provider_id: str, claim: str = "") -> Literal["terminating", "gone"]:
        self.world.ledger.append(f"terminate {provider_id}")
        if provider_id in self.world.instances and self.lingers > 0:
            self.lingers -= 1
            return "terminating"
        self.world.instances.pop(provider_id, None)
        return "gone"

    async def list_instances(self) -> tuple[Instance, ...]:
        return tuple(self.world.instances.values())


class FakeLookups:
    """The cache."""

    def __init__(self, world: World) -> None:
        self.world = world

    def claim(self, name: str) -> NodeClaim | None:
        return None if name in self.world.hidden else self.world.claims.get(name)

    def node(self, name: str) -> Node | None:
        return None if name in self.world.hidden else self.world.nodes.get(name)

    def has_pool(self, name: str) -> bool:
        return name not in self.world.hidden

    def pool(self, name: str) -> NodePool | None:
        return self.world.pools.get(name)

    def nodes_of(self, provider_id: str) -> tuple[Node, ...]:
        shown = (node for name, node in self.world.nodes.items() if name not in self.world.hidden)
        return tuple(node for node in shown if provider_id and node.provider_id == provider_id)

    def slices_on(self, node: str) -> tuple[ResourceSlice, ...] | None:
        return self.world.slices.get(node, ()) if self.world.slices is not None else None

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        shown = (pod for pod in self.world.pods.values() if pod.name not in self.world.hidden)
        return tuple(pod for pod in shown if pod.node_name == node)

    def pod(self, uid: str) -> Pod | None:
        found = self.world.pods.get(uid)
        return None if found is None or found.name in self.world.hidden else found

    def all_pods(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.world.pods.values() if pod.name not in self.world.hidden)

    def budgets_in(self, namespace: str) -> tuple[PodDisruptionBudget, ...]:
        return tuple(budget for budget in self.world.budgets if budget.namespace == namespace)

    def attachments_on(self, node: str) -> tuple[VolumeAttachment, ...]:
        return tuple(one for one in self.world.attachments.values() if one.node_name == node)

    def volume_claim(self, key: str) -> VolumeClaim | None:
        return self.world.volume_claims.get(key)


class FakeNotices:
    """Events."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def publish(self, *notices: Notice) -> None:
        self.world.notices += notices


def unlimited(pace: EvictionPace) -> EvictionLimits:
    """No pod waits for others of its owner."""
    return EvictionLimits(pace=pace, turns=OwnerTurns(0.0, tuple, time.time))


def mark_ports(world: World, **others: Any) -> MarkPorts:
    """What the steps that mark reach in this world, some of it replaced."""
    made = MarkPorts(claims=FakeClaims(world), nodes=FakeNodes(world), pods=FakePods(world), lookups=FakeLookups(world))
    return replace(made, **others)


def join_ports(world: World, **others: Any) -> JoinPorts:
    """What the wait for a node reaches in this world."""
    made = JoinPorts(lookups=FakeLookups(world), claims=FakeClaims(world), nodes=FakeNodes(world))
    return replace(made, **others)
